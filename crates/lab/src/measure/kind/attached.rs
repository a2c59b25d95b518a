//! `attached`: response times of transactions by class, with `sooner attach postgres` beside the
//! server or without, through a gate or not.

use super::oltp::{Load, LoadedDatabase};
use super::set_ups::{SetUp, set_up};
use super::{Keys, Kind, keys_of};
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};
use sooner_testbed::OwnedChild;
use std::fs;
use std::time::{Duration, Instant};

/// Of transactions that are of another class than the rest.
const HIGH: &str = "high=0.1";
const CLASSES: &str = "[[class]]\nname = \"high\"\npriority = 1\napplication_name = [\"high\"]\n\
                       [[class]]\nname = \"rest\"\npriority = 2\napplication_name = [\"rest\"]\n";
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);
const WARM_UP_SECONDS: u64 = 3;

/// `attached`.
#[derive(Debug)]
pub struct Attached {
    keys: AttachedKeys,
    set_up: &'static SetUp,
    ways: Vec<Way>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AttachedKeys {
    set_up: String,
    users: u32,
    seconds: u64,
    /// Whether there are transactions of the class that goes first.
    #[serde(default = "is_so")]
    has_high: bool,
}

fn is_so() -> bool {
    true
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    /// Flags of `attach postgres`; without, nothing is attached.
    attach: Option<Vec<String>>,
    /// Transactions inside at a time; without, there is no gate.
    inside: Option<u32>,
}

impl Attached {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        let own: AttachedKeys = keys.own()?;
        Ok(Box::new(Self {
            set_up: set_up(&own.set_up)?,
            keys: own,
            ways: keys.ways()?,
        }))
    }

    fn measure(
        &self,
        loaded: &LoadedDatabase<'_>,
        way: &Way,
        turn: u32,
    ) -> Result<Map<String, Value>> {
        let bench = loaded.bench;
        let gate_socket = loaded
            .database
            .folder()
            .join(format!("priorities-{}.sock", bench.number()));
        let attached = match &way.attach {
            Some(flags) => Some(attach(loaded, flags, &gate_socket)?),
            None => None,
        };
        let _gate = match way.inside {
            Some(inside) => {
                let told = match attached {
                    Some(_) => format!("priorities = \"{}\"\n", gate_socket.display()),
                    None => String::new(),
                };
                Some(loaded.gate(&format!(
                    "{told}{CLASSES}[limits]\ntransactions = {inside}\n"
                ))?)
            }
            None => None,
        };
        let classes: &[&str] = if self.keys.has_high { &[HIGH] } else { &[] };
        let mut load = Load {
            classes,
            warm_up_seconds: bench.seconds(WARM_UP_SECONDS, 1),
            ..Load::closed(
                self.keys.users,
                bench.seconds(self.keys.seconds, 2),
                turn + 1,
            )
        };
        if way.inside.is_none() {
            load.port = None;
        }
        let report = loaded.users(&load)?;
        let mut row = Map::new();
        if attached.is_some() {
            let status = bench.output(bench.sooner(&["attach", "status", "--json"]))?;
            let status: Value = serde_json::from_str(&status)?;
            row.insert("attached".into(), status[0].clone());
        }
        row.insert("report".into(), report);
        Ok(row)
    }
}

/// `sooner attach postgres` with these flags, told by a gate at `gate_socket`, once it is ready.
fn attach(
    loaded: &LoadedDatabase<'_>,
    flags: &[String],
    gate_socket: &std::path::Path,
) -> Result<OwnedChild> {
    let bench = loaded.bench;
    let classes = loaded.database.folder().join("classes.toml");
    fs::write(&classes, CLASSES)?;
    let pid = loaded.database.id().to_string();
    let mut command = bench.sooner(&["attach", "postgres", "--pid", &pid, "--config"]);
    command
        .arg(classes)
        .arg("--gate")
        .arg(gate_socket)
        .args(flags);
    // The gate runs as the server's user, or as this one.
    if loaded.database.installation.owner().is_some() {
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

impl Kind for Attached {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        let loaded = LoadedDatabase::new(bench, self.set_up)?;
        bench.all_by_turns(measure, record, |_, way, turn| {
            let way = keys_of(measure.place_of_way(way), &self.ways).context("a way")?;
            self.measure(&loaded, way, turn)
        })?;
        loaded.check()
    }
}
