//! What a reload changes for those who are here: bounds that were not there, and how long who waits
//! may wait.

use std::process::Stdio;

use super::{start, start_with};
use crate::support::{Database, Gate, Talk, said, transactions, until};

/// Who is inside counts in a bound that a reload adds, of a database or of a user.
fn counts_who_is_inside(test: &str, add: impl Fn(String) -> String) {
    let Some((database, gate)) = start_with(test, &transactions(8)) else {
        return;
    };
    let mut inside = [0, 1].map(|_| {
        let mut talk = Talk::begin(&mut gate.psql(&database, "ann"));
        talk.ask("BEGIN");
        talk
    });
    gate.rewrite(add);
    gate.admin(&database, "RELOAD");
    let mut third = Talk::begin(&mut gate.psql(&database, "ann"));
    third.say("SELECT 3");
    let waits = || {
        let pools = gate.admin(&database, "SHOW POOLS");
        pools.contains("postgres|ann|2|1|") || pools.contains("postgres|ann|1|1|")
    };
    until("the third waits", waits);
    inside[0].ask("COMMIT");
    assert!(waits(), "one inside is as many as may be");
    inside[1].ask("COMMIT");
    assert_eq!(third.hear().trim(), "3");
    // Their places are free again.
    for talk in &mut inside {
        talk.ask("BEGIN");
        talk.ask("COMMIT");
    }
}

#[test]
fn a_database_that_gets_a_bound_counts_who_is_inside() {
    counts_who_is_inside("a_database_that_gets_a_bound", |text| {
        text.replace("[[database]]\n", "[[database]]\ntransactions = 1\n")
    });
}

#[test]
fn a_user_who_gets_a_bound_counts_where_it_is_inside() {
    counts_who_is_inside("a_user_who_gets_a_bound", |text| {
        text + "[[user]]\nname = \"ann\"\ntransactions = 1\n"
    });
}

/// A user with a bound from now on, of whom one is inside and one waits at the server.
#[test]
fn who_waits_at_the_server_waits_for_a_bound_that_is_new() {
    let Some((database, gate)) = start_with("who_waits_at_the_server", &transactions(2)) else {
        return;
    };
    let mut other = Talk::begin(&mut gate.psql(&database, "bob"));
    let mut inside = Talk::begin(&mut gate.psql(&database, "ann"));
    let mut waiting = Talk::begin(&mut gate.psql(&database, "ann"));
    for talk in [&mut other, &mut inside, &mut waiting] {
        talk.ask("SELECT 1");
    }
    other.ask("BEGIN");
    inside.ask("BEGIN");
    waiting.say("SELECT 2");
    let waits = || is_waiting(&gate, &database);
    until("it waits at the server", waits);
    gate.rewrite(|text| text + "[[user]]\nname = \"ann\"\ntransactions = 1\n");
    gate.admin(&database, "RELOAD");
    other.ask("COMMIT");
    // A place at the server is free, and others have it.
    other.ask("SELECT 3");
    assert!(waits(), "one of ann's is inside");
    inside.ask("COMMIT");
    assert_eq!(waiting.hear().trim(), "2");
}

fn is_waiting(gate: &Gate, database: &Database) -> bool {
    let pools = gate.admin(database, "SHOW POOLS");
    pools.contains("postgres|ann|1|1|")
}

#[test]
fn who_waits_may_wait_for_as_long_as_the_file_says_now() {
    let Some((database, gate)) = start("who_waits_may_wait_for_as_long") else {
        return;
    };
    gate.rewrite(|text| text.replace("transactions = 4\n", "transactions = 1\n"));
    gate.admin(&database, "RELOAD");
    let mut inside = Talk::begin(&mut gate.psql(&database, "ann"));
    let mut waiting = gate.psql(&database, "ann");
    inside.ask("BEGIN");
    waiting.args(["-c", "SELECT 2"]);
    waiting.stdout(Stdio::piped()).stderr(Stdio::piped());
    let waiting = waiting.spawn().unwrap();
    until("it waits", || is_waiting(&gate, &database));
    let limited = "transactions = 1\nquery_wait_seconds = 1\n";
    gate.rewrite(|text| text.replace("transactions = 1\n", limited));
    gate.admin(&database, "RELOAD");
    let told = said(&waiting.wait_with_output().unwrap());
    assert!(told.contains("waited 1 s for a turn"), "{told}");
    inside.ask("COMMIT");
}
