//! `lock-queues`: pgbench's transactions on a few rows, one in ten of a class that goes first,
//! through a gate that lets all in: who waits for whom is left to the ways that are compared.

use super::database::{Database, GATE_PORT, PROXY_CORE, pgbench_figure};
use super::ways_inside::{
    SERVER_SETTINGS, Way, attach, lock_waits, prepare, real_time, settings_of,
};
use super::{Keys, Kind, keys_of};
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fs;

/// Rows that all want.
const ROWS: u32 = 3;
/// What a transaction does with the rows `:a` and `:b`, which differ, and the lock it begins with.
/// `REST:` is before what only the rest does.
const LOADS: [(&str, &str, &str); 4] = [
    (
        "for-update",
        "one row FOR UPDATE, some work, an UPDATE of it",
        "BEGIN COMMENT;\n\
         SELECT v FROM hot WHERE id = :a FOR UPDATE COMMENT;\n\
         SELECT count(*) FROM generate_series(1, 6000) COMMENT;\n\
         UPDATE hot SET v = v + 1 WHERE id = :a COMMENT;\n\
         COMMIT COMMENT;\n",
    ),
    (
        "two-updates",
        "UPDATEs of two rows in one order, some work behind each",
        "BEGIN COMMENT;\n\
         UPDATE hot SET v = v + 1 WHERE id = least(:a::int, :b::int) COMMENT;\n\
         SELECT count(*) FROM generate_series(1, 4000) COMMENT;\n\
         UPDATE hot SET v = v + 1 WHERE id = greatest(:a::int, :b::int) COMMENT;\n\
         SELECT count(*) FROM generate_series(1, 4000) COMMENT;\n\
         COMMIT COMMENT;\n",
    ),
    (
        "long-holds",
        "UPDATEs of two rows in one order, some work behind each, the rest's clients slow between",
        "BEGIN COMMENT;\n\
         UPDATE hot SET v = v + 1 WHERE id = least(:a::int, :b::int) COMMENT;\n\
         SELECT count(*) FROM generate_series(1, 4000) COMMENT;\n\
         REST:\\sleep 50 ms\n\
         UPDATE hot SET v = v + 1 WHERE id = greatest(:a::int, :b::int) COMMENT;\n\
         SELECT count(*) FROM generate_series(1, 4000) COMMENT;\n\
         COMMIT COMMENT;\n",
    ),
    (
        "alone",
        "one UPDATE in no transaction",
        "COMMENT UPDATE hot SET v = v + 1 WHERE id = :a\n\
         RETURNING (SELECT count(*) FROM generate_series(1, 4000));\n",
    ),
];
const ONLY_REST: &str = "REST:";
/// How long a way is looked at where that is wanted, shorter than any part's runs.
const EXPLAIN_SECONDS: u64 = 6;
/// What tells the two classes.
const MATCHES: [&str; 2] = [
    "comment = { class = [\"high\"] }",
    "comment = { class = [\"rest\"] }",
];
const CLASSES: [&str; 2] = ["high", "rest"];
/// One in ten is of the first class.
const WEIGHTS: [u32; 2] = [1, 9];

/// `lock-queues`.
#[derive(Debug)]
pub struct LockQueues {
    keys: LockQueuesKeys,
    script: &'static str,
    ways: Vec<Way>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LockQueuesKeys {
    load: String,
    clients: u32,
    seconds: u64,
}

impl LockQueues {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        let own: LockQueuesKeys = keys.own()?;
        let found = LOADS.iter().find(|(name, ..)| *name == own.load);
        let Some((_, _, script)) = found else {
            let names: Vec<&str> = LOADS.iter().map(|(name, ..)| *name).collect();
            let problem = format!(
                "there is no load {}; there are {}",
                own.load,
                names.join(", ")
            );
            return Err(("load".into(), problem));
        };
        Ok(Box::new(Self {
            keys: own,
            script,
            ways: keys.ways()?,
        }))
    }

