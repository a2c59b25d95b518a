//! Transactions of TPC-C or TPC-W on a private PostgreSQL, through a gate: what the kinds that
//! measure its limit and its order have in common.
//!
//! The database has a core to itself; the gate, which needs a fifth of one, and the users have the
//! other.

use super::database::{Database, GATE_PORT, PROXY_CORE};
use super::local::on_core;
use super::set_ups::{SetUp, Storage, WARM_UP};
use super::slow_disk::{MEMORY, SlowDisk};
use crate::measure::bench::Bench;
use crate::measure::calm::undisturbed;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use sooner_testbed::{OwnedChild, port};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// More than wait at any time where transactions come whatever becomes of others.
const SESSIONS: u32 = 600;
/// Where all is short, of so many users or sessions there is one: each has to log in first.
const QUICK_DIVISOR: u32 = 5;
/// Of a run in which processor time was stolen.
const TRIES_MAX: u32 = 5;

/// When transactions come.
#[derive(Clone, Copy, Debug)]
pub enum Arrivals {
    /// So many users, each asking again at once.
    Closed(u32),
    /// So many a second, at random times.
    Open(f64),
    /// So many visits a second, each of so many transactions on average.
    PartlyOpen(f64, f64),
}

impl Arrivals {
    /// As flags of `sooner load tpcc run`, with one of `divisor` users or sessions.
    fn flags(self, divisor: u32) -> Vec<String> {
        let sessions = SESSIONS.div_ceil(divisor);
        let words = match self {
            Self::Closed(users) => format!("--users {}", users.div_ceil(divisor)),
            Self::Open(rate) => format!("--model open --rate {rate} --sessions {sessions}"),
            Self::PartlyOpen(visits, transactions) => format!(
                "--model partly-open --rate {visits} --visit {transactions} --sessions {sessions}"
            ),
        };
        words.split(' ').map(str::to_owned).collect()
    }
}

/// What users do.
#[derive(Clone, Copy)]
pub struct Load<'a> {
    pub arrivals: Arrivals,
    pub seconds: u64,
    /// Not measured, at the beginning.
    pub warm_up_seconds: u64,
    pub seed: u32,
    /// Classes, as `--class` takes them; transactions in none are in `rest`.
    pub classes: &'a [&'a str],
    /// Whether statements have no names.
    pub is_unnamed: bool,
    /// Where they come in; none: at the database itself.
    pub port: Option<u16>,
}

impl Load<'_> {
    /// So many users without a pause, through the gate.
    pub fn closed(users: u32, seconds: u64, seed: u32) -> Self {
        Self {
            arrivals: Arrivals::Closed(users),
            seconds,
            warm_up_seconds: 3,
            seed,
            classes: &[],
            is_unnamed: false,
            port: Some(GATE_PORT),
        }
    }
}

impl Load<'_> {
    /// How many users come, where all is short or not.
    pub fn users_here(&self, is_quick: bool) -> u32 {
        let divisor = if is_quick { QUICK_DIVISOR } else { 1 };
        match self.arrivals {
            Arrivals::Closed(users) => users.div_ceil(divisor),
            _ => SESSIONS.div_ceil(divisor),
        }
    }
}

/// A database with a set-up's data, and where a gate before it listens.
pub struct LoadedDatabase<'a> {
    pub bench: &'a Bench<'a>,
    pub database: Database,
    /// Where its gate tells its figures.
    pub metrics: SocketAddr,
    set_up: &'static SetUp,
    // After the database, which is on it.
    disk: Option<SlowDisk>,
    _memory: Option<tempfile::TempDir>,
}

impl<'a> LoadedDatabase<'a> {
    /// A new one, filled.
    pub fn new(bench: &'a Bench<'a>, set_up: &'static SetUp) -> Result<Self> {
        Self::with(bench, set_up, &["max_connections=250"])
    }

