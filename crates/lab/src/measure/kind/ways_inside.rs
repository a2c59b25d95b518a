//! Ways to say who goes first inside a database: `sooner attach postgres` beside it, what the gate
//! does about waits for locks, and the extension `sooner_locks` in the server.

use super::database::{Database, GATE_PORT};
use super::explained::{advice, explain};
use crate::measure::bench::Bench;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};
use sooner_testbed::OwnedChild;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Settings of every server that is measured so.
pub const SERVER_SETTINGS: [&str; 1] = ["max_connections=250"];
const EXTENSION: &str = "shared_preload_libraries=sooner_locks";
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);
/// Where no number is given all are let in at once.
const ALL_INSIDE: u32 = 200;

/// One way.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// Flags of `attach postgres`; without, nothing is attached.
    pub attach: Option<Vec<String>>,
    /// Transactions inside at a time; with neither this, `high` nor `lock_order` there is no gate.
    pub inside: Option<u32>,
    /// Lines of the class that goes first, as `wait_target = "5ms"`.
    pub high: Option<String>,
    /// How the extension orders lock queues; without, it is told nothing.
    pub lock_order: Option<LockOrder>,
    /// The core that the extension's worker has, where it has not the server's.
    pub worker_core: Option<u32>,
    /// Whether `attach postgres --explain` looks meanwhile.
    #[serde(default)]
    pub explain: bool,
}

/// The session with the priority that counts in a lock queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LockOrder {
    /// That of those that wait.
    Priority,
    /// That of those that wait for them as well.
    Inherit,
}

impl Way {
    /// Whether transactions come through a gate.
    pub fn has_gate(&self) -> bool {
        self.inside.is_some() || self.high.is_some() || self.lock_order.is_some()
    }

    /// Sets what the server's extension does.
    pub fn set(&self, bench: &Bench<'_>, database: &Database) -> Result<()> {
        if let Some(order) = self.lock_order {
            let inherit = if order == LockOrder::Inherit {
                "on"
            } else {
                "off"
            };
            database.ask(
                bench,
                &format!("ALTER SYSTEM SET sooner.lock_inherit = {inherit}"),
            )?;
            database.ask(bench, "SELECT pg_reload_conf()")?;
            let worker = worker_of(bench, database)?;
            // It must not wait for a processor behind those that it orders; its README says so.
            real_time(bench, worker)?;
            if let Some(core) = self.worker_core {
                let mut pin = Command::new("taskset");
                pin.args(["-a", "-p", "-c", &core.to_string(), &worker.to_string()]);
                bench.output(pin)?;
            }
        }
        Ok(())
    }

    /// What `attach postgres --explain` says in so many seconds of the class that goes first, where
    /// it is wanted; `matches` is what is said of the two classes.
    pub fn explained(
        &self,
        bench: &Bench<'_>,
        database: &Database,
        seconds: u64,
        matches: [&str; 2],
    ) -> Result<Option<Value>> {
        if !self.explain {
            return Ok(None);
        }
        let config = classes_file(database, matches)?;
        let config = config.to_string_lossy();
        let found = explain(bench, database, seconds, &["--config", &config])?;
        Ok(Some(Value::Object(advice(&found)?)))
    }

    /// The gate's configuration; `told` is the socket of an `attach postgres`, `matches` what is
    /// said of the two classes.
    pub fn gate_config(
        &self,
        bench: &Bench<'_>,
        database: &Database,
        told: Option<&Path>,
        matches: [&str; 2],
    ) -> Result<String> {
        let mut text = String::new();
        if let Some(socket) = told {
            text += &format!("priorities = \"{}\"\n", socket.display());
        }
        let high = self.high.as_deref().unwrap_or_default();
        text += &classes([&format!("{}\n{high}", matches[0]), matches[1]]);
        let inside = self.inside.unwrap_or(ALL_INSIDE);
        text += &format!("[limits]\ntransactions = {inside}\nconnections = {ALL_INSIDE}\n");
        if self.lock_order.is_some() {
            let map = map_of(bench, database)?;
            let (server, map) = (database.address(None).url(), map.display());
            text += &format!(
                "[[database]]\nname = \"*\"\nserver = \"{server}\"\nlock_map = \"{map}\"\n"
            );
        }
        Ok(text)
    }
}

/// Where the server is told priorities.
fn map_of(bench: &Bench<'_>, database: &Database) -> Result<PathBuf> {
    let data = database.ask(bench, "SHOW data_directory")?;
    Ok(Path::new(data.trim()).join("sooner_locks.map"))
}

