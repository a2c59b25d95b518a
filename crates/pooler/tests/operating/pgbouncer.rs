//! The console beside PgBouncer's: what reads its tables finds the same columns, and what it
//! refuses is refused.

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use crate::support::{Database, Gate, said, until};

mod commands;
mod config;
mod tables;
mod types;

const PORT: u16 = 6543;

/// A PgBouncer before a database; ended when dropped.
struct PgBouncer(Child);

impl PgBouncer {
    fn before(database: &Database, test: &str) -> Option<PgBouncer> {
        if !Command::new("pgbouncer")
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
        {
            let _ = writeln!(
                std::io::stderr(),
                "skipped: {test}: needs the package pgbouncer"
            );
            return None;
        }
        let folder = database.folder().display();
        let ini = format!(
            "[databases]\npostgres = host={folder} user=postgres\n[pgbouncer]\nlisten_addr =\nlisten_port = {PORT}\nunix_socket_dir = {folder}\n\
             auth_type = any\nadmin_users = postgres\npool_mode = transaction\n"
        );
        let path = database.folder().join("pgbouncer.ini");
        fs::write(&path, ini).unwrap();
        database.give(&path);
        let mut command = database.program("pgbouncer");
        // Beside the programs of PostgreSQL it is not.
        let mut arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        arguments.pop();
        arguments.push("pgbouncer".into());
        let child = Command::new(command.get_program())
            .args(&arguments)
            .args(["-q".as_ref(), path.as_os_str()])
            .current_dir(database.folder())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        command.stdin(Stdio::null());
        let bouncer = PgBouncer(child);
        let socket = database.folder().join(format!(".s.PGSQL.{PORT}"));
        until("PgBouncer listens", || socket.exists());
        Some(bouncer)
    }

    /// A psql through it.
    fn psql(database: &Database) -> Command {
        let mut psql = database.psql(database.folder(), PORT, "postgres");
        // Debian's PgBouncer knows no newer protocol.
        psql.env("PGMAXPROTOCOLVERSION", "3.0");
        psql
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        crate::support::signal_child_of(self.0.id(), "-INT");
        let _ = self.0.wait();
    }
}

/// What a console prints and says of a command.
fn answer(mut psql: Command, command: &str) -> (bool, String, String) {
    let psql = psql.args(["-d", "pgbouncer", "-P", "tuples_only=off", "-c", command]);
    let output = psql.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), printed, said(&output))
}

/// Tables of PgBouncer; FDS is for its restart, which the gate has not, and the others are no
/// tables.
const TABLES: [&str; 16] = [
    "STATS",
    "STATS_TOTALS",
    "STATS_AVERAGES",
    "TOTALS",
    "POOLS",
    "CLIENTS",
    "SERVERS",
    "SOCKETS",
    "ACTIVE_SOCKETS",
    "DATABASES",
    "USERS",
    "LISTS",
    "DNS_HOSTS",
    "DNS_ZONES",
    "MEM",
    "CONFIG",
];

/// What its documentation has since then (1.24 and 1.25).
const NEWER: [(&str, &str); 12] = [
    (
        "STATS",
        "total_server_assignment_count total_client_parse_count total_server_parse_count total_bind_count",
    ),
    (
        "STATS",
        "avg_server_assignment_count avg_client_parse_count avg_server_parse_count avg_bind_count",
    ),
    (
        "STATS_TOTALS",
        "server_assignment_count client_parse_count server_parse_count bind_count",
    ),
    (
        "STATS_AVERAGES",
        "server_assignment_count client_parse_count server_parse_count bind_count",
    ),
    ("POOLS", "load_balance_hosts"),
    ("CLIENTS", "replication prepared_statements id"),
    ("SERVERS", "replication prepared_statements id"),
    (
        "DATABASES",
        "reserve_pool_size server_lifetime load_balance_hosts max_client_connections current_client_connections",
    ),
    (
        "USERS",
        "pool_size reserve_pool_size max_user_connections current_connections max_user_client_connections current_client_connections",
    ),
    ("PEERS", "peer_id host port pool_size"),
    (
        "PEER_POOLS",
        "database cl_active_cancel_req cl_waiting_cancel_req sv_active_cancel sv_login",
    ),
    ("STATE", "key value"),
];

fn start(test: &str) -> Option<(Database, PgBouncer, Gate)> {
    let database = Database::start(test)?;
    let bouncer = PgBouncer::before(&database, test)?;
    let gate = Gate::before(&database, "admins = [\"postgres\"]\n");
    Some((database, bouncer, gate))
}

