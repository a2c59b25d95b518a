//! `beside-reports`: small transactions at a rate beside a few reports that overlap, in a private
//! PostgreSQL, with a gate that caps the reports or without.

use super::database::{Database, GATE_PORT, pgbench_figure};
use super::{Keys, Kind, figures, keys_of};
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

const REPORT_FILE: &str = "report.sql";
/// A report goes through the accounts so often, and so often, to see how long that takes: the
/// difference leaves out what begins a query (compiling it takes as long as several passes).
const TRIALS: [u32; 2] = [5, 25];
/// Of the end, in which it is looked whether small ones wait, s.
const END_SECONDS: f64 = 30.0;

/// `beside-reports`.
#[derive(Debug)]
pub struct BesideReports {
    keys: ReportKeys,
    ways: Vec<Way>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportKeys {
    /// Lookups by key.
    small_per_second: u32,
    small_clients: u32,
    /// Reports at a time, each followed by another.
    reports: u32,
    /// What one takes alone.
    report_seconds: u32,
    seconds: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    /// The gate's; none: no gate.
    config: Option<String>,
}

impl BesideReports {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(Self {
            keys: keys.own()?,
            ways: keys.ways()?,
        }))
    }

    /// Writes a report that takes as long as it is to.
    fn write_report(&self, bench: &Bench<'_>, database: &Database) -> Result<()> {
        let sql = |times: u32| {
            format!(
                "SELECT sum(sqrt(aid::float8 * times)) FROM pgbench_accounts, \
                 generate_series(1, {times}) times;\n"
            )
        };
        database.ask(bench, &sql(1))?;
        let [short_s, long_s] = TRIALS.map(|times| {
            let begin = Instant::now();
            let asked = database.ask(bench, &sql(times));
            asked.map(|_| begin.elapsed().as_secs_f64())
        });
        let (short_s, long_s) = (short_s?, long_s?);
        let per_pass = |s: f64, passes: u32| s / f64::from(passes);
        // On a machine that changes meanwhile the short one may take nearly as long.
        let once_s = per_pass(long_s - short_s, TRIALS[1] - TRIALS[0])
            .max(per_pass(long_s / 5.0, TRIALS[1]));
        let wanted_s = bench.seconds(self.keys.report_seconds.into(), 2) as f64;
        let times = (wanted_s / once_s).ceil().max(1.0) as u32;
        bench.tell(&format!("a report goes through the accounts {times} times"));
        fs::write(database.folder().join(REPORT_FILE), sql(times))?;
        Ok(())
    }

    fn measure(
        &self,
        bench: &Bench<'_>,
        database: &Database,
        way: &Way,
    ) -> Result<Map<String, Value>> {
        let config = way.config.as_deref();
        let gate = config
            .map(|config| database.gate(bench, GATE_PORT, Some(config), &[]))
            .transpose()?;
        let port = gate.as_ref().map(|_| GATE_PORT);
        let seconds = bench.seconds(self.keys.seconds, 10);
        let pgbench = |user: &str, clients: u32, words: &[&str]| {
            let mut command = database.client("pgbench", port, user);
            command.args(["-n", "-c", &clients.to_string()]);
            command.args(["-T", &seconds.to_string(), "--log"]);
            command.arg("--log-prefix").arg(log_of(database, user));
            command.args(words).arg("postgres");
            bench.start(command)
        };
        for user in ["app", "analyst"] {
            remove_logs(database, user)?;
        }
        let begin_s = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
        let reports = pgbench("analyst", self.keys.reports, &["-f", REPORT_FILE])?;
        let rate = self.keys.small_per_second.to_string();
        let words = ["-S", "-M", "prepared", "-R", &rate];
        let small = pgbench("app", self.keys.small_clients, &words)?;
        let failed = |printed: &str| pgbench_figure(printed, "number of failed transactions: ");
        let small = bench.finish("pgbench", small, &[0])?;
        let reports = bench.finish("pgbench", reports, &[0])?;
        let until_s = begin_s + seconds as f64;
        let mut row = of_small(read_log(database, "app")?, seconds as f64, until_s);
        let mut of_reports = read_log(database, "analyst")?;
        of_reports.retain(|one| one.at_s <= until_s);
        row.extend(figures([
            ("reports_done", of_reports.len() as f64),
            (
                "report_mean_s",
                mean(of_reports.iter().map(|one| one.ms / 1000.0)),
            ),
            ("failed", failed(&small)? + failed(&reports)?),
        ]));
        Ok(row)
    }
}

