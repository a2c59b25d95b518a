//! `sooner load model`: the system that a model file describes, on a real link, beside what the
//! formulas say of it.
//!
//! The file says who asks for what; the server is whatever is measured, so its policy is only a
//! name here.

use super::measure::{MeasureArgs, Remarks};
use super::replay::said_of_trace;
use crate::system;
use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Map, json};
use sooner_load::model::{Model, Offered};
use sooner_load::replay::{Replay, ReplayOptions};
use sooner_report::number;
use sooner_simulator::system::Options;
use sooner_simulator::{Policy, System};
use sooner_workload::arrivals::visits::{STAY_MAX, THINK_S_MAX};
use sooner_workload::model::{self, Arrivals};
use sooner_workload::sizes::Law;
use sooner_workload::users::USERS_MAX;
use sooner_workload::{
    Behaviour, Distribution, Process, Schedule, Sizes, Trace, VisitLength, Visits,
};
use std::path::PathBuf;
use std::process::ExitCode;

/// Policies for which exact means stand beside what was measured.
const BESIDE: [Policy; 3] = [Policy::FAIR, Policy::SRPT, Policy::LAS];

#[derive(Args)]
pub struct ModelFileArgs {
    /// Model file, as `sooner sim` and `sooner solve model` read it; `sooner load mkroot MODEL.toml
    /// DIR` writes its files
    #[arg(value_name = "MODEL.toml")]
    model: PathBuf,
    #[command(flatten)]
    measure: MeasureArgs,
    /// Seed that chooses where in the requests the run starts, gaps, visits, pauses and source
    /// addresses.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Plays it and prints the figures.
pub fn run(mut args: ModelFileArgs) -> Result<ExitCode> {
    let model = system::read(&args.model)?;
    let played = match played(&model.users) {
        Ok(played) => played,
        Err(error) => bail!("{}: {error}", args.model.display()),
    };
    args.measure.fill_in(model.uplink, model.policy.as_deref());
    let trace = || Trace::open(&trace_name(&model.sizes));
    let options = args.measure.options(played, trace, args.seed)?;
    args.measure.run(&options, |replay| {
        let exact = exact_ms(&model, &options, replay);
        let mut words = said_of_trace(&options.trace, replay.passed_over);
        if !exact.is_empty() {
            let one = |(policy, ms): &(Policy, f64)| format!("{policy} {}", number::duration(*ms));
            let list: Vec<String> = exact.iter().map(one).collect();
            words += &format!(
                "\nexact mean response, by formula and without round trips: {}",
                list.join(", ")
            );
        }
        let by_policy: Map<_, _> = exact
            .iter()
            .map(|(policy, ms)| (policy.to_string(), json!(ms)))
            .collect();
        Remarks {
            words,
            figures: Map::from_iter([("exact_mean_response_ms".into(), json!(by_policy))]),
        }
    })
}

/// The trace with requests of `sizes`, as [`Trace::open`] takes it.
pub fn trace_name(sizes: &Sizes) -> String {
    match sizes {
        Sizes::Trace(name) => name.clone(),
        Sizes::Law(law) => format!("sizes:{law}"),
    }
}

/// What the generator can play of who asks.
fn played(users: &model::Users) -> Result<Model> {
    let offered = |schedule: &Schedule, arrivals: &Arrivals| {
        let process = match arrivals {
            Arrivals::Poisson => Process::Poisson,
            Arrivals::Trace => Process::Trace,
            Arrivals::Renewal(_) => bail!(
                "arrivals.kind: renewal gaps are simulated but not played on a link; write poisson or trace"
            ),
        };
        Ok(Offered {
            schedule: schedule.clone(),
            process,
            crowd: None,
        })
    };
    Ok(match users {
        model::Users::Open { schedule, arrivals } => Model::Open(offered(schedule, arrivals)?),
        model::Users::Closed { users, think } => {
            if *users > USERS_MAX {
                bail!("users.users: {users} is more than a generator holds; give 1 to {USERS_MAX}");
            }
            let think_s = think_s(think)?;
            Model::Closed {
                users: *users,
                behaviour: Behaviour::Trace { think_s },
            }
        }
        model::Users::PartlyOpen {
            schedule,
            arrivals,
            stay,
            think,
        } => {
            if *stay > STAY_MAX {
                bail!("users.stay: {stay} is too near to 1 to be played; give 0 to {STAY_MAX}");
            }
            let visits = Visits {
                length: VisitLength::Stay(*stay),
                think_s: think_s(think)?,
            };
            Model::PartlyOpen(offered(schedule, arrivals)?, visits)
        }
    })
}

/// Mean of the pauses, in seconds.
fn think_s(think: &Distribution) -> Result<f64> {
    match *think.law() {
        Law::Exponential { mean } if mean <= THINK_S_MAX => Ok(mean),
        Law::Deterministic { mean: 0.0 } => Ok(0.0),
        _ => bail!(
            "users.think: `{think}` is not played on a link; write exp:mean=SECONDS with at most {THINK_S_MAX}"
        ),
    }
}

/// Mean response times in ms, where formulas have them: of the work that the requests are on this
/// wire.
fn exact_ms(model: &model::Model, options: &ReplayOptions, replay: &Replay) -> Vec<(Policy, f64)> {
    // What else orders the server has no formula.
    if model.priority.is_some() || model.turn.is_some() || model.guard {
        return Vec::new();
    }
    let (trace, costs) = (&options.trace, &replay.costs);
    let opens = options.reuse.requests_per_connection.get() == 1;
    let work = trace.requests.iter().map(|request| {
        let size_bytes = trace.object_of(request).size_bytes;
        let work_bytes = costs.wire.work_bytes(size_bytes, costs.head_bytes, opens);
        work_bytes as f64
    });
    let Ok(sizes) = Distribution::of_values(work.collect()) else {
        return Vec::new();
    };
    let exact = |policy: Policy| {
        let known = Options {
            work_per_second: Some(options.rate.bytes_per_sec()),
            servers: model.servers,
            mpl: model.mpl,
            error: model.error,
            ..Options::default()
        };
        let described = System::new(sizes.clone(), model.users.clone(), policy, known).ok()?;
        let ms = 1000.0 * described.mean_service_s()?;
        Some((policy, system::mean_response(&described)? * ms))
    };
    let own = model.policy.as_ref().and_then(|name| name.parse().ok());
    let own = own.filter(|policy| !BESIDE.contains(policy));
    BESIDE.into_iter().chain(own).filter_map(exact).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Model, String> {
        let model = model::Model::read(text, |_| Ok(())).expect(text);
        played(&model.users).map_err(|error| error.to_string())
    }

    #[test]
    fn what_a_file_says_is_played() {
        let partly = of(
            "sizes = \"surge\"\nschedule = 0.8\n[users]\nkind = \"partly-open\"\nstay = 0.75\nthink = \"exp:mean=2\"",
        );
        let Ok(Model::PartlyOpen(offered, visits)) = partly else {
            panic!("{partly:?}")
        };
        assert_eq!((offered.process, visits.think_s), (Process::Poisson, 2.0));
        assert_eq!(visits.length, VisitLength::Stay(0.75));
        let trace = of("sizes = \"trace:epa\"\nschedule = 0.8\narrivals = { kind = \"trace\" }");
        assert!(matches!(trace, Ok(Model::Open(offered)) if offered.process == Process::Trace));
        let closed = of("sizes = \"surge\"\nusers = { kind = \"closed\", users = 7 }");
        let behaviour = Behaviour::Trace { think_s: 0.0 };
        assert_eq!(
            closed,
            Ok(Model::Closed {
                users: 7,
                behaviour
            })
        );
    }

    #[test]
    fn what_cannot_be_played_is_refused() {
        for (text, words) in [
            (
                "sizes = \"surge\"\nschedule = 0.8\narrivals = { kind = \"renewal\", gaps = \"det:mean=1\" }",
                "arrivals.kind: renewal",
            ),
            (
                "sizes = \"surge\"\nusers = { kind = \"closed\", users = 7, think = \"det:mean=1\" }",
                "users.think: `det:mean=1`",
            ),
            (
                "sizes = \"surge\"\nusers = { kind = \"closed\", users = 1000000 }",
                "users.users: 1000000",
            ),
        ] {
            let message = of(text).expect_err(text);
            assert!(message.starts_with(words), "{message}");
        }
    }
}
