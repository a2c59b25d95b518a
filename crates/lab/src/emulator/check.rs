//! The proof that the emulator does what it says: round-trip times, loss rates and 100 Mbit/s with
//! both, measured through it.
//!
//! Two namespaces of its own, `sooner emulate` as a process of its own, and plain UDP sockets on
//! both sides: what is compared with the requested paths is what sockets see, not what the emulator
//! says of itself. The emulator's own report stands beside it. Sockets and kernel need some time
//! themselves, so a measured round-trip time is a little above the asked one. Needs root and
//! iproute2; everything is removed at the end, on SIGINT, SIGTERM and SIGHUP, and after a kill by
//! the next check.

mod flow;
mod hosts;
mod loss;
mod pace;
mod probe;
mod process;
mod rtt;
mod table;
mod throughput;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use serde::Serialize;

use sooner_kernel::signals::EndSignals;

pub use loss::LossRow;
pub use rtt::RttRow;
pub use throughput::ThroughputRow;

use super::path::{Client, Path};
use super::report::Report;
use super::run::ensure_allowed;
use crate::machine;
use hosts::{Hosts, client_address};
use process::Emulating;

/// Version of the form of [`Figures`].
const SCHEMA: u32 = 1;

/// How to check.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// A tenth of the packets: about ten seconds instead of about a minute and a half.
    pub quick: bool,
    /// Seed of the losses.
    pub seed: u64,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    /// Version of this form.
    pub schema: u32,
    /// Processor, CPUs, kernel.
    pub machine: String,
    /// The commit of the program, where known.
    pub commit: Option<String>,
    /// Whether it was the quick check.
    pub quick: bool,
    /// Seed of the losses.
    pub seed: u64,
    /// Whether everything passed.
    pub passed: bool,
    /// Round-trip times.
    pub rtt: Vec<RttRow>,
    /// Loss rates.
    pub loss: Vec<LossRow>,
    /// 100 Mbit/s with both.
    pub throughput: ThroughputRow,
    /// What the emulators said: of the round-trip times, the loss rates, the throughput.
    pub emulators: [Report; 3],
}

impl Figures {
    /// For people: a line a figure, with its verdict.
    pub fn table(&self) -> String {
        table::render(self)
    }
}

/// What all parts of a check need.
struct Bench {
    program: PathBuf,
    hosts: Hosts,
    quick: bool,
    seed: u64,
}

impl Bench {
    fn emulate(&self, clients: &[Client]) -> Result<Emulating> {
        Emulating::start(&self.program, &self.hosts, clients, self.seed)
    }
}

/// Measures with the `sooner` at `program`. Blocks; SIGINT, SIGTERM and SIGHUP end it with an
/// error.
pub fn run(program: PathBuf, options: CheckOptions) -> Result<Figures> {
    ensure_allowed()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")?;
    runtime.block_on(async {
        let mut signals = EndSignals::listen()?;
        let interrupted = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&interrupted);
        let mut measuring = tokio::task::spawn_blocking(move || measure(program, options, &flag));
        tokio::select! {
            biased;
            _ = signals.next() => {}
            figures = &mut measuring => return figures?,
        }
        // The measuring thread notices, and removes what it made before it ends.
        interrupted.store(true, Ordering::Relaxed);
        measuring.await?
    })
}

fn measure(program: PathBuf, options: CheckOptions, interrupted: &AtomicBool) -> Result<Figures> {
    let bench = Bench {
        program,
        hosts: Hosts::make()?,
        quick: options.quick,
        seed: options.seed,
    };
    let (rtt, rtt_report) = rtt::measure(&bench, interrupted)?;
    let (loss, loss_report) = loss::measure(&bench, interrupted)?;
    let (throughput, throughput_report) = throughput::measure(&bench, interrupted)?;
    let passed =
        rtt.iter().all(|row| row.passed) && loss.iter().all(|row| row.passed) && throughput.passed;
    Ok(Figures {
        schema: SCHEMA,
        machine: machine::description(),
        commit: machine::commit(),
        quick: options.quick,
        seed: options.seed,
        passed,
        rtt,
        loss,
        throughput,
        emulators: [rtt_report, loss_report, throughput_report],
    })
}

/// Clients with these round-trip times in milliseconds and loss rates.
fn clients(paths: impl IntoIterator<Item = (f64, f64)>) -> Result<Vec<Client>> {
    let client = |(index, (rtt_ms, loss))| {
        Ok(Client {
            address: client_address(index),
            path: Path::new(rtt_ms, loss, 0.0)?,
        })
    };
    (0..).zip(paths).map(client).collect()
}
