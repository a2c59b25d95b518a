//! `attached`: response times of transactions by class, with `sooner attach postgres` beside the
//! server or without, through a gate or not.

use super::inside_page::page;
use super::oltp::{Load, LoadedDatabase};
use super::set_ups::{SetUp, set_up};
use super::ways_inside::{SERVER_SETTINGS, Way, attach, lock_waits, prepare, settings_of};
use super::{Keys, Kind, keys_of};
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value};
use sooner_report::curves::render;
use std::time::Duration;

/// Of transactions that are of another class than the rest.
const HIGH: &str = "high=0.1";
/// What tells the two classes.
const MATCHES: [&str; 2] = [
    "application_name = [\"high\"]",
    "application_name = [\"rest\"]",
];
const WARM_UP_SECONDS: u64 = 3;
/// Until all users have come.
const LOGIN_SECONDS: u64 = 1;

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
        let database = &loaded.database;
        way.set(bench, database)?;
        let attached = match &way.attach {
            Some(flags) => Some(attach(bench, database, flags, &gate_socket)?),
            None => None,
        };
        let told = attached.is_some().then_some(gate_socket.as_path());
        let _gate = match way.has_gate() {
            true => Some(loaded.gate(&way.gate_config(bench, database, told, MATCHES)?)?),
            false => None,
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
        if !way.has_gate() {
            load.port = None;
        }
        let mut row = Map::new();
        let report = match way.explain {
            false => loaded.users(&load)?,
            true => {
                let child = loaded.users_meanwhile(&load)?;
                bench.pause(Duration::from_secs(load.warm_up_seconds + LOGIN_SECONDS))?;
                let seconds = load.seconds.saturating_sub(LOGIN_SECONDS + 1).max(1);
                let found = way.explained(bench, database, seconds, MATCHES)?;
                row.insert("explained".into(), found.unwrap_or_default());
                bench.report(child)?
            }
        };
        if way.has_gate() {
            row.insert("lock_waits".into(), lock_waits(bench, database)?);
        }
        if let Some(child) = &attached {
            let status = bench.output(bench.sooner(&["attach", "status", "--json"]))?;
            let status: Vec<Value> = serde_json::from_str(&status)?;
            // Others may be attached to other servers.
            let own = status.into_iter().find(|one| one["pid"] == child.id());
            row.insert("attached".into(), own.unwrap_or_default());
        }
        row.insert("report".into(), report);
        Ok(row)
    }
}

impl Kind for Attached {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        let mut settings = SERVER_SETTINGS.to_vec();
        settings.extend(settings_of(&self.ways));
        let loaded = LoadedDatabase::with(bench, self.set_up, &settings)?;
        prepare(bench, &loaded.database, &self.ways)?;
        bench.all_by_turns(measure, record, |_, way, turn| {
            let way = keys_of(measure.place_of_way(way), &self.ways).context("a way")?;
            self.measure(&loaded, way, turn)
        })?;
        loaded.check()?;
        let names = measure
            .ways
            .iter()
            .filter_map(|way| way.fields.get("way")?.as_str());
        let ways: Vec<(&str, &Way)> = names.zip(&self.ways).collect();
        match page(self.set_up.name, &ways, &record.rows().0) {
            Some(page) => bench.keep_page(&render(&page)),
            None => Ok(()),
        }
    }
}
