//! Transactions of 100 users without a pause on a private PostgreSQL, through a gate: what the benches of its orders have in common.
//!
//! The database has a core to itself; the gate, which needs a fifth of one, and the users have the other.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::link::Running;
use super::postgres::{DATABASE_PORT, Folder, GATE_PORT, PROXY_CORE};
use super::server::sooner;
use super::slow_disk::{Bounds, MEMORY, SlowDisk};
use super::stolen::undisturbed;

/// A database and what is done with it.
pub struct SetUp {
    pub name: &'static str,
    kit: &'static str,
    data: &'static [&'static str],
    users: &'static [&'static str],
    database: &'static [&'static str],
    storage: Storage,
    /// Of the data; users' seeds count from here.
    seed: u32,
}

/// Where the database and its log are.
enum Storage {
    /// A file system in memory: what a disk does that others share concerns nobody.
    Memory,
    /// The machine's disk.
    Disk,
    /// A slow disk with little memory before it.
    SlowDisk(Bounds),
}

/// More than wait at any time where transactions come whatever becomes of others.
const SESSIONS: u32 = 600;
/// Where a gate tells its figures.
pub const METRICS: &str = "127.0.0.1:16432";
/// Of a run in which processor time was stolen.
const TRIES_MAX: u32 = 5;
/// Users of a slow disk while it is fast yet: to fill its caches takes it half a minute later, in which no limit is like another.
const WARM_UP: &[&str] = &["--users", "20", "--for", "90"];
const DURABLE: &[&str] = &["-c", "fsync=on"];
/// A commit does not wait for the log, which shares the slow disk. Neither a checkpoint nor autovacuum comes while it is measured: autovacuum reads a
/// whole table, and for half a minute the database does a fifth, whatever the limit is.
const SLOW_DISK: &[&str] = &[
    "-c",
    "fsync=on",
    "-c",
    "synchronous_commit=off",
    "-c",
    "checkpoint_timeout=1h",
    "-c",
    "max_wal_size=20GB",
    "-c",
    "autovacuum=off",
    "-c",
    "shared_buffers=600MB",
];
const LARGE: &[&str] = &[
    "-c",
    "fsync=on",
    "-c",
    "shared_buffers=1GB",
    "-c",
    "max_wal_size=4GB",
];

/// Locks, processor, disk and both; then other sizes, a fresh seed, and the log on the machine's own disk.
pub const SET_UPS: [SetUp; 12] = [
    SetUp {
        name: "tpcc-1",
        kit: "tpcc",
        data: &["--warehouses", "1"],
        users: &[],
        database: DURABLE,
        storage: Storage::Memory,
        seed: 1,
    },
    SetUp {
        name: "tpcc-10",
        kit: "tpcc",
        data: &["--warehouses", "10"],
        users: &[],
        database: DURABLE,
        storage: Storage::Memory,
        seed: 1,
    },
    SetUp {
        name: "tpcc-10-repeatable-read",
        kit: "tpcc",
        data: &["--warehouses", "10"],
        users: &["--isolation", "repeatable-read"],
        database: DURABLE,
        storage: Storage::Memory,
        seed: 1,
    },
    SetUp {
        name: "tpcw-browsing",
        kit: "tpcw",
        data: &[],
        users: &["--mix", "browsing"],
        database: LARGE,
        storage: Storage::Memory,
        seed: 1,
    },
    SetUp {
        name: "tpcw-shopping",
        kit: "tpcw",
        data: &[],
        users: &["--mix", "shopping"],
        database: LARGE,
        storage: Storage::Memory,
        seed: 1,
    },
    SetUp {
        name: "tpcw-ordering",
        kit: "tpcw",
        data: &[],
        users: &["--mix", "ordering"],
        database: LARGE,
        storage: Storage::Memory,
        seed: 1,
    },
    // Three gigabytes of which a fifth is in the database's own memory: what 100 connections need besides takes nothing of that.
    SetUp {
        name: "tpcc-30-disk",
        kit: "tpcc",
        data: &["--warehouses", "30"],
        users: &[],
        database: SLOW_DISK,
        storage: Storage::SlowDisk(Bounds {
            memory_mib: 1100,
            reads_per_sec: 1500,
            size_mib: 16384,
        }),
        seed: 1,
    },
    SetUp {
        name: "tpcc-30-balanced",
        kit: "tpcc",
        data: &["--warehouses", "30"],
        users: &[],
        database: SLOW_DISK,
        storage: Storage::SlowDisk(Bounds {
            memory_mib: 1100,
            reads_per_sec: 4500,
            size_mib: 16384,
        }),
        seed: 1,
    },
    // More than shared memory holds, and five times as many books and customers.
    SetUp {
        name: "tpcc-30",
        kit: "tpcc",
        data: &["--warehouses", "30"],
        users: &[],
        database: DURABLE,
        storage: Storage::Memory,
        seed: 1,
    },
    SetUp {
        name: "tpcw-large",
        kit: "tpcw",
        data: &["--items", "50000", "--customers", "50000"],
        users: &["--mix", "shopping"],
        database: LARGE,
        storage: Storage::Memory,
        seed: 1,
    },
    SetUp {
        name: "tpcw-shopping-fresh-seed",
        kit: "tpcw",
        data: &[],
        users: &["--mix", "shopping"],
        database: LARGE,
        storage: Storage::Memory,
        seed: 1000,
    },
    SetUp {
        name: "tpcc-10-on-disk",
        kit: "tpcc",
        data: &["--warehouses", "10"],
        users: &[],
        database: DURABLE,
        storage: Storage::Disk,
        seed: 1,
    },
];

