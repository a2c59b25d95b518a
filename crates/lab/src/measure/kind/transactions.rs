//! Transactions of TPC-C or TPC-W on a private PostgreSQL, through a gate: what the kinds that measure its limit and its order have in common.
//!
//! The database has a core to itself; the gate, which needs a fifth of one, and the users have the other.

use super::database::{Database, GATE_PORT, PROXY_CORE};
use super::local::on_core;
use super::slow_disk::{Bounds, MEMORY, SlowDisk};
use super::{Keys, Kind, keys_of};
use crate::measure::calm::undisturbed;
use crate::measure::run::Bench;
use crate::measure::{Measure, Record};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};
use sooner_testbed::OwnedChild;
use std::fs;
use std::path::Path;
use std::process::Command;

/// More than wait at any time where transactions come whatever becomes of others.
const SESSIONS: u32 = 600;
/// Where a gate tells its figures.
pub const METRICS: &str = "127.0.0.1:16432";
/// Of a run in which processor time was stolen.
const TRIES_MAX: u32 = 5;
/// As many inside as ever come.
const ALL: u32 = 100;

/// A database and what is done with it.
#[derive(Debug)]
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
#[derive(Debug)]
enum Storage {
    /// A file system in memory: what a disk does that others share is not measured.
    Memory,
    /// The machine's disk.
    Disk,
    /// A slow disk with little memory before it.
    SlowDisk(Bounds),
}

/// Users of a slow disk while it is fast yet: to fill its caches takes it half a minute later, in which no limit is like another.
const WARM_UP: &[&str] = &["--users", "20", "--for", "90"];
const DURABLE: &[&str] = &["fsync=on"];
/// A commit does not wait for the log, which shares the slow disk. Neither a checkpoint nor autovacuum comes while it is measured: autovacuum reads a
/// whole table, and for half a minute the database does a fifth, whatever the limit is.
const SLOW_DISK: &[&str] = &[
    "fsync=on",
    "synchronous_commit=off",
    "checkpoint_timeout=1h",
    "max_wal_size=20GB",
    "autovacuum=off",
    "shared_buffers=600MB",
];
const LARGE: &[&str] = &["fsync=on", "shared_buffers=1GB", "max_wal_size=4GB"];

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
pub fn set_up(name: &str) -> Result<&'static SetUp, (String, String)> {
    let names: Vec<&str> = SET_UPS.iter().map(|set_up| set_up.name).collect();
    let found = SET_UPS.iter().find(|set_up| set_up.name == name);
    found.ok_or_else(|| {
        let problem = format!("there is no set-up {name}; there are {}", names.join(", "));
        ("set_up".into(), problem)
    })
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

/// A database with a set-up's data, and the place for a gate before it.
pub struct Place<'a> {
    pub bench: &'a Bench<'a>,
    pub database: Database,
    set_up: &'static SetUp,
    // After the database, which is on it.
    disk: Option<SlowDisk>,
    _memory: Option<tempfile::TempDir>,
}

impl<'a> Place<'a> {
    /// A new one, filled.
    pub fn new(bench: &'a Bench<'a>, set_up: &'static SetUp) -> Result<Self> {
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
        let settings = [set_up.database, &["max_connections=250"]].concat();
        let database = Database::start(bench, parent, &settings)?;
        if let Some(disk) = &disk {
            disk.take(database.id())?;
        }
        let place = Self {
            bench,
            database,
            set_up,
            disk,
            _memory: memory,
        };
        let seed = set_up.seed.to_string();
        let mut data = [set_up.data, &["--seed", &seed]].concat();
        if bench.is_quick {
            data.extend(set_up.quick_data());
        }
        place.load("fill", None, &data)?;
        if let Some(disk) = &place.disk {
            place.load("run", None, WARM_UP)?;
            disk.slow_down(place.database.folder())?;
        }
        Ok(place)
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
        Ok(fs::write(path, with_head(config))?)
    }

    /// A gate with this configuration, which says nothing of databases.
    pub fn gate(&self, config: &str) -> Result<OwnedChild> {
        self.database
            .gate(self.bench, GATE_PORT, Some(&with_head(config)), &[])
    }

    /// Whether the data is as it must be.
    pub fn check(&self) -> Result<()> {
        self.bench.output(self.command("check", None)).map(drop)
    }
}

impl SetUp {
    /// Flags that keep its data small where it only shows that everything works.
    fn quick_data(&self) -> &'static [&'static str] {
        match self.kit {
            "tpcc" => &["--customers", "30", "--items", "200"],
            _ => &["--items", "500", "--customers", "500"],
        }
    }
}

