//! pgbench by turns through proxies before a private PostgreSQL: what a statement takes, and what
//! it costs the proxy; and many users at a limit of a few transactions.

use super::database::{Bouncer, Database, pgbench_figure};
use super::{Keys, Kind, figures, keys_of};
use crate::counters::processes::usage;
use crate::measure::bench::Bench;
use crate::measure::calm::undisturbed;
use crate::measure::{Item, Measure, Record};
use anyhow::Result;
use serde::Deserialize;
use serde_json::{Map, Value};
use sooner_testbed::OwnedChild;
use std::fs;
use std::time::Duration;

/// Of a turn in which processor time was stolen.
const TRIES_MAX: u32 = 5;
const PORT: u16 = 7000;
/// Server connections of either proxy.
const POOL: u32 = 20;
const SCRIPT_FILE: &str = "script.sql";

#[derive(Debug, Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Proxy {
    None,
    PgBouncer,
    Gate,
}

/// `statements`: latency, transactions a second, and the proxy's processor time for a transaction.
#[derive(Debug)]
pub struct Statements {
    keys: StatementKeys,
    ways: Vec<Way>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StatementKeys {
    /// What pgbench does; none: its lookup by key.
    script: Option<String>,
    /// Where the cases do not say.
    clients: Option<u64>,
    seconds: u64,
    /// The field of the proxy's processor time.
    cpu_field: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    proxy: Proxy,
    mode: Option<String>,
    #[serde(default)]
    flags: Vec<String>,
    config: Option<String>,
}

/// A proxy that runs, and its port.
type Running = (Option<OwnedChild>, Option<u16>);

impl Statements {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(Self {
            keys: keys.own()?,
            ways: keys.ways()?,
        }))
    }

    /// A proxy for each way, all at once: one that is not asked does nothing.
    fn proxies(&self, bench: &Bench<'_>, database: &Database) -> Result<Vec<Running>> {
        let proxies = (PORT..).zip(&self.ways).map(|(port, way)| match way.proxy {
            Proxy::None => Ok((None, None)),
            Proxy::Gate => {
                let flags: Vec<&str> = way.flags.iter().map(String::as_str).collect();
                let gate = database.gate(bench, port, way.config.as_deref(), &flags)?;
                Ok((Some(gate), Some(port)))
            }
            Proxy::PgBouncer => {
                let bouncer = Bouncer {
                    mode: way.mode.as_deref().unwrap_or("transaction"),
                    pool: POOL,
                    users: "",
                    lines: "",
                };
                Ok((Some(database.pgbouncer(bench, port, &bouncer)?), Some(port)))
            }
        });
        proxies.collect()
    }

    fn measure(
        &self,
        bench: &Bench<'_>,
        database: &Database,
        (proxy, port): &Running,
        case: &Item,
    ) -> Result<Map<String, Value>> {
        let cpu_s = || proxy.as_ref().map_or(0.0, |proxy| usage(proxy.id()).cpu_s);
        let clients = case
            .fields
            .get("clients")
            .and_then(Value::as_u64)
            .or(self.keys.clients);
        let before = cpu_s();
        let mut pgbench = database.client("pgbench", *port, "postgres");
        pgbench.arg("-n");
        match &self.keys.script {
            Some(_) => pgbench.args(["-f", SCRIPT_FILE]),
            None => pgbench.arg("-S"),
        };
        pgbench.args([
            "-M",
            case.text("protocol"),
            "-c",
            &clients.unwrap_or(1).to_string(),
        ]);
        pgbench.args([
            "-T",
            &bench.seconds(self.keys.seconds, 1).to_string(),
            "postgres",
        ]);
        let printed = bench.output(pgbench)?;
        let spent = cpu_s() - before;
        let transactions = pgbench_figure(&printed, "actually processed: ")?;
        let mut row = figures([
            (
                "latency_us",
                pgbench_figure(&printed, "latency average = ")? * 1000.0,
            ),
            ("transactions_per_sec", pgbench_figure(&printed, "tps = ")?),
        ]);
        let field = self.keys.cpu_field.as_deref().unwrap_or("proxy_cpu_us");
        row.insert(field.to_owned(), (spent * 1e6 / transactions).into());
        Ok(row)
    }
}

impl Kind for Statements {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        let database = Database::start(bench, bench.scratch(), &["max_connections=250"])?;
        if let Some(script) = &self.keys.script {
            fs::write(database.folder().join(SCRIPT_FILE), script)?;
        }
        database.fill_for_pgbench(bench)?;
        let proxies = self.proxies(bench, &database)?;
        bench.by_turns(measure, record, |case, way, _| {
            let proxy = keys_of(measure.place_of_way(way), &proxies)?;
            let tries = if bench.is_quick { 1 } else { TRIES_MAX };
            undisturbed(tries, || self.measure(bench, &database, proxy, case))
        })
    }
}

