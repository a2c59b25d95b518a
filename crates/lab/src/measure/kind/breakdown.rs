//! `breakdown`: where transactions' time goes as `sooner attach postgres --explain` tells it, beside
//! what the users measure at the same time and what the server counts itself.

use super::explained::explain;
use super::oltp::{Load, LoadedDatabase, number};
use super::set_ups::{SetUp, set_up};
use super::{Keys, Kind, keys_of};
use crate::measure::bench::Bench;
use crate::measure::{Item, Measure, Record};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};
use sooner_report::stacked::{Bar, Figure, Page, render};
use std::time::{Duration, Instant};

/// What the server counts beside: times of its own waits for files.
const SETTINGS: &[&str] = &[
    "track_io_timing=on",
    "track_wal_io_timing=on",
    "max_connections=350",
];
/// Active and idle inside transactions, ms, of all client sessions; transactions.
const COUNTED: &str = "SELECT sum(active_time), sum(idle_in_transaction_time), \
    sum(xact_commit + xact_rollback) FROM pg_stat_database";
/// Until all users have come.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(200);
const WARM_UP_SECONDS: u64 = 3;
/// So much longer than what is looked at are the users there.
const MORE_SECONDS: u64 = 12;
/// For each user so much more, and as much more is looked at: what logs in gets the processor no
/// sooner than they do, and with many a transaction takes as long as a short look.
const MORE_MS_A_USER: u64 = 100;
/// Parts that a row has, and which of the report's they are.
const PARTS: [(&str, &str, &[&str]); 8] = [
    ("running_ms", "processor, running", &["running"]),
    (
        "processor_wait_ms",
        "processor, waiting",
        &["processor_wait"],
    ),
    (
        "locks_ms",
        "locks",
        &[
            "row_locks",
            "table_locks",
            "advisory_locks",
            "extend_locks",
            "other_locks",
        ],
    ),
    ("light_locks_ms", "lightweight locks", &["light_locks"]),
    ("wal_ms", "write-ahead log", &["wal"]),
    ("data_io_ms", "data I/O", &["data_io"]),
    ("client_ms", "client", &["client"]),
    ("other_ms", "other waits", &["replication", "other"]),
];

