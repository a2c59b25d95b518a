//! `sooner sim`: what would happen. One system, or every combination of what is given several
//! times, side by side.

mod args;
mod drawing;
mod queue;
mod results;
mod slowdown;

pub use args::SimArgs;
pub use results::finite_or_not;

use crate::output;
use crate::process;
use crate::progress;
use crate::system::{self, Case};

use anyhow::{Context, Result, ensure};
use sooner_simulator::play::Contradiction;
use sooner_simulator::replicate::Simulated;
use sooner_simulator::{Effort, System, simulate};
use sooner_workload::model::Users;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::thread;
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

/// Simulates the requested systems.
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
        "--jobs {jobs} is out of range; give a whole number from 1 to 1e12, such as 1e6"
    );
    let replications = args.replications;
    ensure!(
        (1..=10_000).contains(&replications),
        "--replications {replications} is out of range; give 1 to 10000"
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
            "a replication would last {span:.1e} mean sizes, more than the clock holds ({SPAN_MAX:e}); give fewer --jobs, more --replications, or shorter --think"
        );
    }
    // Checked before hours of work, not after.
    if let Some(path) = &args.html {
        output::check_file("--html", path)?;
    }
    let cases = Arc::new(cases);
    let (runs, is_stopped) = simulate_all(&cases, &effort)?;
    results::print(&args, &effort, &runs)?;
    if is_stopped {
        output::say(format_args!(
            "sooner: stopped: {} of {} runs are finished, and printed",
            runs.len(),
            cases.len()
        ));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

enum Event {
    /// One case, with what came out and the seconds it took.
    Simulated(Box<Result<Simulated, Contradiction>>, f64),
    /// A signal asks for the end.
    Stopped,
}

/// Case after case, until a signal; those that are finished, and whether there was one.
fn simulate_all<'a>(
    cases: &'a Arc<Vec<Case>>,
    effort: &Effort,
) -> Result<(Vec<results::Done<'a>>, bool)> {
    let all_jobs = cases.len() as u64 * effort.jobs;
    let progress = progress::bar(
        all_jobs,
        "{bar:40} {human_pos}/{human_len} jobs, {eta} left",
    );
    let (sender, events) = mpsc::channel();
    let at_end = sender.clone();
    process::when_ended(move || {
        let _ = at_end.send(Event::Stopped);
    });
    // What is under way at a signal ends with the process.
    thread::spawn({
        let (cases, effort, progress) = (cases.clone(), *effort, progress.clone());
        move || {
            for (index, case) in cases.iter().enumerate() {
                let start = Instant::now();
                let before = index as u64 * effort.jobs;
                let told = |jobs: u64| progress.set_position(before + jobs.min(effort.jobs));
                let simulated = simulate(&case.system, &effort, &told);
                let seconds = start.elapsed().as_secs_f64();
                if sender
                    .send(Event::Simulated(Box::new(simulated), seconds))
                    .is_err()
                {
                    return;
                }
            }
        }
    });
    let mut runs = Vec::with_capacity(cases.len());
    let mut is_stopped = false;
    for case in cases.iter() {
        match events.recv().context("the simulation ended early")? {
            Event::Stopped => {
                is_stopped = true;
                break;
            }
            Event::Simulated(simulated, seconds) => runs.push(results::Done::new(
                case,
                (*simulated)?,
                effort.jobs as f64 / seconds,
            )),
        }
    }
    progress.finish_and_clear();
    Ok((runs, is_stopped))
}
