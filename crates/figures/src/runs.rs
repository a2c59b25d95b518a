//! Simulated points.

use crate::Effort;
use anyhow::Result;
use sooner_report::curves::{Curve, Figure};
use sooner_simulator::replicate::{CONFIDENCE, Simulated};
use sooner_simulator::system::Options;
use sooner_simulator::{Policy, System, simulate};
use sooner_workload::model::{Arrivals, Users};
use sooner_workload::{Distribution, Schedule};

/// Independent replications of a point.
const REPLICATIONS: u32 = 10;
/// Halvings of the think time to meet a load.
const HALVINGS: u32 = 12;

/// A hyperexponential law of mean 1.
pub fn h2(c2: f64) -> Result<Distribution> {
    Ok(format!("h2:mean=1,c2={c2}").parse()?)
}

/// Users of an open system.
pub fn open(load: f64) -> Result<Users> {
    Ok(Users::Open {
        schedule: Schedule::constant(load)?,
        arrivals: Arrivals::Poisson,
    })
}

/// Users of a closed system who think for an exponential time, in mean sizes.
pub fn closed(users: u32, think: f64) -> Result<Users> {
    let law = if think > 0.0 {
        format!("exp:mean={think}")
    } else {
        "det:mean=0".into()
    };
    Ok(Users::Closed {
        users,
        think: law.parse()?,
    })
}

/// Users of a partly-open system with so many jobs a visit in the mean.
pub fn partly_open(load: f64, visits: f64, think: f64) -> Result<Users> {
    Ok(Users::PartlyOpen {
        schedule: Schedule::constant(load)?,
        arrivals: Arrivals::Poisson,
        stay: 1.0 - 1.0 / visits,
        think: format!("exp:mean={think}").parse()?,
    })
}

/// Simulates one point.
pub fn run(
    sizes: &Distribution,
    users: Users,
    policy: Policy,
    effort: &Effort,
) -> Result<Simulated> {
    let system = System::new(sizes.clone(), users, policy, Options::default())?;
    let told = effort.told;
    let effort = sooner_simulator::Effort {
        jobs: effort.jobs,
        replications: REPLICATIONS,
        seed: effort.seed,
        threads: effort.threads,
        by_size: false,
    };
    let simulated = simulate(&system, &effort, &|_| {})?;
    told();
    Ok(simulated)
}

/// Mean response time, in mean sizes.
pub fn mean(simulated: &Simulated) -> f64 {
    simulated.controlled(CONFIDENCE).mean
}

/// Load and mean response time of a closed system with a think time such that the load is `load`.
pub fn closed_at(
    sizes: &Distribution,
    users: u32,
    load: f64,
    policy: Policy,
    effort: &Effort,
) -> Result<(f64, f64)> {
    // The load falls as users think longer, and with n users it is at most n / (1 + think).
    let (mut short, mut long) = (0.0, f64::from(users) / load);
    let short_effort = Effort {
        jobs: (effort.jobs / 4).max(1),
        ..*effort
    };
    for _ in 0..HALVINGS {
        let think = (short + long) / 2.0;
        let found = run(sizes, closed(users, think)?, policy, &short_effort)?.realised_load;
        if found > load {
            short = think;
        } else {
            long = think;
        }
    }
    let simulated = run(sizes, closed(users, (short + long) / 2.0)?, policy, effort)?;
    Ok((simulated.realised_load, mean(&simulated)))
}

/// Think times with which `users` make loads from low to high, in mean sizes, the longest first.
pub fn thinks(users: u32) -> impl Iterator<Item = f64> {
    let loads = [
        0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99, 1.1, 1.5,
    ];
    loads
        .into_iter()
        .map(move |load| (f64::from(users) / load - 1.0).max(0.0))
}

/// A simulated curve in the colour of a policy.
pub fn curve(name: impl Into<String>, policy: impl Into<String>, points: Vec<(f64, f64)>) -> Curve {
    Curve {
        name: name.into(),
        is_exact: false,
        policy: policy.into(),
        points,
    }
}

/// A figure of mean response times, logarithmic, along `x`.
pub fn responses(
    heading: impl Into<String>,
    x: &str,
    x_is_log: bool,
    caption: &str,
    curves: Vec<Curve>,
) -> Figure {
    Figure {
        heading: heading.into(),
        x: x.into(),
        x_is_log,
        y: "mean response time, in mean sizes".into(),
        y_is_log: true,
        caption: caption.into(),
        curves,
    }
}
