//! A gate that stops while clients are still served: what is done regularly goes on, cancel
//! requests and admins are still taken, and new clients are told why they are not.

use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use super::{fails, start, start_with};
use crate::support::{Talk, printed, said, signal_child_of, until};

#[test]
fn a_client_that_holds_a_place_idly_is_ended_while_the_gate_stops() {
    let config = "[limits]\ntransactions = 2\nidle_in_transaction_seconds = 1\n";
    for stop in ["SHUTDOWN WAIT_FOR_CLIENTS", "SHUTDOWN WAIT_FOR_SERVERS"] {
        let Some((database, gate)) = start_with("a_client_that_holds_a_place_idly", config) else {
            return;
        };
        let mut idle = Talk::begin(gate.psql(&database, "postgres").stderr(Stdio::null()));
        idle.ask("BEGIN");
        gate.admin(&database, stop);
        until("the gate has ended", || gate.is_over());
    }
}

#[test]
fn cancel_requests_and_admins_are_taken_while_the_gate_stops() {
    let Some((database, gate)) = start("cancel_requests_and_admins_are_taken") else {
        return;
    };
    let mut psql = gate.psql(&database, "ann");
    psql.args([
        "-v",
        "ON_ERROR_STOP=0",
        "-c",
        "SELECT pg_sleep(50)",
        "-c",
        "SELECT 'on'",
    ]);
    psql.stdout(Stdio::piped()).stderr(Stdio::piped());
    let ann = psql.spawn().unwrap();
    let clients = || gate.admin(&database, "SHOW CLIENTS");
    until("ann works", || clients().contains("C|ann|postgres|active"));
    let mut stays = Talk::begin(gate.psql(&database, "postgres").stderr(Stdio::null()));
    stays.ask("SELECT 1");
    gate.admin(&database, "SHUTDOWN WAIT_FOR_CLIENTS");
    // What ended before at once has ended by then.
    sleep(Duration::from_millis(300));
    signal_child_of(ann.id(), "-INT");
    let output = ann.wait_with_output().unwrap();
    let words = said(&output);
    assert!(
        words.contains("canceling statement due to user request"),
        "{words}"
    );
    assert_eq!(stays.ask("SELECT 2"), "2");

    let refused = fails(&gate, &database, "ann", "postgres", "SELECT 1");
    assert!(
        refused.ends_with("FATAL:  the database system is shutting down"),
        "{refused}"
    );
    let mut bob = gate.psql(&database, "bob");
    let shown = printed(bob.args(["-d", "sooner", "-c", "SHOW CLIENTS"]));
    assert!(shown.contains("C|postgres|postgres|"), "{shown}");
    assert!(!gate.is_over());
    gate.admin(&database, "SHUTDOWN");
    until("the gate has ended", || gate.is_over());
}

#[test]
fn a_stop_lets_transactions_end() {
    let Some((database, gate)) = start("a_stop_lets_transactions_end") else {
        return;
    };
    database.ask("CREATE TABLE t (i int)");
    let mut idle = Talk::begin(&mut gate.psql(&database, "postgres"));
    idle.ask("SELECT 1");
    let mut inside = Talk::begin(&mut gate.psql(&database, "postgres"));
    inside.ask("BEGIN; INSERT INTO t VALUES (1)");
    gate.admin(&database, "SHUTDOWN WAIT_FOR_SERVERS");
    until("new clients are refused", || {
        let mut psql = gate.psql(&database, "ann");
        !psql
            .args(["-c", "SELECT 1"])
            .output()
            .unwrap()
            .status
            .success()
    });
    assert!(!gate.is_over());
    inside.ask("INSERT INTO t VALUES (2)");
    inside.ask("COMMIT");
    until("the gate has ended", || gate.is_over());
    assert_eq!(database.ask("SELECT sum(i) FROM t"), "3");
}