    /// The same with these settings besides.
    pub fn with(
        bench: &'a Bench<'a>,
        set_up: &'static SetUp,
        settings: &[&'static str],
    ) -> Result<Self> {
        let disk = match set_up.storage {
            Storage::SlowDisk(bounds) => Some(SlowDisk::new(bounds)?),
            _ => None,
        };
        let memory = match set_up.storage {
            Storage::Memory => Some(in_memory()?),
            _ => None,
        };
        let parent = match (&disk, &memory) {
            (Some(disk), _) => disk.path(),
            (None, Some(memory)) => memory.path(),
            (None, None) => bench.scratch(),
        };
        let settings = [set_up.database, settings].concat();
        let database = Database::start(bench, parent, &settings)?;
        if let Some(disk) = &disk {
            disk.take(database.id())?;
        }
        let loaded = Self {
            bench,
            database,
            metrics: port::free()?,
            set_up,
            disk,
            _memory: memory,
        };
        let seed = set_up.seed.to_string();
        let mut data = [set_up.data, &["--seed", &seed]].concat();
        if bench.is_quick {
            data.extend(set_up.quick_data());
        }
        loaded.load("fill", None, &data)?;
        if let Some(disk) = &loaded.disk {
            loaded.load("run", None, WARM_UP)?;
            disk.slow_down(loaded.database.folder())?;
        }
        Ok(loaded)
    }

    /// A command of the kit's.
    fn command(&self, what: &str, port: Option<u16>) -> Command {
        let address = self.database.address(port);
        let (folder, port) = (address.folder.display(), address.port);
        let url = format!("postgresql:///postgres?host={folder}&port={port}&user=postgres");
        let mut command = on_core(PROXY_CORE, self.bench.program);
        command.args(["load", self.set_up.kit, what, "--url", &url]);
        command
    }

    fn load(&self, what: &str, port: Option<u16>, more: &[&str]) -> Result<String> {
        let mut command = self.command(what, port);
        command.args(more);
        let child = self.bench.start(command)?;
        let printed =
            self.bench
                .finish(&format!("load {} {what}", self.set_up.kit), child, &[0, 1])?;
        // 1 says that figures may not be believed; of a check, that the data is wrong.
        ensure!(
            what != "check" || printed.is_empty() || !printed.contains("wrong"),
            "{printed}"
        );
        Ok(printed)
    }

    fn run_flags(&self, load: &Load<'_>) -> Vec<String> {
        let Load {
            seconds,
            warm_up_seconds,
            ..
        } = load;
        let seed = load.seed + self.set_up.seed - 1;
        let numbers =
            format!("--for {seconds} --warm-up {warm_up_seconds} --seed {seed} --remarks --json");
        let divisor = if self.bench.is_quick {
            QUICK_DIVISOR
        } else {
            1
        };
        let mut flags = load.arrivals.flags(divisor);
        flags.extend(numbers.split(' ').map(str::to_owned));
        for class in load.classes {
            flags.extend(["--class", class].map(str::to_owned));
        }
        if load.is_unnamed {
            flags.extend(["--statements", "unnamed"].map(str::to_owned));
        }
        flags.extend(self.set_up.users.iter().map(|flag| (*flag).to_owned()));
        flags
    }

    /// Users come; the report.
    pub fn users(&self, load: &Load<'_>) -> Result<Value> {
        let flags = self.run_flags(load);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let tries = if self.bench.is_quick { 1 } else { TRIES_MAX };
        let printed = undisturbed(tries, || self.load("run", load.port, &flags))?;
        let report: Value =
            serde_json::from_str(&printed).context("the users printed no report")?;
        // In so short a run a few may be late, or wait for a session.
        let is_fine =
            self.bench.is_quick || report["verdict"] == "VALID" || is_overloaded(&printed);
        ensure!(is_fine, "the users: {printed}");
        Ok(report)
    }

    /// Users come and stay until they are dropped, or their time is over.
    pub fn users_meanwhile(&self, load: &Load<'_>) -> Result<OwnedChild> {
        let mut command = self.command("run", load.port);
        command.args(self.run_flags(load));
        self.bench.start(command)
    }

    /// Another configuration for the gate, which it reads at its start or at SIGHUP.
    pub fn configure(&self, config: &str) -> Result<()> {
        let path = self.database.config_path(GATE_PORT);
        Ok(fs::write(path, self.with_head(config))?)
    }

    fn with_head(&self, config: &str) -> String {
        format!(
            "admins = [\"postgres\"]\nmetrics = \"{}\"\n{config}",
            self.metrics
        )
    }

    /// A gate with this configuration, which says nothing of databases.
    pub fn gate(&self, config: &str) -> Result<OwnedChild> {
        self.database
            .gate(self.bench, GATE_PORT, Some(&self.with_head(config)), &[])
    }

    /// Whether the data is as it must be.
    pub fn check(&self) -> Result<()> {
        self.bench.output(self.command("check", None)).map(drop)
    }
}

/// A folder in memory that every user may enter.
fn in_memory() -> Result<tempfile::TempDir> {
    use std::os::unix::fs::PermissionsExt;
    let everybody = fs::Permissions::from_mode(0o755);
    let folder = tempfile::Builder::new()
        .permissions(everybody)
        .tempdir_in(Path::new(MEMORY));
    folder.with_context(|| format!("a folder in {MEMORY}"))
}

/// Whether more was wanted than could be done, so that transactions waited for a session: that is
/// part of their response times.
fn is_overloaded(report: &str) -> bool {
    report.contains("waited for a session")
}

/// A figure of a report.
pub fn number(report: &Value, pointer: &str) -> Result<f64> {
    let value = report.pointer(pointer).and_then(Value::as_f64);
    value.with_context(|| format!("the report has no {pointer}"))
}
