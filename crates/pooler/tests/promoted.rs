//! What a server reports of itself changes while the gate is up: a standby that becomes a primary,
//! a setting that is reloaded.

use std::fs;

use crate::support::{Database, Gate, Talk, printed, transactions, until};

fn new_client(gate: &Gate, database: &Database, wants: &str) -> bool {
    let mut psql = gate.psql(database, "postgres");
    psql.env("PGTARGETSESSIONATTRS", wants);
    psql.args(["-c", "SELECT 1"])
        .output()
        .unwrap()
        .status
        .success()
}

#[test]
fn a_standby_that_is_promoted_is_a_primary_for_new_clients() {
    let Some(database) = Database::start("a_standby_that_is_promoted") else {
        return;
    };
    database.stop("fast");
    let signal = database.folder().join("data").join("standby.signal");
    fs::write(&signal, "").unwrap();
    database.give(&signal);
    database.restart();
    let gate = Gate::before(&database, &transactions(2));
    assert!(new_client(&gate, &database, "any"));
    assert!(!new_client(&gate, &database, "primary"));
    assert!(new_client(&gate, &database, "standby"));
    database.ask("SELECT pg_promote()");
    // No client that would have to have a server connection for it says so.
    until("it is a primary", || {
        new_client(&gate, &database, "primary")
    });
    assert!(!new_client(&gate, &database, "standby"));
}

#[test]
fn a_setting_that_is_reloaded_is_told_to_new_clients() {
    let Some(database) = Database::start("a_setting_that_is_reloaded") else {
        return;
    };
    let gate = Gate::before(&database, &transactions(2));
    let mut old = Talk::begin(&mut gate.psql(&database, "postgres"));
    old.ask("SELECT 1");
    assert!(new_client(&gate, &database, "read-write"));
    database.ask("ALTER SYSTEM SET default_transaction_read_only = on");
    database.ask("SELECT pg_reload_conf()");
    until("it is read-only", || {
        old.ask("SELECT 1");
        new_client(&gate, &database, "read-only")
    });
    // What a client sets for itself is not told to others.
    let mut own = gate.psql(&database, "postgres");
    let set = "SET application_name = 'own'; SET default_transaction_read_only = off";
    printed(own.args(["-c", set]));
    assert!(new_client(&gate, &database, "read-only"));
}
