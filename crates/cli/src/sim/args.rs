//! Flags of `sooner sim`.

use crate::system::SystemArgs;
use clap::Args;
use std::path::PathBuf;

/// Simulate a queueing system under any policy, beside exact formulas.
///
/// Values given several times are combined: three policies under four loads are twelve runs. Every
/// policy gets the same arrivals.
#[derive(Args)]
pub struct SimArgs {
    #[command(flatten)]
    pub system: SystemArgs,
    /// Jobs to count in all replications together, such as 1e6 [default: 1000000]; a load of 1 or
    /// more is simulated only if this is given
    #[arg(long, value_name = "N")]
    pub jobs: Option<f64>,
    /// Independent replications, from which confidence intervals are computed
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub replications: u32,
    /// Seed of the random numbers
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Number of threads [default: one for each processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// Report means by size as well, in 200 groups of equally many jobs
    #[arg(long)]
    pub by_size: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Print comma-separated values instead of a table
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Also draw the mean response times in this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}
