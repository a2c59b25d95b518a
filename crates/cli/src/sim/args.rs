//! Flags of `sooner sim`.

use crate::system::SystemArgs;
use clap::Args;
use std::path::PathBuf;

/// Simulate users and sizes under any policy, beside exact values where there are any.
///
/// What is given several times is combined: three policies at four loads are twelve runs, with the
/// same arrivals for every policy.
#[derive(Args)]
pub struct SimArgs {
    #[command(flatten)]
    pub system: SystemArgs,
    /// Jobs to count, in all replications together [default: 1000000]; a load of 1 or more is
    /// simulated only where this is given
    #[arg(long, value_name = "N")]
    pub jobs: Option<f64>,
    /// Independent replications, from which the intervals come
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub replications: u32,
    /// Names the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Threads [default: as many as there are processors]
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// Also means by size, in 200 groups of equally many jobs
    #[arg(long)]
    pub by_size: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Print comma-separated values instead of a table
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Also draw the mean response times into this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}