    fn measure(
        &self,
        bench: &Bench<'_>,
        database: &Database,
        way: &Way,
    ) -> Result<Map<String, Value>> {
        way.set(bench, database)?;
        let socket = database
            .folder()
            .join(format!("priorities-{}.sock", bench.number()));
        let attached = match &way.attach {
            Some(flags) => Some(attach(bench, database, flags, &socket)?),
            None => None,
        };
        let told = attached.is_some().then_some(socket.as_path());
        let config = way.gate_config(bench, database, told, MATCHES)?;
        let config = format!("admins = [\"postgres\"]\n{config}");
        let gate = database.gate(bench, GATE_PORT, Some(&config), &[])?;
        // Who makes the load is elsewhere, where people run it; here it would keep the gate waiting.
        real_time(bench, gate.id())?;
        let before = sum(bench, database)?;
        let seconds = bench.seconds(self.keys.seconds, 2).to_string();
        let clients = self.keys.clients.to_string();
        let mut pgbench = database.client_on(PROXY_CORE, "pgbench", Some(GATE_PORT), "postgres");
        pgbench.args([
            "-n", "-M", "extended", "-c", &clients, "-j", "1", "-T", &seconds,
        ]);
        pgbench.args(["--max-tries", "0", "--failures-detailed"]);
        for (class, weight) in CLASSES.iter().zip(WEIGHTS) {
            let script = database.folder().join(format!("{class}.sql"));
            let head = format!(
                "\\set a random(1, {ROWS})\n\\set b 1 + (:a + random(0, {})) % {ROWS}\n",
                ROWS - 2
            );
            fs::write(&script, head + &self.script_of(class))?;
            pgbench
                .arg("-f")
                .arg(format!("{}@{weight}", script.display()));
        }
        pgbench.arg("postgres");
        let child = bench.start(pgbench)?;
        let found = way.explained(bench, database, bench.seconds(EXPLAIN_SECONDS, 1), MATCHES)?;
        let printed = bench.finish("pgbench", child, &[0])?;
        let mut row = figures(&printed)?;
        if let Some(found) = found {
            row.insert("explained".into(), found);
        }
        let done = sum(bench, database)? - before;
        let updates = self.script.matches("SET v").count() as f64;
        let count = row["transactions"].as_f64().context("no count")?;
        // Those under way at the end are done and not counted.
        let most = count * updates + f64::from(self.keys.clients) * updates;
        ensure!(
            (count * updates..=most).contains(&done),
            "{count} transactions were done, and the rows say {done}: something was lost or done twice"
        );
        row.insert("lock_waits".into(), lock_waits(bench, database)?);
        Ok(row)
    }

    /// What transactions of a class do.
    fn script_of(&self, class: &str) -> String {
        let is_for = |line: &&str| class == "rest" || !line.starts_with(ONLY_REST);
        let lines = self.script.lines().filter(is_for);
        let lines = lines.map(|line| line.trim_start_matches(ONLY_REST));
        let lines: Vec<String> = lines
            .map(|line| line.replace("COMMENT", &format!("/*class='{class}'*/")) + "\n")
            .collect();
        lines.concat()
    }
}

fn sum(bench: &Bench<'_>, database: &Database) -> Result<f64> {
    Ok(database
        .ask(bench, "SELECT sum(v) FROM hot")?
        .trim()
        .parse()?)
}

/// What pgbench prints of all and of each class.
fn figures(printed: &str) -> Result<Map<String, Value>> {
    let (all, scripts) = printed
        .split_once("SQL script 1:")
        .context("pgbench tells nothing of its scripts")?;
    let mut row = super::figures([
        ("throughput_per_sec", pgbench_figure(all, "tps = ")?),
        (
            "transactions",
            pgbench_figure(all, "number of transactions actually processed: ")?,
        ),
        (
            "retries",
            pgbench_figure(all, "total number of retries: ").unwrap_or(0.0),
        ),
    ]);
    for (class, text) in CLASSES.iter().zip(scripts.split("SQL script 2:")) {
        let ms = pgbench_figure(text, "latency average = ")?;
        row.insert(format!("{class}_ms"), ms.into());
    }
    Ok(row)
}

impl Kind for LockQueues {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        let mut settings = SERVER_SETTINGS.to_vec();
        settings.extend(settings_of(&self.ways));
        let database = Database::start(bench, bench.scratch(), &settings)?;
        prepare(bench, &database, &self.ways)?;
        database.ask(
            bench,
            &format!("CREATE TABLE hot AS SELECT id, 0 AS v FROM generate_series(1, {ROWS}) AS id"),
        )?;
        database.ask(bench, "ALTER TABLE hot ADD PRIMARY KEY (id)")?;
        bench.all_by_turns(measure, record, |_, way, _| {
            let way = keys_of(measure.place_of_way(way), &self.ways).context("a way")?;
            self.measure(bench, &database, way)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pgbench_prints_of_two_scripts_is_read() {
        let printed = "number of transactions actually processed: 500\n\
             number of transactions retried: 3 (0.600%)\ntotal number of retries: 4\n\
             latency average = 40.0 ms\ntps = 100.5 (without initial connection time)\n\
             SQL script 1: high.sql\n - latency average = 4.5 ms\n\
             SQL script 2: rest.sql\n - latency average = 44.5 ms\n";
        let row = figures(printed).unwrap();
        assert_eq!(
            (row["high_ms"].as_f64(), row["rest_ms"].as_f64()),
            (Some(4.5), Some(44.5))
        );
        assert_eq!(
            (row["throughput_per_sec"].as_f64(), row["retries"].as_f64()),
            (Some(100.5), Some(4.0))
        );
    }
}