/// `users`: each user has one client that asks without a pause, so users come by turns; how often
/// each proxy logs in to the server, and what a transaction takes.
#[derive(Debug)]
pub struct Users {
    keys: UsersKeys,
    ways: Vec<UsersWay>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsersKeys {
    limit: u32,
    seconds: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsersWay {
    proxy: Proxy,
}

const LOOKUP: &str =
    "\\set aid random(1, 1000000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n";
/// Until the server has counted its sessions.
const COUNTED_WITHIN: Duration = Duration::from_millis(1500);
const USERS_MAX: u64 = 50;

fn name(number: u64) -> String {
    format!("u{number}")
}

/// Sessions of the database since it was made, this one included.
fn sessions(bench: &Bench<'_>, database: &Database) -> Result<f64> {
    bench.pause(COUNTED_WITHIN)?;
    let sql = "SELECT sessions FROM pg_stat_database WHERE datname = 'postgres'";
    Ok(database.ask(bench, sql)?.parse()?)
}

impl Users {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(Self {
            keys: keys.own()?,
            ways: keys.ways()?,
        }))
    }

    /// A proxy with so many server connections at most, which knows no user yet.
    fn proxy(
        &self,
        bench: &Bench<'_>,
        database: &Database,
        way: &UsersWay,
        port: u16,
        connections: u64,
    ) -> Result<OwnedChild> {
        let limit = self.keys.limit;
        if way.proxy == Proxy::Gate {
            let config = format!("[limits]\ntransactions = {limit}\nconnections = {connections}\n");
            return database.gate(bench, port, Some(&config), &[]);
        }
        let names = (1..=USERS_MAX).map(|number| format!("\"{}\" \"\"\n", name(number)));
        let bouncer = Bouncer {
            mode: "transaction",
            pool: limit,
            users: &names.collect::<String>(),
            lines: &format!("max_db_connections = {connections}\n"),
        };
        database.pgbouncer(bench, port, &bouncer)
    }

    fn measure(
        &self,
        bench: &Bench<'_>,
        database: &Database,
        port: u16,
        users: u64,
    ) -> Result<Map<String, Value>> {
        let before = sessions(bench, database)?;
        let seconds = bench.seconds(self.keys.seconds, 1).to_string();
        let clients = (1..=users).map(|number| {
            let mut pgbench = database.client("pgbench", Some(port), &name(number));
            pgbench.args([
                "-n",
                "-f",
                SCRIPT_FILE,
                "-c",
                "1",
                "-T",
                &seconds,
                "postgres",
            ]);
            bench.start(pgbench)
        });
        let clients: Vec<OwnedChild> = clients.collect::<Result<_>>()?;
        let (mut transactions, mut per_sec, mut waited_ms) = (0.0, 0.0, 0.0);
        let mut fewest = f64::INFINITY;
        for client in clients {
            let printed = bench.finish("pgbench", client, &[0])?;
            let own = pgbench_figure(&printed, "actually processed: ")?;
            transactions += own;
            fewest = fewest.min(own);
            per_sec += pgbench_figure(&printed, "tps = ")?;
            // One who had no transaction has no latency either.
            waited_ms += own * pgbench_figure(&printed, "latency average = ").unwrap_or(0.0);
        }
        // The one that asks is a session as well.
        let logins = sessions(bench, database)? - before - 1.0;
        Ok(figures([
            ("transactions", transactions),
            ("transactions_per_sec", per_sec),
            ("latency_ms", waited_ms / transactions),
            ("logins", logins),
            ("fewest", fewest),
        ]))
    }
}

impl Kind for Users {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        let database = Database::start(bench, bench.scratch(), &["max_connections=150"])?;
        fs::write(database.folder().join(SCRIPT_FILE), LOOKUP)?;
        database.fill_for_pgbench(bench)?;
        let roles: String = (1..=USERS_MAX)
            .map(|number| format!("CREATE ROLE {} LOGIN;", name(number)))
            .collect();
        database.ask(
            bench,
            &format!("{roles}GRANT SELECT ON pgbench_accounts TO public"),
        )?;
        bench.by_turns(measure, record, |case, way, _| {
            let number = |key: &str| case.fields.get(key).and_then(Value::as_u64).unwrap_or(1);
            let way = keys_of(measure.place_of_way(way), &self.ways)?;
            let port = PORT + bench.number() as u16;
            let _proxy = self.proxy(bench, &database, way, port, number("connections_max"))?;
            self.measure(bench, &database, port, number("users"))
        })
    }
}