/// The set-up of this name.
pub fn set_up(name: &str) -> anyhow::Result<&'static SetUp> {
    let found = SET_UPS.iter().find(|set_up| set_up.name == name);
    found.with_context(|| format!("there is no set-up {name}"))
}

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
    /// As flags of `sooner load tpcc run`.
    fn flags(self) -> Vec<String> {
        let words = match self {
            Self::Closed(users) => format!("--users {users}"),
            Self::Open(rate) => format!("--model open --rate {rate} --sessions {SESSIONS}"),
            Self::PartlyOpen(visits, transactions) => format!(
                "--model partly-open --rate {visits} --visit {transactions} --sessions {SESSIONS}"
            ),
        };
        words.split(' ').map(str::to_owned).collect()
    }
}

/// What users do.
#[derive(Clone, Copy)]
pub struct Load<'a> {
    pub arrivals: Arrivals,
    pub seconds: u32,
    /// Not measured, at the beginning.
    pub warm_up_seconds: u32,
    pub seed: u32,
    /// Classes, as `--class` takes them; who is in none is in `rest`.
    pub classes: &'a [&'a str],
    /// Whether statements have no names.
    pub is_unnamed: bool,
    /// Whom they ask.
    pub port: &'a str,
}

impl Load<'_> {
    /// So many users without a pause, through the gate.
    pub fn closed(users: u32, seconds: u32, seed: u32) -> Self {
        Self {
            arrivals: Arrivals::Closed(users),
            seconds,
            warm_up_seconds: 3,
            seed,
            classes: &[],
            is_unnamed: false,
            port: GATE_PORT,
        }
    }
}

/// A database with a set-up's data, and the place for a gate before it.
pub struct Place {
    pub folder: Folder,
    set_up: &'static SetUp,
    _database: Running,
    /// After the database, which is on it.
    disk: Option<SlowDisk>,
}

impl Place {
    /// A new one, filled.
    pub fn new(set_up: &'static SetUp) -> anyhow::Result<Self> {
        let disk = match set_up.storage {
            Storage::SlowDisk(bounds) => Some(SlowDisk::new(bounds)?),
            _ => None,
        };
        let folder = match (&set_up.storage, &disk) {
            (_, Some(disk)) => Folder::new_in(disk.path())?,
            (Storage::Memory, None) => Folder::new_in(Path::new(MEMORY))?,
            _ => Folder::new()?,
        };
        let many = [set_up.database, &["-c", "max_connections=250"]].concat();
        let database = folder.database_with(&many)?;
        if let Some(disk) = &disk {
            disk.take(database.id())?;
        }
        let place = Self {
            _database: database,
            disk,
            folder,
            set_up,
        };
        let seed = set_up.seed.to_string();
        let data = [set_up.data, &["--seed", &seed]].concat();
        place.load("fill", DATABASE_PORT, &data)?;
        if let Some(disk) = &place.disk {
            place.load("run", DATABASE_PORT, WARM_UP)?;
            disk.slow_down(place.folder.path())?;
        }
        Ok(place)
    }

    /// A command of the kit's.
    fn command(&self, what: &str, port: &str) -> Command {
        let folder = self.folder.path().display();
        let url = format!("postgresql:///postgres?host={folder}&port={port}&user=postgres");
        let mut command = Command::new("taskset");
        command.args(["-c", PROXY_CORE, &sooner(), "load", self.set_up.kit, what]);
        command.args(["--url", &url]);
        command
    }

    fn load(&self, what: &str, port: &str, more: &[&str]) -> anyhow::Result<Vec<u8>> {
        let output = self.command(what, port).args(more).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let printed = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success() || is_overloaded(&printed),
            "{what}: {}{printed}",
            said.trim()
        );
        Ok(output.stdout)
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
        let mut flags = load.arrivals.flags();
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
    pub fn users(&self, load: &Load<'_>) -> anyhow::Result<Value> {
        let flags = self.run_flags(load);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let printed = undisturbed(TRIES_MAX, || self.load("run", load.port, &flags))?;
        Ok(serde_json::from_slice(&printed)?)
    }

    /// Users come and stay until they are dropped, or their time is over.
    pub fn users_meanwhile(&self, load: &Load<'_>) -> anyhow::Result<Running> {
        let mut command = self.command("run", load.port);
        command.args(self.run_flags(load));
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Running(quiet.spawn()?))
    }

    /// Another configuration for the gate that reads this one at its start or at SIGHUP.
    pub fn configure(&self, config: &str) -> anyhow::Result<PathBuf> {
        let file = self.folder.path().join("gate.toml");
        let head = format!("admins = [\"postgres\"]\nmetrics = \"{METRICS}\"\n");
        fs::write(&file, head + config)?;
        Ok(file)
    }

    /// A gate with this configuration, which says nothing of databases; what it says is in [`log`](Self::log).
    pub fn gate(&self, config: &str) -> anyhow::Result<Running> {
        let file = self.configure(config)?;
        let log = File::create(self.log())?;
        let gate =
            self.folder
                .gate_with(GATE_PORT, &["--config", &file.display().to_string()], log);
        gate.with_context(|| fs::read_to_string(self.log()).unwrap_or_default())
    }

    /// Where a gate's words are.
    pub fn log(&self) -> PathBuf {
        self.folder.path().join("gate.log")
    }

    /// Whether the data is as it must be.
    pub fn check(&self) -> anyhow::Result<()> {
        self.load("check", DATABASE_PORT, &[]).map(drop)
    }
}

/// Whether more was wanted than could be done, so that transactions waited for a session: that is part of their response times.
fn is_overloaded(report: &str) -> bool {
    report.contains("waited for a session")
}

/// A figure of a report.
pub fn number(report: &Value, pointer: &str) -> anyhow::Result<f64> {
    let value = report.pointer(pointer).and_then(Value::as_f64);
    value.with_context(|| format!("the report has no {pointer}"))
}