fn with_head(config: &str) -> String {
    format!("admins = [\"postgres\"]\nmetrics = \"{METRICS}\"\n{config}")
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

/// `transactions`: response times with so many transactions inside, in an order, where they come in one way or another.
///
/// Where they come whatever becomes of others, their load is a part of what the database can do with so many inside, which is measured anew
/// before each run, so that what the machine does meanwhile concerns all.
#[derive(Debug)]
pub struct Transactions {
    keys: TransactionKeys,
    set_up: &'static SetUp,
    cases: Vec<Arriving>,
    ways: Vec<Inside>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TransactionKeys {
    set_up: String,
    seconds: u64,
    capacity_seconds: u64,
    /// The part of what it can do, where the cases do not say.
    load: Option<f64>,
    /// Whether all cases are measured once a turn.
    #[serde(default)]
    turns_outside: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arriving {
    model: Option<String>,
    users: Option<u32>,
    visit: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inside {
    inside: u32,
    #[serde(default)]
    config: String,
}

impl Transactions {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        let own: TransactionKeys = keys.own()?;
        Ok(Box::new(Self {
            set_up: set_up(&own.set_up)?,
            keys: own,
            cases: keys.cases()?,
            ways: keys.ways()?,
        }))
    }

    fn through(
        &self,
        place: &Place<'_>,
        (inside, config): (u32, &str),
        load: &Load<'_>,
    ) -> Result<Value> {
        let _gate = place.gate(&format!("{config}[limits]\ntransactions = {inside}\n"))?;
        place.users(load)
    }

    fn measure(
        &self,
        place: &Place<'_>,
        case: &super::Item,
        arriving: &Arriving,
        way: &Inside,
        turn: u32,
    ) -> Result<Map<String, Value>> {
        let bench = place.bench;
        let number = |key: &str| case.fields.get(key).and_then(Value::as_f64);
        let model = arriving.model.as_deref().unwrap_or(case.text("model"));
        let mut row = Map::new();
        let arrivals = match (model, arriving.users) {
            ("closed", Some(users)) => {
                row.insert("load_per_sec".into(), Value::Null);
                Arrivals::Closed(users)
            }
            _ => {
                let with = number("of_what_with")
                    .or(number("load_with"))
                    .unwrap_or(f64::from(ALL)) as u32;
                let capacity = Load {
                    warm_up_seconds: 1,
                    ..Load::closed(ALL, bench.seconds(self.keys.capacity_seconds, 1), turn + 1)
                };
                let most_per_sec = self::number(
                    &self.through(place, (with, ""), &capacity)?,
                    "/throughput_per_sec",
                )?;
                let load = number("load").or(self.keys.load).unwrap_or(0.9);
                row.insert("most_per_sec".into(), most_per_sec.into());
                row.insert("load_per_sec".into(), (load * most_per_sec).into());
                let rate = (load * most_per_sec).max(1.0);
                match arriving.visit {
                    None => Arrivals::Open(rate),
                    Some(visit) => Arrivals::PartlyOpen(rate / visit, visit),
                }
            }
        };
        let load = Load {
            arrivals,
            warm_up_seconds: bench.seconds(2, 1),
            ..Load::closed(0, bench.seconds(self.keys.seconds, 2), turn + 1)
        };
        row.insert(
            "report".into(),
            self.through(place, (way.inside, &way.config), &load)?,
        );
        Ok(row)
    }
}

impl Kind for Transactions {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        let place = Place::new(bench, self.set_up)?;
        let one = |case: &super::Item, way: &super::Item, turn: u32| {
            let arriving = keys_of(measure.place_of_case(case), &self.cases)?;
            let way = keys_of(measure.place_of_way(way), &self.ways)?;
            self.measure(&place, case, arriving, way, turn)
        };
        match self.keys.turns_outside {
            true => bench.all_by_turns(measure, record, one)?,
            false => bench.by_turns(measure, record, one)?,
        }
        place.check()
    }
}

/// Whether more was wanted than could be done, so that transactions waited for a session: that is part of their response times.
fn is_overloaded(report: &str) -> bool {
    report.contains("waited for a session")
}

/// A figure of a report.
pub fn number(report: &Value, pointer: &str) -> Result<f64> {
    let value = report.pointer(pointer).and_then(Value::as_f64);
    value.with_context(|| format!("the report has no {pointer}"))
}
