//! What `sooner gate` holds in memory: clients that are silent, a row of a gigabyte, a COPY of
//! several either way, clients that do not read.
//!
//! Each has a gate of its own, and the peak of the gate is forgotten before. The clients are this
//! process. Beside them another client asks for nothing but `SELECT 1`, again and again: what the
//! large ones do to its latency is told, and held where they should do nothing.

use super::database::{Database, GATE_PORT};
use super::postgres_client::Client;
use super::{Keys, Kind};
use crate::counters::processes::usage;
use crate::measure::bench::Bench;
use crate::measure::expression::median;
use crate::measure::{Measure, Record};
use anyhow::{Result, anyhow};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sooner_kernel::descriptors;
use sooner_testbed::OwnedChild;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// Descriptors beside those of the clients.
const OTHER_DESCRIPTORS: u64 = 100;
const PAUSE: Duration = Duration::from_millis(2);

/// `gate-memory`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateMemory {
    clients: usize,
    row_bytes: u64,
    copy_bytes: u64,
    deaf_clients: usize,
    /// How long latency is measured where nothing else ends it.
    #[serde(skip)]
    listen: Duration,
}

impl GateMemory {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(keys.own::<Self>()?))
    }

    fn sizes(&self, is_quick: bool) -> GateMemory {
        if is_quick {
            GateMemory {
                clients: 200,
                row_bytes: 64_000_000,
                copy_bytes: 64_000_000,
                deaf_clients: self.deaf_clients,
                listen: Duration::from_millis(500),
            }
        } else {
            GateMemory {
                listen: Duration::from_secs(5),
                ..*self
            }
        }
    }
}

impl Kind for GateMemory {
    fn run(&self, bench: &Bench<'_>, _: &Measure, record: &mut Record) -> Result<()> {
        let sizes = self.sizes(bench.is_quick);
        descriptors::raise_limit(sizes.clients as u64 + OTHER_DESCRIPTORS)?;
        let database = Database::start(bench, bench.scratch(), &[])?;
        let socket = database.address(Some(GATE_PORT)).socket();
        let gate_bench = GateBench {
            bench,
            database: &database,
            socket: &socket,
            sizes: &sizes,
        };
        record.add(gate_bench.silent()?)?;
        let row = sizes.row_bytes;
        record.add(gate_bench.large("a row", row, || {
            let sql = format!("SELECT repeat('x', {row})");
            Client::new(&socket)?.ask(&sql).map(|_| ())
        })?)?;
        let copy = sizes.copy_bytes;
        record.add(gate_bench.large("COPY out", copy, || {
            let rows = copy / 1000;
            let select = format!("SELECT repeat('x', 999) FROM generate_series(1, {rows})");
            let sql = format!("COPY ({select}) TO STDOUT");
            Client::new(&socket)?.ask(&sql).map(|_| ())
        })?)?;
        record.add(gate_bench.large("COPY in", copy, || {
            let mut client = Client::new(&socket)?;
            client.ask("CREATE UNLOGGED TABLE sink (line text)")?;
            let row = format!("{}\n", "x".repeat(999));
            // Read and thrown away: the disk is not what is measured.
            client.copy_in("COPY sink FROM STDIN WHERE false", &row, copy)
        })?)?;
        record.add(gate_bench.deaf()?)
    }
}

/// A gate that has been used; its peak is forgotten.
struct Used {
    gate: OwnedChild,
    before_mib: f64,
    latency_before_us: f64,
}

impl Used {
    fn row(
        &self,
        what: &str,
        growth_mib: f64,
        client_bytes: Option<f64>,
        latency_us: f64,
    ) -> Map<String, Value> {
        let row = json!({
            "what": what, "resident_before_mib": self.before_mib, "growth_mib": growth_mib, "client_bytes": client_bytes,
            "latency_before_us": self.latency_before_us, "latency_us": latency_us,
        });
        row.as_object().cloned().unwrap_or_default()
    }

