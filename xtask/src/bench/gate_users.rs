//! Many users at a limit of four transactions: how often each proxy logs in to the server, and what a transaction takes.
//!
//! Both proxies have as many server connections at most: PgBouncer by `max_db_connections`, the gate by
//! `limits.connections`. Each user has one client that asks without a pause, so users come by turns.

use std::fs;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::json;

use super::Effort;
use super::check::{Checks, median, spread};
use super::link::Running;
use super::postgres::{DATABASE_PORT, Folder, OTHERS_CORE, pgbench_figure};
use super::record::Record;

/// Transactions inside at a time, and PgBouncer's pool of each user.
const LIMIT: u32 = 4;
/// Users, and server connections at most.
const CASES: [(u32, u32); 5] = [(1, 60), (6, 60), (50, 60), (6, 4), (50, 20)];
const WAYS: [&str; 2] = ["PgBouncer", "sooner gate"];
const SCRIPT: &str =
    "\\set aid random(1, 1000000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n";
/// Until the server has counted its sessions.
const COUNTED_WITHIN: Duration = Duration::from_millis(1500);
/// pgbench looks at the database once before its clients come.
const SESSIONS_A_USER: f64 = 2.0;
/// Of PgBouncer's throughput that the gate's may have at least.
const THROUGHPUT_MIN: f64 = 0.9;

/// Logins a transaction where users are more than connections.
const LOGINS_MAX: f64 = 0.1;
/// What the user who had fewest transactions has of the mean there.
const FEWEST_MIN: f64 = 0.05;

/// What the users have seen together, and how often the proxy logged in.
struct Measured {
    transactions: f64,
    per_sec: f64,
    latency_ms: f64,
    logins: f64,
    /// Transactions of the user who had fewest.
    fewest: f64,
}

/// Each case by turns, with proxies that know nobody yet.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut record = Record::open("gate-users", "gate-users")?;
    let folder = Folder::new()?;
    let _database = folder.database_with(&["-c", "max_connections=150"])?;
    fill(&folder)?;
    let mut text = String::from(
        "| users | server connections | way | transactions a second | latency, ms | logins | logins a thousand transactions | fewest of a user |\n|---|---|---|---|---|---|---|---|\n",
    );
    let mut own = Checks::default();
    let seconds = if effort.quick { 1 } else { 5 };
    let turns = if effort.quick {
        1
    } else {
        3 * effort.repetitions
    };
    for (case, (users, connections)) in (0..).zip(CASES) {
        let mut all: [Vec<Measured>; 2] = Default::default();
        for turn in 0..turns {
            for (at, way) in WAYS.into_iter().enumerate() {
                let port = (7000 + 100 * case + 2 * turn + at as u32).to_string();
                let _proxy = proxy(&folder, at, &port, connections)?;
                let measured = measure(&folder, &port, users, seconds)?;
                record.add(&json!({"users": users, "connections_max": connections, "way": way, "turn": turn,
                    "transactions": measured.transactions, "transactions_per_sec": measured.per_sec,
                    "latency_ms": measured.latency_ms, "logins": measured.logins,
                    "fewest": measured.fewest}))?;
                all[at].push(measured);
            }
        }
        text += &rows(users, connections, &all);
        judge(&mut own, users, connections, &all);
    }
    record.table("gate-users", &format!("{text}\n{}", own.table()))?;
    checks.extend(own);
    Ok(())
}

fn figures(all: &[Measured], figure: fn(&Measured) -> f64) -> Vec<f64> {
    all.iter().map(figure).collect()
}

fn rows(users: u32, connections: u32, all: &[Vec<Measured>; 2]) -> String {
    let row = |(way, measured): (&str, &Vec<Measured>)| {
        format!(
            "| {users} | {connections} | {way} | {} | {} | {} | {} | {} |\n",
            spread(&figures(measured, |one| one.per_sec), 0),
            spread(&figures(measured, |one| one.latency_ms), 2),
            spread(&figures(measured, |one| one.logins), 0),
            spread(
                &figures(measured, |one| 1000.0 * one.logins / one.transactions),
                2
            ),
            spread(&figures(measured, |one| one.fewest), 0),
        )
    };
    WAYS.into_iter().zip(all).map(row).collect()
}