/// How long they took, and whether some still wait at the end.
fn of_small(mut all: Vec<Done>, seconds: f64, until_s: f64) -> Map<String, Value> {
    let of_end = all.iter().filter(|one| one.at_s > until_s - END_SECONDS);
    let lag_ms = mean(of_end.map(|one| one.lag_ms));
    all.sort_by(|one, other| one.ms.total_cmp(&other.ms));
    let at = |share: f64| {
        let place = (share * all.len() as f64) as usize;
        let place = place.min(all.len().saturating_sub(1));
        all.get(place).map_or(0.0, |one| one.ms)
    };
    figures([
        ("small_per_second", all.len() as f64 / seconds),
        ("small_mean_ms", mean(all.iter().map(|one| one.ms))),
        ("small_p50_ms", at(0.5)),
        ("small_p99_ms", at(0.99)),
        ("small_p99_9_ms", at(0.999)),
        ("small_max_ms", at(1.0)),
        ("small_lag_at_the_end_ms", lag_ms),
    ])
}

fn mean(of: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = of.fold((0_u64, 0.0), |(count, sum), one| (count + 1, sum + one));
    sum / count.max(1) as f64
}

impl Kind for BesideReports {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        bench.need(&["taskset"])?;
        let settings = ["max_connections=100", "max_parallel_workers_per_gather=0"];
        let database = Database::start(bench, bench.scratch(), &settings)?;
        database.fill_for_pgbench(bench)?;
        database.ask(
            bench,
            "CREATE ROLE app LOGIN; CREATE ROLE analyst LOGIN; \
             GRANT SELECT ON ALL TABLES IN SCHEMA public TO app, analyst",
        )?;
        self.write_report(bench, &database)?;
        bench.by_turns(measure, record, |_, way, _| {
            let way = keys_of(measure.place_of_way(way), &self.ways)?;
            self.measure(bench, &database, way)
        })
    }
}

/// A transaction that ended.
struct Done {
    /// Unix time.
    at_s: f64,
    /// From when it was to begin.
    ms: f64,
    /// How much later than that it began.
    lag_ms: f64,
}

fn log_of(database: &Database, user: &str) -> PathBuf {
    database.folder().join(format!("log-{user}"))
}

fn logs(database: &Database, user: &str) -> Result<Vec<PathBuf>> {
    let beginning = format!("log-{user}.");
    let mut found = Vec::new();
    for entry in fs::read_dir(database.folder())? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| name.starts_with(&beginning)) {
            found.push(path);
        }
    }
    Ok(found)
}

fn remove_logs(database: &Database, user: &str) -> Result<()> {
    for path in logs(database, user)? {
        fs::remove_file(path)?;
    }
    Ok(())
}

fn read_log(database: &Database, user: &str) -> Result<Vec<Done>> {
    let mut all = Vec::new();
    for path in logs(database, user)? {
        all.extend(parse_log(&path, &fs::read_to_string(&path)?)?);
    }
    Ok(all)
}

/// What pgbench writes a line of: client, number, µs, script, Unix time in s and µs, and the lag in
/// µs where there is a rate.
fn parse_log(path: &Path, text: &str) -> Result<Vec<Done>> {
    let line = |(at, line): (usize, &str)| {
        let fields: Option<Vec<f64>> = line.split(' ').map(|field| field.parse().ok()).collect();
        let fields = fields.filter(|fields| fields.len() >= 6);
        let fields =
            fields.with_context(|| format!("{}:{}: no line of pgbench", path.display(), at + 1))?;
        Ok(Done {
            at_s: fields[4] + fields[5] / 1e6,
            ms: fields[2] / 1e3,
            lag_ms: fields.get(6).map_or(0.0, |lag| lag / 1e3),
        })
    };
    text.lines().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pgbench_logs_is_read() {
        let text = "0 199 2241 0 1175850568 995598 700\n1 0 900000 0 1175850569 608\n";
        let all = parse_log(Path::new("log"), text).expect("lines of pgbench");
        let shown: Vec<_> = all.iter().map(|one| (one.ms, one.lag_ms)).collect();
        assert_eq!(shown, [(2.241, 0.7), (900.0, 0.0)]);
        assert!((all[0].at_s - 1_175_850_568.995_598).abs() < 1e-6);
        assert!(parse_log(Path::new("log"), "0 1 failed 0 1 2\n").is_err());
    }
}
