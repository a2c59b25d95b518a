//! Commands of the console that wait: PAUSE and WAIT_CLOSE. Their client may leave, cancel them, or
//! be overtaken by another admin's RESUME.

use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use super::{fails, start, start_with};
use crate::support::{Database, Gate, Talk, said, signal_child_of, until};

/// psql with a command to the gate itself.
fn begin(gate: &Gate, database: &Database, command: &str) -> Child {
    let mut psql = gate.psql(database, "postgres");
    psql.args(["-d", "sooner", "-c", command]);
    psql.stdout(Stdio::piped()).stderr(Stdio::piped());
    psql.spawn().unwrap()
}

fn has_console(gate: &Gate, database: &Database, count: usize) -> bool {
    let clients = gate.admin(database, "SHOW CLIENTS");
    // The one that asks is there as well.
    clients.matches("|sooner|").count() == count + 1
}

/// The command is in force, not only its console there.
fn waits(gate: &Gate, database: &Database, command: &str) -> bool {
    let in_force = match command {
        "PAUSE" => gate.admin(database, "SHOW STATE").contains("paused|yes"),
        "PAUSE postgres" => {
            let all = gate.admin(database, "SHOW DATABASES");
            let mut rows = all.lines().map(|row| row.split('|'));
            let row = rows.find_map(|mut row| (row.next() == Some("postgres")).then_some(row));
            row.and_then(|mut row| row.nth(10)) == Some("1")
        }
        _ => true,
    };
    in_force && has_console(gate, database, 1)
}

#[test]
fn a_command_that_waits_ends_with_its_client() {
    let Some((database, gate)) = start("a_command_that_waits_ends") else {
        return;
    };
    let mut inside = Talk::begin(&mut gate.psql(&database, "postgres"));
    inside.ask("BEGIN");
    let pid = "SELECT pg_backend_pid()";
    gate.admin(&database, "RECONNECT postgres");
    for _ in 0..17 {
        for command in ["PAUSE postgres", "WAIT_CLOSE postgres"] {
            let mut psql = begin(&gate, &database, command);
            until("it waits", || waits(&gate, &database, command));
            signal_child_of(psql.id(), "-KILL");
            psql.wait().unwrap();
            until("it is gone", || has_console(&gate, &database, 0));
        }
    }
    // The pause stays, as PgBouncer's does, and no more of it than that.
    gate.admin(&database, "RESUME postgres");
    let mut other = Talk::begin(&mut gate.psql(&database, "postgres"));
    let first = other.ask(pid);
    inside.ask("COMMIT");
    drop(inside);
    assert_eq!(other.ask(pid), first);
}

#[test]
fn a_pause_that_another_admin_ends_says_so() {
    let Some((database, gate)) = start("a_pause_that_another_admin_ends") else {
        return;
    };
    let mut inside = Talk::begin(&mut gate.psql(&database, "postgres"));
    inside.ask("BEGIN");
    for (pause, resume) in [
        ("PAUSE", "RESUME"),
        ("PAUSE postgres", "RESUME postgres"),
        ("PAUSE postgres", "RESUME"),
        ("PAUSE", "RESUME postgres"),
    ] {
        let psql = begin(&gate, &database, pause);
        until("it waits", || waits(&gate, &database, pause));
        gate.admin(&database, resume);
        let output = psql.wait_with_output().unwrap();
        let words = said(&output);
        assert!(
            words.contains("RESUME has ended the pause"),
            "{pause}: {words}"
        );
        if (pause, resume) == ("PAUSE", "RESUME postgres") {
            gate.admin(&database, "RESUME");
        }
        assert_eq!(gate.ask(&database, &["SELECT 1"]), "1");
    }
    inside.ask("COMMIT");
}