/// Where connections are enough, each user logs in once; where they are not, logins are few and each user has transactions.
fn judge(own: &mut Checks, users: u32, connections: u32, all: &[Vec<Measured>; 2]) {
    let [pgbouncer, gate] = all.each_ref();
    let of = |measured: &[Measured], figure| median(&figures(measured, figure));
    let name = format!("{users} users, {connections} connections");
    if users > connections {
        own.at_most(
            &format!("{name}: logins a transaction of the gate"),
            of(gate, |one| one.logins / one.transactions),
            LOGINS_MAX,
        );
        own.at_least(
            &format!("{name}: transactions of the user who had fewest / the mean"),
            of(gate, |one| one.fewest / one.transactions) * f64::from(users),
            FEWEST_MIN,
        );
        return;
    }
    own.at_most(
        &format!("{name}: logins of the gate"),
        of(gate, |one| one.logins),
        SESSIONS_A_USER * f64::from(users),
    );
    own.at_least(
        &format!("{name}: throughput of the gate / PgBouncer's"),
        of(gate, |one| one.per_sec) / of(pgbouncer, |one| one.per_sec),
        THROUGHPUT_MIN,
    );
}

fn name(number: u32) -> String {
    format!("u{number}")
}

fn users_max() -> u32 {
    CASES.map(|(users, _)| users).into_iter().max().unwrap_or(1)
}

fn fill(folder: &Folder) -> anyhow::Result<()> {
    fs::write(folder.path().join("lookup.sql"), SCRIPT)?;
    let mut pgbench = folder.program(OTHERS_CORE, &folder.programs.join("pgbench"));
    pgbench.arg("-h").arg(folder.path());
    pgbench.args([
        "-p",
        DATABASE_PORT,
        "-U",
        "postgres",
        "-i",
        "-q",
        "-s",
        "10",
        "postgres",
    ]);
    let filled = pgbench
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    ensure!(filled.success(), "pgbench -i failed");
    let roles = (1..=users_max()).map(|number| format!("CREATE ROLE {} LOGIN;", name(number)));
    let roles: String = roles.collect();
    ask(
        folder,
        &format!("{roles}GRANT SELECT ON pgbench_accounts TO public"),
    )?;
    Ok(())
}

/// What psql prints, straight from the database.
fn ask(folder: &Folder, sql: &str) -> anyhow::Result<String> {
    let mut psql = folder.program(OTHERS_CORE, &folder.programs.join("psql"));
    psql.arg("-h").arg(folder.path());
    psql.args([
        "-XAt",
        "-p",
        DATABASE_PORT,
        "-U",
        "postgres",
        "-d",
        "postgres",
        "-c",
        sql,
    ]);
    let output = psql.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "psql: {}", said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn proxy(folder: &Folder, way: usize, port: &str, connections: u32) -> anyhow::Result<Running> {
    if way == 0 {
        let names = (1..=users_max()).map(|number| format!("\"{}\" \"\"\n", name(number)));
        let users: String = names.collect();
        let more = format!("max_db_connections = {connections}\n");
        return folder.pgbouncer_with(port, "transaction", &LIMIT.to_string(), &users, &more);
    }
    let config = folder.path().join(format!("gate-{port}.toml"));
    fs::write(
        &config,
        format!("[limits]\ntransactions = {LIMIT}\nconnections = {connections}\n"),
    )?;
    folder.gate(port, &["--config", &config.display().to_string()])
}

/// Sessions of the database since it was made, this one included.
fn sessions(folder: &Folder) -> anyhow::Result<f64> {
    sleep(COUNTED_WITHIN);
    let sql = "SELECT sessions FROM pg_stat_database WHERE datname = 'postgres'";
    Ok(ask(folder, sql)?.parse()?)
}

fn measure(folder: &Folder, port: &str, users: u32, seconds: u32) -> anyhow::Result<Measured> {
    let before = sessions(folder)?;
    let clients = (1..=users).map(|number| pgbench(folder, port, &name(number), seconds));
    let clients: Vec<Child> = clients.collect::<anyhow::Result<_>>()?;
    let (mut transactions, mut per_sec, mut waited_ms) = (0.0, 0.0, 0.0);
    let mut fewest = f64::INFINITY;
    for client in clients {
        let output = client.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "pgbench through {port}: {said}");
        let own = pgbench_figure(&said, "actually processed: ")?;
        transactions += own;
        fewest = fewest.min(own);
        per_sec += pgbench_figure(&said, "tps = ")?;
        waited_ms += own * pgbench_figure(&said, "latency average = ")?;
    }
    // The one that asks is a session as well.
    let logins = sessions(folder)? - before - 1.0;
    Ok(Measured {
        transactions,
        per_sec,
        latency_ms: waited_ms / transactions,
        logins,
        fewest,
    })
}

fn pgbench(folder: &Folder, port: &str, user: &str, seconds: u32) -> anyhow::Result<Child> {
    let script = folder.path().join("lookup.sql").display().to_string();
    let mut command = folder.program(OTHERS_CORE, &folder.programs.join("pgbench"));
    command.arg("-h").arg(folder.path());
    command.args(["-p", port, "-U", user, "-n", "-f", &script, "-c", "1"]);
    command.args(["-T", &seconds.to_string(), "postgres"]);
    let started = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    started.context("cannot start pgbench")
}
