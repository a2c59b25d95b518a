//! Transactions of 100 users without a pause on a private PostgreSQL, through a gate: what the benches of its orders have in common.
//!
//! The database has a core to itself; the gate, which needs a fifth of one, and the users have the other.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::link::Running;
use super::postgres::{Folder, GATE_PORT, PROXY_CORE};
use super::server::sooner;

/// A database and what is done with it.
pub struct SetUp {
    pub name: &'static str,
    kit: &'static str,
    data: &'static [&'static str],
    users: &'static [&'static str],
    database: &'static [&'static str],
}

const DURABLE: &[&str] = &["-c", "fsync=on"];
const LARGE: &[&str] = &["-c", "shared_buffers=1GB", "-c", "max_wal_size=4GB"];

/// Locks, processor, disk and both, as far as there are such on a machine with a fast disk.
pub const SET_UPS: [SetUp; 6] = [
    SetUp {
        name: "tpcc-1",
        kit: "tpcc",
        data: &["--warehouses", "1"],
        users: &[],
        database: DURABLE,
    },
    SetUp {
        name: "tpcc-10",
        kit: "tpcc",
        data: &["--warehouses", "10"],
        users: &[],
        database: DURABLE,
    },
    SetUp {
        name: "tpcc-10-repeatable-read",
        kit: "tpcc",
        data: &["--warehouses", "10"],
        users: &["--isolation", "repeatable-read"],
        database: DURABLE,
    },
    SetUp {
        name: "tpcw-browsing",
        kit: "tpcw",
        data: &[],
        users: &["--mix", "browsing"],
        database: LARGE,
    },
    SetUp {
        name: "tpcw-shopping",
        kit: "tpcw",
        data: &[],
        users: &["--mix", "shopping"],
        database: LARGE,
    },
    SetUp {
        name: "tpcw-ordering",
        kit: "tpcw",
        data: &[],
        users: &["--mix", "ordering"],
        database: LARGE,
    },
];

/// The set-up of this name.
pub fn set_up(name: &str) -> anyhow::Result<&'static SetUp> {
    let found = SET_UPS.iter().find(|set_up| set_up.name == name);
    found.with_context(|| format!("there is no set-up {name}"))
}

/// What users do.
pub struct Load<'a> {
    pub users: u32,
    pub seconds: u32,
    pub seed: u32,
    /// Classes, as `--class` takes them; who is in none is in `rest`.
    pub classes: &'a [String],
}

/// A database with a set-up's data, and the place for a gate before it.
pub struct Place {
    pub folder: Folder,
    set_up: &'static SetUp,
    _database: Running,
}

impl Place {
    /// A new one, filled.
    pub fn new(set_up: &'static SetUp) -> anyhow::Result<Self> {
        let folder = Folder::new()?;
        let many = [set_up.database, &["-c", "max_connections=250"]].concat();
        let place = Self {
            _database: folder.database_with(&many)?,
            folder,
            set_up,
        };
        place.load("fill", "5432", set_up.data)?;
        Ok(place)
    }

    /// A command of the kit's.
    fn load(&self, what: &str, port: &str, more: &[&str]) -> anyhow::Result<Vec<u8>> {
        let folder = self.folder.path().display();
        let url = format!("postgresql:///postgres?host={folder}&port={port}&user=postgres");
        let mut command = Command::new("taskset");
        command.args(["-c", PROXY_CORE, &sooner(), "load", self.set_up.kit, what]);
        command.args(["--url", &url]).args(more);
        let output = command.stderr(Stdio::piped()).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let printed = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "{what}: {}{printed}", said.trim());
        Ok(output.stdout)
    }

    /// Users come through the gate; the report.
    pub fn users(&self, load: &Load<'_>) -> anyhow::Result<Value> {
        let numbers = [load.users, load.seconds, load.seed].map(|number| number.to_string());
        let [users, seconds, seed] = &numbers;
        let mut flags = vec![
            "--users",
            users,
            "--for",
            seconds,
            "--warm-up",
            "3",
            "--seed",
            seed,
            "--remarks",
            "--json",
        ];
        flags.extend(load.classes.iter().flat_map(|class| ["--class", class]));
        flags.extend(self.set_up.users);
        let printed = self.load("run", GATE_PORT, &flags)?;
        Ok(serde_json::from_slice(&printed)?)
    }

    /// A gate with this configuration, which says nothing of databases; what it says is in [`log`](Self::log).
    pub fn gate(&self, config: &str) -> anyhow::Result<Running> {
        let file = self.folder.path().join("gate.toml");
        fs::write(&file, format!("admins = [\"postgres\"]\n{config}"))?;
        let log = File::create(self.log())?;
        self.folder
            .gate_with(GATE_PORT, &["--config", &file.display().to_string()], log)
    }

    /// Where a gate's words are.
    pub fn log(&self) -> PathBuf {
        self.folder.path().join("gate.log")
    }

    /// Whether the data is as it must be.
    pub fn check(&self) -> anyhow::Result<()> {
        self.load("check", "5432", &[]).map(drop)
    }
}

/// A figure of a report.
pub fn number(report: &Value, pointer: &str) -> anyhow::Result<f64> {
    let value = report.pointer(pointer).and_then(Value::as_f64);
    value.with_context(|| format!("the report has no {pointer}"))
}