#[test]
fn a_cancel_request_ends_a_command_that_waits() {
    let Some((database, gate)) = start("a_cancel_request_ends_a_command") else {
        return;
    };
    let mut inside = Talk::begin(&mut gate.psql(&database, "postgres"));
    inside.ask("BEGIN");
    gate.admin(&database, "RECONNECT postgres");
    for command in ["PAUSE", "PAUSE postgres", "WAIT_CLOSE postgres"] {
        let psql = begin(&gate, &database, command);
        until("it waits", || waits(&gate, &database, command));
        signal_child_of(psql.id(), "-INT");
        let output = psql.wait_with_output().unwrap();
        let words = said(&output);
        assert!(
            words.contains("canceling statement due to user request"),
            "{command}: {words}"
        );
        // As PgBouncer does, it goes on.
        assert_eq!(gate.ask(&database, &["SELECT 1"]), "1");
        let resume = fails(&gate, &database, "postgres", "sooner", "RESUME");
        assert!(resume.contains("not paused"), "{command}: {resume}");
    }
    inside.ask("COMMIT");
}

/// Also where no admin waits for the end of the pause: what is paused may be stopped then.
#[test]
fn a_paused_database_keeps_no_idle_connection() {
    let Some((database, gate)) = start("a_paused_database_keeps_no_idle") else {
        return;
    };
    let mut inside = Talk::begin(&mut gate.psql(&database, "postgres"));
    inside.ask("BEGIN");
    let mut psql = begin(&gate, &database, "PAUSE postgres");
    until("it waits", || waits(&gate, &database, "PAUSE postgres"));
    signal_child_of(psql.id(), "-KILL");
    psql.wait().unwrap();
    inside.ask("COMMIT");
    let others = "SELECT count(*) FROM pg_stat_activity \
                  WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    until("none is left", || database.ask(others) == "0");
    gate.admin(&database, "RESUME postgres");
    assert_eq!(inside.ask("SELECT 2"), "2");
}

/// Also one of a database that no client was let into.
#[test]
fn an_idle_connection_for_lookups_is_closed_like_all_others() {
    let config = "[[rule]]\nuser = [\"postgres\"]\nauth = \"trust\"\n[[rule]]\nauth = \"scram\"\n\
                  [auth_query]\nuser = \"postgres\"\n";
    let Some((database, gate)) = start_with("an_idle_connection_for_lookups", config) else {
        return;
    };
    database.ask("CREATE DATABASE d1");
    // The gate keeps its server in mind for another database's client.
    let mut other = Talk::begin(&mut gate.psql(&database, "postgres"));
    other.ask("SELECT 1");
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'd1'";
    for command in ["RECONNECT", "PAUSE"] {
        let mut psql = gate.psql(&database, "ann");
        psql.env("PGPASSWORD", "wrong");
        let output = psql.args(["-d", "d1", "-c", "SELECT 1"]).output();
        assert!(!output.unwrap().status.success());
        assert_eq!(database.ask(sessions), "1", "the secret was looked up");
        // For longer than what is not needed is kept in mind.
        thread::sleep(Duration::from_millis(2500));
        assert_eq!(database.ask(sessions), "1", "it is idle");
        gate.admin(&database, command);
        until(command, || database.ask(sessions) == "0");
    }
    gate.admin(&database, "RESUME");
    database.ask("DROP DATABASE d1");
}

/// As PgBouncer refuses it.
#[test]
fn no_database_is_killed_while_all_are_paused() {
    let Some((database, gate)) = start("no_database_is_killed_while") else {
        return;
    };
    let mut client = Talk::begin(&mut gate.psql(&database, "ann"));
    assert_eq!(client.ask("SELECT 1"), "1");
    gate.admin(&database, "PAUSE");
    let refused = fails(&gate, &database, "postgres", "sooner", "KILL postgres");
    assert!(refused.contains("already suspended/paused"), "{refused}");
    gate.admin(&database, "RESUME");
    assert_eq!(client.ask("SELECT 2"), "2");
    gate.admin(&database, "KILL postgres");
    until("its clients are gone", || {
        !gate.admin(&database, "SHOW CLIENTS").contains("C|ann|")
    });
}
