//! Flags that describe a system.

use clap::Args;
use sooner_simulator::Policy;
use sooner_workload::model::Arrivals;
use sooner_workload::{Distribution, Rate, Schedule, Sizes};
use std::path::PathBuf;

/// A system, or every combination of what is given several times.
#[derive(Args)]
pub struct SystemArgs {
    /// A model file, as `sooner solve` and `sooner load` read it; flags go before what it says
    #[arg(value_name = "MODEL.toml")]
    pub model: Option<PathBuf>,
    /// Sizes, like h2:mean=1,c2=4 or trace:epa; may be given again
    #[arg(long, value_name = "DISTRIBUTION")]
    pub sizes: Vec<Sizes>,
    /// Work that comes, as a share of what can be done
    #[arg(long, value_name = "LOAD", value_delimiter = ',')]
    pub load: Vec<f64>,
    /// A load that alternates, like 0.4,1.4,50,50: low, high, and for how long, in the unit of the
    /// sizes
    #[arg(long, value_name = "SCHEDULE", conflicts_with = "load")]
    pub schedule: Option<Schedule>,
    // The list is of the tables of policies.
    #[arg(long, value_name = "POLICY", value_delimiter = ',', help = policies())]
    pub policy: Vec<Policy>,
    /// Law of the gaps between arrivals instead of the exponential one, of which only the shape
    /// counts; or trace: those of the trace that the sizes are from
    #[arg(long, value_name = "DISTRIBUTION", value_parser = gaps)]
    pub gaps: Option<Arrivals>,
    /// A closed system of so many users
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub users: Vec<u32>,
    /// A partly-open system: after each job a user stays for another with this probability
    #[arg(
        long,
        value_name = "PROBABILITY",
        value_delimiter = ',',
        conflicts_with = "users"
    )]
    pub stay: Vec<f64>,
    /// Time a user thinks between two jobs, in the unit of the sizes; may be given again
    #[arg(long, value_name = "DISTRIBUTION")]
    pub think: Vec<Distribution>,
    /// Rate of the link that serves the jobs: sizes are then in bytes, think times and schedules in
    /// seconds
    #[arg(long, value_name = "RATE")]
    pub uplink: Option<Rate>,
    /// Servers that share the speed
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub servers: Vec<u32>,
    /// Most jobs inside at a time, sharing; the others wait outside in the order of the policy
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub mpl: Vec<u32>,
    /// Sizes are estimated: standard deviation of the logarithm of estimate over size
    #[arg(long, value_name = "SIGMA", value_delimiter = ',')]
    pub error: Vec<f64>,
    /// The same by what it comes to: estimates rank this share of all pairs of sizes rightly
    #[arg(
        long,
        value_name = "SHARE",
        value_delimiter = ',',
        conflicts_with = "error"
    )]
    pub right_pairs: Vec<f64>,
    /// A job is expected to take the mean of all sizes that have its estimate, as a learner says
    #[arg(long)]
    pub calibrated: bool,
    /// This share of the jobs, the smallest, goes before all others
    #[arg(long, value_name = "SHARE", conflicts_with = "first")]
    pub smallest_first: Option<f64>,
    /// This share of the jobs, chosen by chance, goes before all others
    #[arg(long, value_name = "SHARE")]
    pub first: Option<f64>,
    /// As a real link serves: the policy is asked again after so much work, in mean sizes
    #[arg(long, value_name = "SIZES")]
    pub turn: Option<f64>,
    /// With the starvation guard of `sooner serve` [turns of 0.01 unless --turn]
    #[arg(long)]
    pub guard: bool,
}

/// Gaps as `--gaps` says.
fn gaps(text: &str) -> Result<Arrivals, String> {
    if text == "trace" {
        return Ok(Arrivals::Trace);
    }
    let law: Distribution = text
        .parse()
        .map_err(|error: sooner_workload::DistributionError| error.to_string())?;
    if law.mean() > 0.0 && law.mean().is_finite() {
        Ok(Arrivals::Renewal(law))
    } else {
        Err(format!(
            "`{text}` has no mean above 0; give a law that has one"
        ))
    }
}

fn policies() -> String {
    format!(
        "{}, hybrid:SHARE, boost:SCALE, nudge:PLACES",
        Policy::names().join(", ")
    )
}
