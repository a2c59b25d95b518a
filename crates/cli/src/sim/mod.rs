//! `sooner sim`: what would happen. One system, or every combination of what is given several times, side by side.

mod args;
mod drawing;
mod results;

pub use args::SimArgs;

use crate::output;
use crate::system;

use anyhow::{Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use sooner_simulator::{Effort, System, simulate};
use sooner_workload::model::Users;
use std::process::ExitCode;
use std::time::Instant;

/// Jobs that count, unless told otherwise.
const JOBS: f64 = 1e6;

/// Longest replication, in mean sizes: a tenth of what the simulator's clock holds.
const SPAN_MAX: f64 = 1e11;

/// How long a replication of `jobs` lasts about, in mean sizes.
fn span(system: &System, jobs: u64) -> f64 {
    let think = system.mean_think().unwrap_or(0.0);
    let gap = match (system.users(), system.offered_load()) {
        (Users::Closed { users, .. }, _) => 1.0 + think / f64::from(*users),
        (_, load) => 1.0 / load.unwrap_or(1.0),
    };
    jobs as f64 * gap + think
}

/// Simulates what is asked for.
pub fn run(args: SimArgs) -> Result<ExitCode> {
    let cases = system::cases(&args.system, args.jobs.is_some())?;
    let threads = match args.threads {
        Some(threads) => threads,
        None => {
            std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))
        }
    };
    let jobs = args.jobs.unwrap_or(JOBS);
    ensure!(
        jobs.fract() == 0.0 && (1.0..=1e12).contains(&jobs),
        "--jobs {jobs}: a whole number from 1 to 1e12, like 1e6"
    );
    let replications = args.replications;
    ensure!(
        (1..=10_000).contains(&replications),
        "--replications {replications}: from 1 to 10000"
    );
    let effort = Effort {
        jobs: (jobs as u64).max(u64::from(replications)),
        replications,
        seed: args.seed,
        threads,
        by_size: args.by_size || args.html.is_some(),
    };
    for case in &cases {
        let span = span(&case.system, effort.jobs / u64::from(replications));
        ensure!(
            span <= SPAN_MAX,
            "so little comes that a replication would last {span:.1e} mean sizes, more than the clock holds ({SPAN_MAX:e}); give fewer --jobs, more --replications, or shorter --think"
        );
    }
    // Checked before hours of work, not after.
    if let Some(path) = &args.html {
        output::check_file("--html", path)?;
    }
    let progress = progress(cases.len() as u64 * effort.jobs);
    let mut runs = Vec::with_capacity(cases.len());
    for (index, case) in cases.iter().enumerate() {
        let start = Instant::now();
        let before = index as u64 * effort.jobs;
        let told = |jobs: u64| progress.set_position(before + jobs.min(effort.jobs));
        let simulated = simulate(&case.system, &effort, &told)?;
        let seconds = start.elapsed().as_secs_f64();
        runs.push(results::Done {
            case,
            simulated,
            exact: system::mean_response(&case.system),
            jobs_per_second: effort.jobs as f64 / seconds,
        });
    }
    progress.finish_and_clear();
    results::print(&args, &effort, &runs)?;
    Ok(ExitCode::SUCCESS)
}

/// On stderr, and only where that is a terminal.
fn progress(jobs: u64) -> ProgressBar {
    let bar = ProgressBar::new(jobs);
    if let Ok(style) =
        ProgressStyle::with_template("{bar:40} {human_pos}/{human_len} jobs, {eta} left")
    {
        bar.set_style(style);
    }
    bar
}