/// Where its worker's number is in the map (`sooner_locks_map.h`).
const WORKER_AT: usize = 28;

/// The extension's worker.
fn worker_of(bench: &Bench<'_>, database: &Database) -> Result<u32> {
    let map = map_of(bench, database)?;
    let bytes = fs::read(&map).with_context(|| format!("cannot read {}", map.display()))?;
    let worker = bytes.get(WORKER_AT..).and_then(<[u8]>::first_chunk);
    Ok(u32::from_ne_bytes(
        *worker.context("the map has no header")?,
    ))
}

/// A process goes before all ordinary ones from now on.
pub fn real_time(bench: &Bench<'_>, pid: u32) -> Result<()> {
    let mut raise = Command::new("chrt");
    raise.args(["--rr", "--pid", "1", &pid.to_string()]);
    bench.output(raise).map(drop)
}

fn classes([high, rest]: [&str; 2]) -> String {
    format!(
        "[[class]]\nname = \"high\"\npriority = 1\n{high}\n\
         [[class]]\nname = \"rest\"\npriority = 2\n{rest}\n"
    )
}

/// A file with only these classes.
fn classes_file(database: &Database, matches: [&str; 2]) -> Result<PathBuf> {
    let path = database.folder().join("classes.toml");
    fs::write(&path, classes(matches))?;
    Ok(path)
}

/// Settings that a server needs for these ways.
pub fn settings_of(ways: &[Way]) -> Option<&'static str> {
    let needs = ways.iter().any(|way| way.lock_order.is_some());
    needs.then_some(EXTENSION)
}

/// Makes the extension in a server that has started with those settings.
pub fn prepare(bench: &Bench<'_>, database: &Database, ways: &[Way]) -> Result<()> {
    if settings_of(ways).is_some() {
        let made = database.ask(bench, "CREATE EXTENSION IF NOT EXISTS sooner_locks");
        made.context("extension/sooner_locks is not installed; its README says how")?;
    }
    Ok(())
}

/// `sooner attach postgres` with these flags, told by a gate at `gate_socket`, once it is ready.
pub fn attach(
    bench: &Bench<'_>,
    database: &Database,
    flags: &[String],
    gate_socket: &Path,
) -> Result<OwnedChild> {
    let by_name = ["high", "rest"].map(|class| format!("application_name = [\"{class}\"]"));
    let config = classes_file(database, [&by_name[0], &by_name[1]])?;
    let pid = database.id().to_string();
    let mut command = bench.sooner(&["attach", "postgres", "--pid", &pid, "--config"]);
    command
        .arg(config)
        .arg("--gate")
        .arg(gate_socket)
        .args(flags);
    // The gate runs as the server's user, or as this one.
    if database.installation.owner().is_some() {
        command.args(["--gate-user", "postgres"]);
    }
    let mut child = bench.start(command)?;
    let begin = Instant::now();
    loop {
        match child.next_line(LOOK) {
            Ok(line) if line.starts_with("ready") => return Ok(child),
            _ => {
                let is_over = child.has_ended() || begin.elapsed() > PATIENCE;
                ensure!(
                    !is_over,
                    "attach postgres is not ready: {}",
                    child.message()
                );
                bench.pause(Duration::ZERO)?;
            }
        }
    }
}

/// What the gate's console says of waits for locks, by class: its figures by column.
pub fn lock_waits(bench: &Bench<'_>, database: &Database) -> Result<Value> {
    let mut psql = database.client("psql", Some(GATE_PORT), "postgres");
    psql.args(["-XA", "-d", "sooner", "-c", "SHOW LOCK_WAITS"]);
    let table = bench.output(psql)?;
    let mut lines = table.lines().map(|line| line.split('|'));
    let names: Vec<&str> = lines.next().context("no table")?.collect();
    let classes = lines.filter_map(|mut fields| {
        let class = fields.next().filter(|class| !class.is_empty())?;
        let figures = names[1..].iter().zip(fields);
        let figures = figures.filter_map(|(name, field)| {
            let number: f64 = field.parse().ok()?;
            Some(((*name).to_owned(), Value::from(number)))
        });
        let figures: Map<String, Value> = figures.collect();
        (!figures.is_empty()).then(|| (class.to_owned(), figures.into()))
    });
    Ok(Value::Object(classes.collect()))
}
