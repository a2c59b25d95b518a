//! The gate's demo: the same load on the same PostgreSQL, directly, through the gate first come
//! first served, and through the gate with a class that goes first.
//!
//! PostgreSQL, gate and load generator (pgbench) are processes of their own: the database is made
//! in a temporary folder, the gate is this very program. Users pause between transactions, as
//! people do, for so long that together they ask for twice what the database can do; without pauses
//! the few who go first would take every place. Whatever ends the demo (the last run, an error, a
//! panic, Ctrl-C), its processes are ended and its files removed.

mod gate;
mod load;
mod log;
mod others;
mod report;

pub use report::{GateReport, GroupFigures, WayRun};

use crate::machine;
use anyhow::{Context, Result, bail};
use gate::Gate;
use load::{Clients, Load};
use others::Watch;
use sooner_kernel::signals::EndSignals;
use sooner_testbed::postgres::{Cluster, Installation};
use sooner_testbed::scratch::Scratch;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the users ask for together, over what the database can do: enough for a queue, in each way.
const OFFERED_LOAD: f64 = 2.0;
/// Connections for looking and for clients that are just leaving.
const SPARE_CONNECTIONS: usize = 20;
/// How long it is measured what the database can do, as a part of a run.
const CAPACITY_PART: u64 = 5;

/// What to measure.
#[derive(Clone, Debug)]
pub struct GateDemoOptions {
    /// The `sooner` program that is the gate.
    pub program: PathBuf,
    /// PostgreSQL's programs.
    pub installation: Installation,
    /// How long each way is under load; the first tenth is not counted.
    pub duration: Duration,
    /// Transactions that the gate lets in at a time.
    pub limit_transactions: usize,
    /// Clients of both classes.
    pub clients: usize,
    /// Those of them who go first.
    pub high_clients: usize,
    /// Seed of pauses and of rows.
    pub seed: u64,
    /// How often all ways are gone, by turns.
    pub repetitions: u32,
}

/// How transactions come into the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// All at once.
    Direct,
    /// Through the gate, first come first served.
    FirstComeFirstServed,
    /// Through the gate, one class first.
    ClassPriority,
}

impl Way {
    const ALL: [Way; 3] = [Way::Direct, Way::FirstComeFirstServed, Way::ClassPriority];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Way::Direct => "direct",
            Way::FirstComeFirstServed => "gate-fcfs",
            Way::ClassPriority => "gate-priority",
        }
    }

    /// Its name for people.
    pub fn words(self) -> &'static str {
        match self {
            Way::Direct => "directly",
            Way::FirstComeFirstServed => "gate, first come first served",
            Way::ClassPriority => "gate, class priority",
        }
    }
}

/// Runs every way and returns what was measured; `tell` gets a line whenever something begins or is
/// done. Blocks; SIGINT, SIGTERM and SIGHUP end it with an error.
pub fn run(options: &GateDemoOptions, tell: &mut dyn FnMut(&str)) -> Result<GateReport> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.context("cannot start the event loop")?;
    runtime.block_on(async {
        let mut signals = EndSignals::listen()?;
        tokio::select! {
            biased;
            why = signals.next() => bail!("{why}"),
            report = measure(options, tell) => report,
        }
    })
}

/// A transaction is to be one process's work of about the same length each time, so there are
/// neither parallel workers nor JIT.
async fn start_postgres(
    installation: &Installation,
    scratch: &Path,
    connections: usize,
) -> Result<Cluster> {
    let settings = [
        format!("max_connections={}", connections + SPARE_CONNECTIONS),
        "jit=off".to_owned(),
        "max_parallel_workers_per_gather=0".to_owned(),
    ];
    Cluster::start(installation, &scratch.join("postgres"), &settings, &[]).await
}

async fn measure(options: &GateDemoOptions, tell: &mut dyn FnMut(&str)) -> Result<GateReport> {
    let installation = &options.installation;
    let scratch = Scratch::new()?;
    tell(&format!("making a private {}", installation.version()));
    let connections = options.clients + options.limit_transactions;
    let postgres = start_postgres(installation, scratch.path(), connections).await?;
    let load = Load {
        installation,
        folder: scratch.path(),
        clients: Clients {
            all: options.clients,
            high: options.high_clients,
        },
        seed: options.seed,
    };
    load.prepare(&postgres).await?;
    let part = (options.duration / CAPACITY_PART as u32).max(Duration::from_secs(1));
    tell(&format!(
        "measuring what it can do, for {} s",
        part.as_secs_f64()
    ));
    let capacity = load.capacity_per_sec(postgres.address(), part).await?;
    let pause_ms = options.clients as f64 / (capacity * OFFERED_LOAD) * 1e3;
    load.set_pause(Duration::from_secs_f64(pause_ms / 1e3))?;
    let mut ways = Vec::new();
    for repetition in 1..=options.repetitions {
        for way in Way::ALL {
            tell(&format!(
                "{}: {} s",
                way.words(),
                options.duration.as_secs()
            ));
            let gate = match way {
                Way::Direct => None,
                _ => Some(Gate::start(options, way, &postgres, scratch.path()).await?),
            };
            let at = gate.as_ref().map_or(postgres.address(), Gate::at);
            let watch = Watch::start();
            let measured = load.run(at, options.duration).await?;
            let run = WayRun::new(way, repetition, &measured, watch.others_share());
            tell(&run.line());
            ways.push(run);
        }
    }
    let (verdict, verdict_reason) = report::verdict(&ways);
    Ok(GateReport {
        schema: 1,
        time_unit: "ms".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        commit: machine::commit(),
        machine: machine::description(),
        database: installation.version().into(),
        fsync: false,
        clients: options.clients,
        high_clients: options.high_clients,
        limit_transactions: options.limit_transactions,
        seconds: options.duration.as_secs(),
        seed: options.seed,
        capacity_transactions_per_sec: capacity,
        mean_pause_ms: pause_ms,
        ways,
        verdict,
        verdict_reason,
    })
}
