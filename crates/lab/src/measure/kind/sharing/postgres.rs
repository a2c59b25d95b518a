//! `sharing-postgres`: a page of many small statements beside a user that keeps all its connections
//! busy, in a private PostgreSQL behind a gate.

use super::clients::Clients;
use crate::measure::bench::Bench;
use crate::measure::kind::database::{Database, GATE_PORT, pgbench_figure};
use crate::measure::kind::postgres_client::Client;
use crate::measure::kind::{Keys, Kind, figures, keys_of};
use crate::measure::{Measure, Record};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fs;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

const SCRIPT_FILE: &str = "hog.sql";
/// Numbers that are added up to see how long that takes.
const TRIAL: u64 = 20_000_000;
const PAGE_EVERY: Duration = Duration::from_secs(2);
const WARM_UP_PAGES: usize = 2;

/// `sharing-postgres`.
#[derive(Debug)]
pub struct SharingPostgres {
    keys: SharingKeys,
    ways: Vec<Way>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SharingKeys {
    /// Statements of a page, all at once, each over a connection of its own.
    statements: usize,
    statement_ms: u64,
    /// Connections of the other user, each of which always waits for one.
    hog_connections: u32,
    hog_ms: u64,
    seconds: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    #[serde(default)]
    clients: Clients,
    /// The gate's; none: no gate.
    config: Option<String>,
}

impl SharingPostgres {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(Self {
            keys: keys.own()?,
            ways: keys.ways()?,
        }))
    }

    fn measure(
        &self,
        bench: &Bench<'_>,
        (database, numbers_per_ms): (&Database, f64),
        way: &Way,
    ) -> Result<Map<String, Value>> {
        let config = way.config.as_deref();
        let gate = config
            .map(|config| database.gate(bench, GATE_PORT, Some(config), &[]))
            .transpose()?;
        let port = gate.as_ref().map(|_| GATE_PORT);
        let seconds = bench.seconds(self.keys.seconds, 6);
        let sql = |ms: u64| statement((numbers_per_ms * ms as f64) as u64);
        fs::write(database.folder().join(SCRIPT_FILE), sql(self.keys.hog_ms))?;
        let hog = match way.clients {
            Clients::PageAlone => None,
            Clients::Both | Clients::HogAlone => {
                let mut pgbench = database.client("pgbench", port, "hog");
                pgbench.args(["-n", "-f", SCRIPT_FILE, "-T", &(seconds + 1).to_string()]);
                pgbench.args(["-c", &self.keys.hog_connections.to_string(), "postgres"]);
                Some(bench.start(pgbench)?)
            }
        };
        let mut row = Map::new();
        if way.clients != Clients::HogAlone {
            let socket = database.address(port).socket();
            let sql = sql(self.keys.statement_ms);
            let pages = (seconds / PAGE_EVERY.as_secs()) as usize;
            let times = pages_of(&socket, &sql, (self.keys.statements, pages))?;
            let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
            row.extend(figures([
                ("page_mean_ms", mean),
                ("page_max_ms", times.iter().copied().fold(0.0, f64::max)),
            ]));
        }
        if let Some(hog) = hog {
            let printed = bench.finish("pgbench", hog, &[0])?;
            row.insert(
                "hog_per_s".into(),
                pgbench_figure(&printed, "tps = ")?.into(),
            );
        }
        Ok(row)
    }
}

impl Kind for SharingPostgres {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        bench.need(&["taskset"])?;
        let settings = ["max_connections=200", "jit=off"];
        let database = Database::start(bench, bench.scratch(), &settings)?;
        database.ask(bench, "CREATE ROLE hog LOGIN; CREATE ROLE page LOGIN")?;
        let begin = Instant::now();
        database.ask(bench, &statement(TRIAL))?;
        let numbers_per_ms = TRIAL as f64 / 1000.0 / begin.elapsed().as_secs_f64();
        bench.by_turns(measure, record, |_, way, _| {
            let way = keys_of(measure.place_of_way(way), &self.ways)?;
            self.measure(bench, (&database, numbers_per_ms), way)
        })
    }
}

/// Takes as long as so many numbers take to be added up.
fn statement(numbers: u64) -> String {
    format!("SELECT sum(sqrt(number)) FROM generate_series(1, {numbers}) number;")
}

/// What the statements of pages took, ms, that begin at once.
fn pages_of(socket: &Path, sql: &str, (statements, pages): (usize, usize)) -> Result<Vec<f64>> {
    let all_here = Barrier::new(statements);
    let mut clients = Vec::new();
    for _ in 0..statements {
        clients.push(Client::of_user(socket, "page")?);
    }
    let begin = Instant::now() + PAGE_EVERY / 4;
    let one = |mut client: Client| -> Result<Vec<f64>> {
        let mut times = Vec::new();
        // One that fails goes on to the end with the others, who wait for it.
        let mut failed = None;
        for page in 0..pages {
            let at = begin + PAGE_EVERY * page as u32;
            thread::sleep(at.saturating_duration_since(Instant::now()));
            all_here.wait();
            let sent = Instant::now();
            match client.ask(sql) {
                Ok(_) if page >= WARM_UP_PAGES.min(pages - 1) => {
                    times.push(sent.elapsed().as_secs_f64() * 1000.0);
                }
                Ok(_) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(times), Err)
    };
    thread::scope(|scope| {
        let running: Vec<_> = clients
            .into_iter()
            .map(|client| scope.spawn(|| one(client)))
            .collect();
        let mut all = Vec::new();
        for client in running {
            all.extend(client.join().expect("no client panics").context("a page")?);
        }
        Ok(all)
    })
}
