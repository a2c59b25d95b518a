//! The demo: the same requests over the same limited link, once for each policy.
//!
//! Server and generator are processes of their own, started from this very program, on loopback and
//! without privilege. The link is limited by the server itself, in user space. Every policy gets
//! the same arrivals: same trace, seed, schedule. Whatever ends the demo (the last run, an error, a
//! panic, Ctrl-C), its processes are killed and its files removed.

mod page;
mod process;
mod setup;

pub use page::Page;

use crate::progress::Step;
use anyhow::{Context, Result, bail};
use process::Server;
use sooner_kernel::signals::EndSignals;
use sooner_stats::Report;
use sooner_testbed::scratch::Scratch;
use sooner_workload::{Rate, Schedule, Trace, mkroot};
use std::path::PathBuf;
use std::time::Duration;

/// What to measure.
#[derive(Clone, Debug)]
pub struct DemoOptions {
    /// The `sooner` program that serves and generates load.
    pub program: PathBuf,
    /// The trace as it was named: `epa`, `nasa` or a path.
    pub trace_name: String,
    /// The trace itself.
    pub trace: Trace,
    /// Rate of the link.
    pub uplink: Rate,
    /// Policies, one run each, in this order.
    pub policies: Vec<String>,
    /// Load over time.
    pub schedule: Schedule,
    /// How long requests arrive, in each run; the first tenth is warm-up and not counted.
    pub duration: Duration,
    /// Seed of the arrivals.
    pub seed: u64,
}

/// Runs every policy and returns all runs in one report. Blocks; SIGINT, SIGTERM and SIGHUP end it
/// with an error.
pub fn run(options: &DemoOptions, progress: &mut dyn FnMut(Step<'_>)) -> Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.context("cannot start the event loop")?;
    runtime.block_on(async {
        let mut signals = EndSignals::listen()?;
        tokio::select! {
            biased;
            why = signals.next() => bail!("{why}"),
            report = measure(options, progress) => report,
        }
    })
}

async fn measure(options: &DemoOptions, progress: &mut dyn FnMut(Step<'_>)) -> Result<Report> {
    let root = Scratch::new()?;
    let size_bytes = options
        .trace
        .objects
        .iter()
        .map(|object| object.size_bytes)
        .sum();
    progress(Step::Root { size_bytes });
    mkroot(&options.trace, root.path())
        .context("cannot write the trace's files; set TMPDIR to a place with room")?;
    let mut runs = Vec::new();
    for policy in &options.policies {
        let mut server = Server::start(options, policy, root.path()).await?;
        let run = process::replay(options, policy, &mut server, progress).await?;
        drop(server);
        progress(Step::Done { run: &run });
        runs.push(run);
    }
    Ok(Report::new(runs))
}
