//! Flags that describe a system.

use crate::choice;
use clap::Args;
use sooner_simulator::Policy;
use sooner_workload::model::Arrivals;
use sooner_workload::{Distribution, Rate, Schedule, Sizes};
use std::path::PathBuf;

/// A system, or every combination of what is given several times.
#[derive(Args)]
pub struct SystemArgs {
    /// Model file (- for standard input), as `sooner sim`, `sooner solve model` and `sooner load
    /// model` read it; flags override its keys
    #[arg(value_name = "MODEL.toml")]
    pub model: Option<PathBuf>,
    /// Distribution of job sizes, such as h2:mean=1,c2=4 or trace:epa; repeatable
    #[arg(long, value_name = "DISTRIBUTION")]
    pub sizes: Vec<Sizes>,
    /// Load: arriving work as a share of the capacity, such as 0.8; several separated by commas
    #[arg(long, value_name = "LOAD", value_delimiter = ',')]
    pub load: Vec<f64>,
    /// Alternating load: low load, high load, length of each in the unit of the sizes, such as
    /// 0.4,1.4,50,50
    #[arg(long, value_name = "SCHEDULE", conflicts_with = "load")]
    pub schedule: Option<Schedule>,
    /// Order of the jobs; several separated by commas. Also hybrid:SHARE, boost:SCALE and
    /// nudge:PLACES. Other names: ps (fair), fifo (fcfs), fb (las), srtf (srpt) [default:
    /// fair,srpt]
    #[arg(long, value_name = "POLICY", value_delimiter = ',', value_parser = choice::simulated_policy())]
    pub policy: Vec<Policy>,
    /// Distribution of the gaps between arrivals, of which only the shape is used, or `trace` for
    /// those of the trace that the sizes come from [default: exponential]
    #[arg(long, value_name = "DISTRIBUTION", value_parser = gaps)]
    pub gaps: Option<Arrivals>,
    /// Closed system: number of users
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub users: Vec<u32>,
    /// Partly-open system: probability that a user stays for another job
    #[arg(
        long,
        value_name = "PROBABILITY",
        value_delimiter = ',',
        conflicts_with = "users"
    )]
    pub stay: Vec<f64>,
    /// Distribution of the time that a user thinks between two jobs, in the unit of the sizes;
    /// repeatable
    #[arg(long, value_name = "DISTRIBUTION")]
    pub think: Vec<Distribution>,
    /// Rate of the link that serves the jobs, such as 10mbit; sizes are then in bytes, think times
    /// and schedules in seconds
    #[arg(long, value_name = "RATE")]
    pub uplink: Option<Rate>,
    /// Number of servers, which together have the speed of one [default: 1]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub servers: Vec<u32>,
    /// Most jobs in service at a time, sharing the server; the others wait outside in the order of
    /// the policy [default: no limit]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub mpl: Vec<u32>,
    /// Estimate sizes with this standard deviation of the logarithm of estimate over size [default:
    /// sizes are known]
    #[arg(long, value_name = "SIGMA", value_delimiter = ',')]
    pub error: Vec<f64>,
    /// Estimate sizes so that this share of all pairs is ranked correctly: above 0.5 (chance), as far
    /// as the error stays at 5 or below
    #[arg(
        long,
        value_name = "SHARE",
        value_delimiter = ',',
        conflicts_with = "error"
    )]
    pub right_pairs: Vec<f64>,
    /// Expect each job to take the mean of all sizes with its estimate, as a learned estimate does
    #[arg(long)]
    pub calibrated: bool,
    /// Share of the jobs, the smallest ones, that goes before all others
    #[arg(long, value_name = "SHARE", conflicts_with = "first")]
    pub smallest_first: Option<f64>,
    /// Share of the jobs, chosen at random, that goes before all others
    #[arg(long, value_name = "SHARE")]
    pub first: Option<f64>,
    /// Work between two decisions of the policy, as on a real link, in mean sizes [default: the
    /// policy decides at every event]
    #[arg(long, value_name = "SIZES")]
    pub turn: Option<f64>,
    /// Add the starvation guard of `sooner serve` (turns of 0.01 unless --turn is given)
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
            "`{text}` has no mean above 0; give a distribution that has one"
        ))
    }
}
