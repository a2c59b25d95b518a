//! SHOW CONFIG beside PgBouncer's, and check_postgres, which reads it.

use super::tables::{Row, field, rows, rows_of};
use super::{PgBouncer, answer, start};
use crate::support::{Database, GATE_PORT, Gate, transactions};
use std::io::Write;
use std::process::Command;

fn value_of<'a>(rows: &'a [Row], key: &str) -> &'a str {
    let row = rows.iter().find(|row| field(row, "key") == key);
    field(row.unwrap_or_else(|| panic!("no {key}")), "value")
}

#[test]
fn pgbouncers_keys_are_there_with_its_defaults() {
    let Some((database, _bouncer, gate)) = start("pgbouncers_keys_are_there") else {
        return;
    };
    let ours = rows(&gate, &database, "SHOW CONFIG");
    let psql = PgBouncer::psql(&database);
    let theirs = rows_of(answer(psql, "SHOW CONFIG"), "SHOW CONFIG");
    assert!(theirs.len() > 60, "{theirs:?}");
    for row in &theirs {
        let key = field(row, "key");
        let own = ours.iter().find(|own| field(own, "key") == key);
        let own = own.unwrap_or_else(|| panic!("no {key}"));
        assert_eq!(field(own, "default"), field(row, "default"), "{key}");
    }
    for row in &ours {
        let key = field(row, "key");
        let count = ours.iter().filter(|own| field(own, "key") == key).count();
        assert_eq!(count, 1, "{key}");
    }
}

#[test]
fn pgbouncers_keys_have_what_the_gates_own_mean() {
    let Some(database) = Database::start("pgbouncers_keys_have_what") else {
        return;
    };
    let config = "admins = [\"postgres\"]\nwatchers = [\"ann\", \"bob\"]\nmode = \"session\"\n\
                  listen = [\"127.0.0.1:7000\", \"/run/gate/.s.PGSQL.7000\"]\n\
                  [limits]\nclients = 77\ntransactions = 5\nconnections = 9\n\
                  query_wait_seconds = 3\npatience_seconds = 4\nlogin_seconds = 6\n\
                  server_idle_seconds = 8\nserver_lifetime_seconds = 10\n\
                  server_check_seconds = 11\nidle_in_transaction_seconds = 12\n\
                  statements = 13\n";
    let gate = Gate::before(&database, config);
    let ours = rows(&gate, &database, "SHOW CONFIG");
    for (key, value) in [
        ("admin_users", "postgres"),
        ("stats_users", "ann, bob"),
        ("auth_type", "trust"),
        ("pool_mode", "session"),
        ("listen_addr", "127.0.0.1"),
        ("listen_port", "7000"),
        ("unix_socket_dir", "/run/gate"),
        ("max_client_conn", "77"),
        ("default_pool_size", "5"),
        ("max_db_connections", "9"),
        ("query_wait_timeout", "3"),
        ("server_connect_timeout", "4"),
        ("client_login_timeout", "6"),
        ("server_idle_timeout", "8"),
        ("server_lifetime", "10"),
        ("server_check_delay", "11"),
        ("idle_transaction_timeout", "12"),
        ("max_prepared_statements", "13"),
        ("client_tls_sslmode", "disable"),
        ("server_tls_sslmode", "disable"),
    ] {
        assert_eq!(value_of(&ours, key), value, "{key}");
    }
    gate.rewrite(|text| text.replace("clients = 77", "clients = 78"));
    gate.admin(&database, "RELOAD");
    let ours = rows(&gate, &database, "SHOW CONFIG");
    assert_eq!(value_of(&ours, "max_client_conn"), "78");
    gate.rewrite(|text| format!("{text}[[rule]]\nauth = \"trust\"\n"));
    gate.admin(&database, "RELOAD");
    let ours = rows(&gate, &database, "SHOW CONFIG");
    assert_eq!(value_of(&ours, "auth_type"), "hba");
}

/// Of check_postgres, all that ask a PgBouncer, with a word that it says where all is well.
const ACTIONS: [(&str, &str); 10] = [
    ("pgb_pool_cl_active", "OK"),
    ("pgb_pool_cl_waiting", "OK"),
    ("pgb_pool_sv_active", "OK"),
    ("pgb_pool_sv_idle", "OK"),
    ("pgb_pool_sv_used", "OK"),
    ("pgb_pool_sv_tested", "OK"),
    ("pgb_pool_sv_login", "OK"),
    ("pgb_pool_maxwait", "OK"),
    ("pgbouncer_backends", "of 40 connections"),
    ("pgbouncer_checksum", "checksum: "),
];

#[test]
fn check_postgres_watches_the_gate() {
    let test = "check_postgres_watches_the_gate";
    let mut version = Command::new("check_postgres");
    let is_there = version.arg("--version").output();
    if !is_there.is_ok_and(|output| output.status.success()) {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: {test}: needs the package check-postgres"
        );
        return;
    }
    let Some(database) = Database::start(test) else {
        return;
    };
    let limits = transactions(1);
    let config = format!("admins = [\"postgres\"]\n{limits}clients = 40\n");
    let gate = Gate::before(&database, &config);
    gate.ask(&database, &["SELECT 1"]);
    for (action, word) in ACTIONS {
        let mut check = Command::new("check_postgres");
        check.arg(format!("--action={action}"));
        check.arg(format!("--host={}", gate.folder().display()));
        check
            .arg(format!("--port={GATE_PORT}"))
            .args(["-u", "postgres"]);
        check.args(match action {
            "pgbouncer_checksum" => &["--critical=0"][..],
            "pgbouncer_backends" => &[],
            _ => &["--warning=10", "--critical=20"],
        });
        let output = check.output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(printed.contains(word), "{action}: {printed}{said}");
    }
}
