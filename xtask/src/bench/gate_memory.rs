//! What `sooner gate` holds in memory: clients that are silent, a row of a gigabyte, a COPY of several either way, clients that do not read.
//!
//! For each a gate of its own, whose peak is forgotten before. The clients are this process. Beside them another client asks for nothing but
//! `SELECT 1`, again and again: what the large ones do to its latency is told, and held where they should do nothing.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use serde_json::json;

use super::Effort;
use super::check::{Checks, median};
use super::link::Running;
use super::postgres::{Folder, GATE_PORT};
use super::postgres_client::Client;
use super::proc::{forget_peak, peak_kib, resident_kib};
use super::record::Record;
use crate::clients::idle::allow_descriptors;

/// Of the gate for a silent client.
const CLIENT_BYTES_MAX: f64 = 8192.0;
/// Of the gate for whatever passes.
const GROWTH_MIB_MAX: f64 = 16.0;
/// Of the median of `SELECT 1` beside clients that do not read, to that without them.
const SLOWER_MAX: f64 = 1.5;
/// How many of those there are.
const DEAF_CLIENTS: usize = 5;
/// Descriptors beside those of the clients.
const OTHER_DESCRIPTORS: u64 = 100;
const PAUSE: Duration = Duration::from_millis(2);

struct Sizes {
    clients: usize,
    row_bytes: u64,
    copy_bytes: u64,
    /// How long latency is measured where nothing else ends it.
    listen: Duration,
}

impl Sizes {
    fn of(effort: Effort) -> Self {
        match effort.quick {
            true => Self {
                clients: 500,
                row_bytes: 64_000_000,
                copy_bytes: 100_000_000,
                listen: Duration::from_secs(1),
            },
            // A message is shorter than 1 GiB.
            false => Self {
                clients: 10_000,
                row_bytes: 1_000_000_000,
                copy_bytes: 5_000_000_000,
                listen: Duration::from_secs(5),
            },
        }
    }
}

/// All of them, once each: memory is no matter of chance.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let sizes = Sizes::of(effort);
    allow_descriptors(sizes.clients as u64 + OTHER_DESCRIPTORS)?;
    let folder = Folder::new()?;
    let _database = folder.database()?;
    let socket = folder.socket(GATE_PORT);
    let mut bench = Bench {
        record: Record::open("gate", "gate-memory")?,
        table: String::from(
            "| what | gate, MiB before | growth, MiB | a client, bytes | SELECT 1 before, us | meanwhile, us |\n|---|---|---|---|---|---|\n",
        ),
        checks: Checks::default(),
        folder: &folder,
    };
    bench.silent(&socket, &sizes)?;
    let row = sizes.row_bytes;
    bench.large("a row", row, &sizes, || {
        let sql = format!("SELECT repeat('x', {row})");
        Client::new(&socket)?.ask(&sql).map(|_| ())
    })?;
    let copy = sizes.copy_bytes;
    bench.large("COPY out", copy, &sizes, || {
        let rows = copy / 1000;
        let select = format!("SELECT repeat('x', 999) FROM generate_series(1, {rows})");
        let sql = format!("COPY ({select}) TO STDOUT");
        Client::new(&socket)?.ask(&sql).map(|_| ())
    })?;
    bench.large("COPY in", copy, &sizes, || {
        let mut client = Client::new(&socket)?;
        client.ask("CREATE UNLOGGED TABLE sink (line text)")?;
        let row = format!("{}\n", "x".repeat(999));
        // Read and thrown away: the disk is not what is measured.
        client.copy_in("COPY sink FROM STDIN WHERE false", &row, copy)
    })?;
    bench.deaf(&socket, &sizes)?;
    let Bench {
        record,
        table,
        checks: part,
        ..
    } = bench;
    record.table("gate-memory", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}

struct Bench<'a> {
    record: Record,
    table: String,
    checks: Checks,
    folder: &'a Folder,
}

/// What one of them has shown.
struct Shown {
    what: String,
    before_mib: f64,
    growth_mib: f64,
    /// Of one client, where there are many.
    client_bytes: Option<f64>,
    latency_before_us: f64,
    latency_us: f64,
}