    fn resident_mib(&self) -> f64 {
        usage(self.gate.id()).resident_bytes as f64 / 1_048_576.0
    }

    /// The most that it had resident since its peak was forgotten.
    fn peak_mib(&self) -> f64 {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.gate.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
        kib.unwrap_or(f64::NAN) / 1024.0
    }
}

struct GateBench<'a> {
    bench: &'a Bench<'a>,
    database: &'a Database,
    socket: &'a PathBuf,
    sizes: &'a GateMemory,
}

impl GateBench<'_> {
    fn gate(&self) -> Result<Used> {
        let flags = ["--limit", "20", "--clients-max", "10100"];
        let gate = self.database.gate(self.bench, GATE_PORT, None, &flags)?;
        Client::new(self.socket)?.ask("SELECT 1")?;
        fs::write(format!("/proc/{}/clear_refs", gate.id()), "5")?;
        let mut used = Used {
            gate,
            before_mib: 0.0,
            latency_before_us: 0.0,
        };
        used.before_mib = used.resident_mib();
        used.latency_before_us = latency_us(self.socket, self.sizes.listen)?;
        Ok(used)
    }

    fn silent(&self) -> Result<Map<String, Value>> {
        let used = self.gate()?;
        let mut silent = Vec::new();
        for _ in 0..self.sizes.clients {
            self.bench.pause(Duration::ZERO)?;
            let mut client = Client::new(self.socket)?;
            client.ask("SELECT 1")?;
            silent.push(client);
        }
        let latency_us = latency_us(self.socket, self.sizes.listen)?;
        let growth_mib = used.resident_mib() - used.before_mib;
        let client_bytes = growth_mib * 1_048_576.0 / self.sizes.clients as f64;
        let what = format!("{} silent clients", self.sizes.clients);
        Ok(used.row(&what, growth_mib, Some(client_bytes), latency_us))
    }

    /// Something that passes, once, with another client beside it.
    fn large(
        &self,
        what: &str,
        bytes: u64,
        pass: impl FnOnce() -> Result<()> + Send,
    ) -> Result<Map<String, Value>> {
        let what = format!("{what}, {} MB", bytes / 1_000_000);
        self.bench.tell(&what);
        let used = self.gate()?;
        let is_over = AtomicBool::new(false);
        let socket = self.socket;
        let (passed, latency) = scope(|scope| {
            let beside = scope.spawn(|| latency_until(socket, || is_over.load(Ordering::Relaxed)));
            let passed = pass();
            is_over.store(true, Ordering::Relaxed);
            (passed, beside.join())
        });
        passed?;
        let latency_us = latency.map_err(|_| anyhow!("the client beside has panicked"))??;
        Ok(used.row(&what, used.peak_mib() - used.before_mib, None, latency_us))
    }

    /// Clients that ask for much and do not read.
    fn deaf(&self) -> Result<Map<String, Value>> {
        let used = self.gate()?;
        let mut deaf = Vec::new();
        for _ in 0..self.sizes.deaf_clients {
            let mut client = Client::new(self.socket)?;
            client.say("SELECT repeat('x', 1000000) FROM generate_series(1, 1000000)")?;
            deaf.push(client);
        }
        // What fits between is there by then.
        self.bench.pause(Duration::from_secs(1))?;
        let latency_us = latency_us(self.socket, self.sizes.listen)?;
        let what = format!("{} clients that do not read", self.sizes.deaf_clients);
        Ok(used.row(&what, used.peak_mib() - used.before_mib, None, latency_us))
    }
}

/// Median of `SELECT 1` for so long.
fn latency_us(socket: &Path, duration: Duration) -> Result<f64> {
    let begin = Instant::now();
    latency_until(socket, || begin.elapsed() >= duration)
}

fn latency_until(socket: &Path, is_over: impl Fn() -> bool) -> Result<f64> {
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