#[test]
fn what_reads_pgbouncers_tables_reads_ours() {
    let Some((database, _bouncer, gate)) = start("what_reads_pgbouncers_tables") else {
        return;
    };
    let bouncer = || PgBouncer::psql(&database);
    gate.ask(&database, &["SELECT 1"]);
    let head = |text: &str| -> Vec<String> {
        let line = text.lines().next().unwrap_or_default();
        line.split('|').map(str::to_owned).collect()
    };
    let first = |text: &str| -> Vec<String> {
        let rows = text.lines().skip(1).filter(|line| line.contains('|'));
        rows.map(|row| row.split('|').next().unwrap_or_default().to_owned())
            .collect()
    };
    for table in TABLES {
        let command = format!("SHOW {table}");
        let (is_told, theirs, why) = answer(bouncer(), &command);
        assert!(is_told, "PgBouncer does not answer {command}: {why}");
        let (_, ours, error) = answer(gate.psql(&database, "postgres"), &command);
        let known = head(&ours);
        for column in head(&theirs) {
            assert!(
                known.contains(&column),
                "{table} has no {column}: {known:?} {error}"
            );
        }
        if ["TOTALS", "LISTS"].contains(&table) {
            let known = first(&ours);
            for row in first(&theirs) {
                assert!(known.contains(&row), "{table} has no {row}: {known:?}");
            }
        }
    }
    for (table, columns) in NEWER {
        let (_, ours, error) = answer(gate.psql(&database, "postgres"), &format!("SHOW {table}"));
        let known = head(&ours);
        for column in columns.split(' ') {
            assert!(
                known.iter().any(|own| own == column),
                "{table} has no {column}: {known:?} {error}"
            );
        }
    }
}

#[test]
fn what_pgbouncer_refuses_is_refused() {
    let Some((database, _bouncer, gate)) = start("what_pgbouncer_refuses") else {
        return;
    };
    for command in [
        "SET nonsense=1",
        "SET",
        "SET x",
        "SET max_client_conn = 'abc'",
        "KILL",
        "KILL nosuch",
        "RESUME",
        "RESUME nosuch",
        "RELOAD x",
        "SHOW nonsense",
        "SHUTDOWN x",
        "SELECT 1",
    ] {
        let (is_done, ..) = answer(database.psql(database.folder(), PORT, "postgres"), command);
        assert!(!is_done, "PgBouncer does {command}");
        let (is_done, _, error) = answer(gate.psql(&database, "postgres"), command);
        assert!(
            !is_done && error.starts_with("ERROR:  "),
            "{command}: {error}"
        );
    }
    let say = |command: &str| answer(gate.psql(&database, "postgres"), command);
    for command in [
        "SET client_encoding TO 'utf8'",
        "SET application_name = 'x'",
        "SET NAMES 'utf8'",
        "SET TIME ZONE 'UTC'",
    ] {
        assert!(say(command).0, "{command}");
    }
    for (command, where_else) in [
        ("SET max_client_conn=200", "setting of PgBouncer"),
        (
            "SET limits.clients=200",
            "write it in gate.toml, then say RELOAD",
        ),
        ("SET nonsense=1", "SHOW CONFIG has those"),
        ("KILL nosuch", "SHOW DATABASES lists them"),
    ] {
        let (_, _, error) = say(command);
        assert!(error.contains(where_else), "{error}");
    }
    // It may come later, by [[database]] name = "*".
    let (is_done, _, note) = say("PAUSE nosuch");
    assert!(
        is_done && note.contains("no client has asked for database \"nosuch\" so far"),
        "{note}"
    );
    assert!(say("RESUME nosuch").0);
    let (_, _, help) = say("SHOW HELP");
    assert!(help.contains("KILL_CLIENT NUMBER"), "{help}");
}

#[test]
fn prepared_statements_are_counted_in_pgbouncers_columns() {
    let Some(database) = Database::start("prepared_statements_are_counted") else {
        return;
    };
    let config = format!(
        "admins = [\"postgres\"]\n{}",
        crate::support::transactions(1)
    );
    let gate = Gate::before(&database, &config);
    let mut pgbench = gate.program(&database, "pgbench");
    let script = database.folder().join("select.sql");
    fs::write(&script, "SELECT 1;\n").unwrap();
    database.give(&script);
    crate::support::printed(
        pgbench
            .args(["-n", "-M", "prepared", "-c", "2", "-t", "5", "-f"])
            .arg(&script)
            .arg("postgres"),
    );
    let totals = || {
        let (_, printed, _) = answer(gate.psql(&database, "postgres"), "SHOW STATS_TOTALS");
        let line = printed
            .lines()
            .find(|line| line.starts_with("postgres|"))
            .unwrap_or_default()
            .to_owned();
        let fields: Vec<&str> = line.split('|').collect();
        fields.get(9..).unwrap_or_default().join(" ")
    };
    // Two clients have one each, which the server is asked about each time, and each runs it five
    // times.
    until("all is counted", || totals() == "2 2 10");
}