/// `breakdown`.
#[derive(Debug)]
pub struct Breakdown {
    keys: BreakdownKeys,
    set_up: &'static SetUp,
    cases: Vec<Users>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BreakdownKeys {
    set_up: String,
    seconds: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Users {}

impl Breakdown {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        let own: BreakdownKeys = keys.own()?;
        Ok(Box::new(Self {
            set_up: set_up(&own.set_up)?,
            keys: own,
            cases: keys.cases()?,
        }))
    }

    fn measure(
        &self,
        loaded: &LoadedDatabase<'_>,
        case: &Item,
        turn: u32,
    ) -> Result<Map<String, Value>> {
        let bench = loaded.bench;
        let users = case.fields.get("users").and_then(Value::as_u64);
        let users = users.context("a case without `users`")? as u32;
        let seconds = bench.seconds(self.keys.seconds, 2);
        let more_seconds = MORE_MS_A_USER * u64::from(users) / 1000;
        let looked_at = seconds + more_seconds;
        let there_seconds = looked_at + more_seconds + MORE_SECONDS;
        let load = Load {
            port: None,
            warm_up_seconds: WARM_UP_SECONDS,
            ..Load::closed(users, there_seconds, turn + 1)
        };
        let child = loaded.users_meanwhile(&load)?;
        let begin = Instant::now();
        let expected = load.users_here(bench.is_quick);
        let question = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rest'";
        while loaded
            .database
            .ask(bench, question)?
            .trim()
            .parse::<u32>()?
            < expected
        {
            ensure!(begin.elapsed() < PATIENCE, "the users have not come");
            bench.pause(LOOK)?;
        }
        bench.pause(Duration::from_secs(WARM_UP_SECONDS + 1))?;
        let before = self.counted(loaded)?;
        let found = explain(bench, &loaded.database, looked_at, &[])?;
        let after = self.counted(loaded)?;
        let report = bench.finish("the users", child, &[0, 1])?;
        let report: Value = serde_json::from_str(&report).context("no report")?;
        row(&found, &report, [before, after])
    }

    fn counted(&self, loaded: &LoadedDatabase<'_>) -> Result<[f64; 3]> {
        let text = loaded.database.ask(loaded.bench, COUNTED)?;
        let numbers = text.trim().split('|').map(str::parse);
        let numbers = numbers.collect::<Result<Vec<f64>, _>>()?;
        numbers
            .try_into()
            .ok()
            .context("psql printed no three figures")
    }
}

/// All figures of one turn.
fn row(
    found: &Value,
    report: &Value,
    [before, after]: [[f64; 3]; 2],
) -> Result<Map<String, Value>> {
    let [active_ms, idle_ms, count] = [0, 1, 2].map(|at| after[at] - before[at]);
    let (response_ms, responses) = (
        number(report, "/all/mean_response_ms")?,
        number(report, "/all/n")?,
    );
    // The server knows of attempts: one that failed in the way of others is made again, and both
    // are in the user's response time.
    let attempts = (responses + number(report, "/all/retries")?) / responses;
    let mut row = super::figures([
        ("users_mean_ms", response_ms / attempts),
        ("users_response_ms", response_ms),
        ("attempts", attempts),
        ("users_per_sec", number(report, "/throughput_per_sec")?),
        ("explained_mean_ms", number(found, "/all/mean_ms")?),
        ("explained_per_sec", number(found, "/all/per_sec")?),
        ("error_ms", number(found, "/all/error_ms")?),
        ("before_ms", number(found, "/all/before_ms")?),
        ("counted_active_ms", active_ms / count),
        ("counted_idle_ms", idle_ms / count),
        ("cost_share", number(found, "/cost/share")?),
        ("interval_ms", number(found, "/cost/interval_ms")?),
        ("busy_share", number(found, "/processors/busy_share")?),
    ]);
    let parts = found.pointer("/all/parts").and_then(Value::as_array);
    for (field, _, names) in PARTS {
        let own = parts.into_iter().flatten();
        let own = own.filter(|part| names.iter().any(|name| part["part"] == *name));
        let own = own.filter_map(|part| part["ms"].as_f64());
        // An empty sum is -0.
        let ms = own.fold(0.0, |sum, ms| sum + ms);
        row.insert(field.into(), ms.into());
    }
    let bottleneck = found.pointer("/advice/0/bottleneck");
    row.insert(
        "bottleneck".into(),
        bottleneck.cloned().unwrap_or(Value::Null),
    );
    Ok(row)
}

impl Kind for Breakdown {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        let loaded = LoadedDatabase::with(bench, self.set_up, SETTINGS)?;
        bench.all_by_turns(measure, record, |case, _, turn| {
            keys_of(measure.place_of_case(case), &self.cases)?;
            self.measure(&loaded, case, turn)
        })?;
        loaded.check()?;
        bench.keep_page(&render(&self.page(&record.rows().0)))
    }
}

impl Breakdown {
    /// The thesis's figure: parts by the number of users, mean of all turns.
    fn page(&self, rows: &[Value]) -> Page {
        let mut users: Vec<u64> = rows
            .iter()
            .filter_map(|row| row["users"].as_u64())
            .collect();
        users.sort_unstable();
        users.dedup();
        let bar = |users: &u64| {
            let own: Vec<&Value> = rows.iter().filter(|row| row["users"] == *users).collect();
            let mean = |field: &str| {
                let sum: f64 = own.iter().filter_map(|row| row[field].as_f64()).sum();
                sum / own.len() as f64
            };
            Bar {
                name: format!("{users} users"),
                whole: format!("{:.1} ms", mean("explained_mean_ms")),
                amounts: PARTS.map(|(field, _, _)| mean(field)).to_vec(),
            }
        };
        Page {
            title: format!("{}: where the time goes", self.set_up.name),
            summary: vec![
                "Of each transaction, as `sooner attach postgres --explain` sees it.".into(),
            ],
            parts: PARTS.map(|(_, name, _)| name.to_owned()).to_vec(),
            figures: vec![Figure {
                heading: "By the number of users".into(),
                caption: "Without thinking times.".into(),
                bars: users.iter().map(bar).collect(),
            }],
        }
    }
}