impl Bench<'_> {
    /// A gate that has been used, and whose peak is forgotten.
    fn gate(&self, socket: &Path) -> anyhow::Result<(Running, f64)> {
        let gate = self
            .folder
            .gate(GATE_PORT, &["--limit", "20", "--clients-max", "10100"])?;
        Client::new(socket)?.ask("SELECT 1")?;
        forget_peak(gate.id())?;
        let before_mib = resident_kib(gate.id()) / 1024.0;
        Ok((gate, before_mib))
    }

    fn silent(&mut self, socket: &Path, sizes: &Sizes) -> anyhow::Result<()> {
        let (gate, before_mib) = self.gate(socket)?;
        let latency_before_us = latency_us(socket, sizes.listen)?;
        let mut silent = Vec::new();
        for _ in 0..sizes.clients {
            let mut client = Client::new(socket)?;
            client.ask("SELECT 1")?;
            silent.push(client);
        }
        let latency_us = latency_us(socket, sizes.listen)?;
        let growth_mib = resident_kib(gate.id()) / 1024.0 - before_mib;
        let client_bytes = growth_mib * 1024.0 * 1024.0 / sizes.clients as f64;
        self.checks.at_most(
            &format!("{} silent clients: bytes each", sizes.clients),
            client_bytes,
            CLIENT_BYTES_MAX,
        );
        self.add(&Shown {
            what: format!("{} silent clients", sizes.clients),
            before_mib,
            growth_mib,
            client_bytes: Some(client_bytes),
            latency_before_us,
            latency_us,
        })
    }

    /// Something that passes, once, with somebody beside it.
    fn large(
        &mut self,
        what: &str,
        bytes: u64,
        sizes: &Sizes,
        pass: impl FnOnce() -> anyhow::Result<()> + Send,
    ) -> anyhow::Result<()> {
        let what = format!("{what}, {} MB", bytes / 1_000_000);
        let socket = self.folder.socket(GATE_PORT);
        let (gate, before_mib) = self.gate(&socket)?;
        let latency_before_us = latency_us(&socket, sizes.listen)?;
        let is_over = AtomicBool::new(false);
        let begin = Instant::now();
        let (passed, latency) = scope(|scope| {
            let beside = scope.spawn(|| latency_until(&socket, || is_over.load(Ordering::Relaxed)));
            let passed = pass();
            is_over.store(true, Ordering::Relaxed);
            (passed, beside.join())
        });
        passed?;
        eprintln!("{what}: {:.0} s", begin.elapsed().as_secs_f64());
        let latency_us =
            latency.map_err(|_| anyhow::anyhow!("the client beside has panicked"))??;
        let growth_mib = peak_kib(gate.id()) / 1024.0 - before_mib;
        self.checks
            .at_most(&format!("{what}: growth, MiB"), growth_mib, GROWTH_MIB_MAX);
        self.add(&Shown {
            what,
            before_mib,
            growth_mib,
            client_bytes: None,
            latency_before_us,
            latency_us,
        })
    }

    /// Clients that ask for much and do not read.
    fn deaf(&mut self, socket: &Path, sizes: &Sizes) -> anyhow::Result<()> {
        let (gate, before_mib) = self.gate(socket)?;
        let latency_before_us = latency_us(socket, sizes.listen)?;
        let mut deaf = Vec::new();
        for _ in 0..DEAF_CLIENTS {
            let mut client = Client::new(socket)?;
            client.say("SELECT repeat('x', 1000000) FROM generate_series(1, 1000000)")?;
            deaf.push(client);
        }
        // What fits between is there by then.
        sleep(Duration::from_secs(1));
        let latency_us = latency_us(socket, sizes.listen)?;
        let growth_mib = peak_kib(gate.id()) / 1024.0 - before_mib;
        let what = format!("{DEAF_CLIENTS} clients that do not read");
        self.checks
            .at_most(&format!("{what}: growth, MiB"), growth_mib, GROWTH_MIB_MAX);
        self.checks.at_most(
            &format!("{what}: latency of another / without them"),
            latency_us / latency_before_us,
            SLOWER_MAX,
        );
        self.add(&Shown {
            what,
            before_mib,
            growth_mib,
            client_bytes: None,
            latency_before_us,
            latency_us,
        })
    }

    fn add(&mut self, shown: &Shown) -> anyhow::Result<()> {
        let Shown {
            what,
            before_mib,
            growth_mib,
            client_bytes,
            latency_before_us,
            latency_us,
        } = shown;
        let each = client_bytes.map_or(String::new(), |bytes| format!("{bytes:.0}"));
        self.table += &format!(
            "| {what} | {before_mib:.1} | {growth_mib:.1} | {each} | {latency_before_us:.0} | {latency_us:.0} |\n"
        );
        self.record.add(&json!({
            "what": what, "resident_before_mib": before_mib, "growth_mib": growth_mib, "client_bytes": client_bytes,
            "latency_before_us": latency_before_us, "latency_us": latency_us,
        }))
    }
}

/// Median of `SELECT 1` for so long.
fn latency_us(socket: &Path, duration: Duration) -> anyhow::Result<f64> {
    let begin = Instant::now();
    latency_until(socket, || begin.elapsed() >= duration)
}

fn latency_until(socket: &Path, is_over: impl Fn() -> bool) -> anyhow::Result<f64> {
    let mut client = Client::new(socket)?;
    let mut all_us = Vec::new();
    loop {
        let begin = Instant::now();
        client.ask("SELECT 1")?;
        all_us.push(begin.elapsed().as_secs_f64() * 1e6);
        if is_over() {
            return Ok(median(&all_us));
        }
        sleep(PAUSE);
    }
}
