//! A database that is moved while people use it: psql, a real PostgreSQL, the gate between them.
//! Both places are databases of one server, which say by themselves where one is.

use std::thread;
use std::time::Duration;

use crate::support::{Database, Gate, Talk, printed, said, transactions, until};

const HERE: &str = "SELECT current_database()";

/// A gate that knows the database `postgres` by this name alone, and where it is.
fn start(test: &str, limit: usize) -> Option<(Database, Gate)> {
    let database = Database::start(test)?;
    database.ask("CREATE DATABASE other");
    let own = format!(
        "[[database]]\nname = \"postgres\"\nserver = \"postgresql:///?host={}\"\n",
        database.folder().display()
    );
    let limits = transactions(limit);
    let config = format!("admins = [\"postgres\"]\n{limits}{own}");
    let gate = Gate::before(&database, &config);
    Some((database, gate))
}

fn moves(gate: &Gate) {
    let there = "name = \"postgres\"\nname_there = \"other\"\n";
    gate.rewrite(|text| text.replacen("name = \"postgres\"\n", there, 1));
}

fn until_somebody_waits(database: &Database, gate: &Gate) {
    until("somebody waits", || {
        let lists = gate.admin(database, "SHOW LISTS");
        lists.contains("waiting_clients|1")
    });
}

/// What a row of a table says of a client: it is still so after a while.
fn for_a_while() {
    thread::sleep(Duration::from_millis(300));
}

#[test]
fn who_waits_in_a_pause_waits_for_its_end_and_goes_to_the_new_place() {
    let Some((database, gate)) = start("who_waits_in_a_pause", 4) else {
        return;
    };
    gate.admin(&database, "PAUSE postgres");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| gate.ask(&database, &[HERE]));
        until_somebody_waits(&database, &gate);
        moves(&gate);
        gate.admin(&database, "RELOAD");
        for_a_while();
        assert!(!waiting.is_finished(), "the pause has not ended");
        gate.admin(&database, "RESUME postgres");
        assert_eq!(waiting.join().unwrap(), "other");
    });
}

#[test]
fn who_waits_for_a_place_goes_to_the_new_one_and_leaves_nothing_behind() {
    let Some((database, gate)) = start("who_waits_for_a_place", 1) else {
        return;
    };
    let mut inside = Talk::begin(&mut gate.psql(&database, "postgres"));
    inside.ask("BEGIN");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| gate.ask(&database, &[HERE, HERE]));
        until_somebody_waits(&database, &gate);
        moves(&gate);
        gate.admin(&database, "RELOAD");
        assert_eq!(inside.ask(HERE), "postgres");
        inside.ask("COMMIT");
        assert_eq!(waiting.join().unwrap(), "other\nother");
    });
    assert_eq!(inside.ask(HERE), "other");
    assert_eq!(gate.ask(&database, &[HERE]), "other");
}

#[test]
fn who_waits_for_what_is_there_no_more_is_told() {
    let Some((database, gate)) = start("who_waits_for_what_is_there_no_more", 4) else {
        return;
    };
    gate.admin(&database, "PAUSE postgres");
    thread::scope(|scope| {
        let mut psql = gate.psql(&database, "postgres");
        let waiting = scope.spawn(move || psql.args(["-c", HERE]).output().unwrap());
        until_somebody_waits(&database, &gate);
        gate.rewrite(|text| {
            let text = text.replacen("name = \"postgres\"", "name = \"elsewhere\"", 1);
            text.replacen("name = \"*\"", "name = \"somewhere\"", 1)
        });
        gate.admin(&database, "RELOAD");
        let output = waiting.join().unwrap();
        assert!(said(&output).contains("\"postgres\""), "{}", said(&output));
    });
}

#[test]
fn what_runs_at_the_old_place_is_waited_for_and_what_runs_at_the_new_one_is_not() {
    let Some((database, gate)) = start("what_runs_at_the_old_place", 4) else {
        return;
    };
    let mut old = Talk::begin(&mut gate.psql(&database, "postgres"));
    old.ask("BEGIN");
    moves(&gate);
    gate.admin(&database, "RELOAD");
    let mut new = Talk::begin(&mut gate.psql(&database, "postgres"));
    assert_eq!(new.ask(&format!("BEGIN; {HERE}")), "BEGIN\nother");
    thread::scope(|scope| {
        let closed = scope.spawn(|| gate.admin(&database, "WAIT_CLOSE postgres"));
        for_a_while();
        assert!(!closed.is_finished(), "the old transaction has not ended");
        old.ask("COMMIT");
        closed.join().unwrap();
        let paused = scope.spawn(|| gate.admin(&database, "PAUSE postgres"));
        for_a_while();
        assert!(!paused.is_finished(), "the new transaction has not ended");
        new.ask("COMMIT");
        paused.join().unwrap();
        gate.admin(&database, "RESUME postgres");
    });
}

#[test]
fn a_server_that_is_gone_for_ever_costs_those_who_wait_nothing_once_the_other_is_named() {
    let Some((database, gate)) = start("a_server_that_is_gone_for_ever", 4) else {
        return;
    };
    let socket = format!("host={}", database.folder().display());
    let gone = "host=/nowhere/at/all";
    gate.rewrite(|text| text.replacen(&socket, gone, 1));
    gate.admin(&database, "RELOAD");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| gate.ask(&database, &[HERE]));
        for_a_while();
        assert!(!waiting.is_finished());
        gate.rewrite(|text| text.replacen(gone, &socket, 1));
        gate.admin(&database, "RELOAD");
        assert_eq!(waiting.join().unwrap(), "postgres");
    });
}

#[test]
fn whoever_looks_after_the_gate_comes_in_when_it_is_full() {
    let Some(database) = Database::start("whoever_looks_after_the_gate") else {
        return;
    };
    let config = "admins = [\"postgres\"]\n[limits]\ntransactions = 1\nclients = 2\n";
    let gate = Gate::before(&database, config);
    let talks: Vec<Talk> = (0..2)
        .map(|_| Talk::begin(&mut gate.psql(&database, "postgres")))
        .collect();
    until("both are here", || {
        let lists = gate.admin(&database, "SHOW LISTS");
        // The admin who asks is one more, as in PgBouncer.
        lists.contains("used_clients|3") && lists.contains("login_clients|0")
    });
    let output = gate.psql(&database, "postgres").args(["-c", HERE]).output();
    assert!(said(&output.unwrap()).contains("2 clients are connected"));
    assert!(!gate.admin(&database, "SHOW CLIENTS").is_empty());
    drop(talks);
}

/// What a client leaves on its own connections changes no answer to who a user is.
#[test]
fn nobody_answers_for_the_database_who_somebody_is() {
    let Some(database) = Database::start("nobody_answers_for_the_database") else {
        return;
    };
    for sql in [
        "CREATE ROLE app LOGIN SUPERUSER",
        "CREATE ROLE ann LOGIN PASSWORD 'pencil'",
        "CREATE ROLE bob LOGIN PASSWORD 'brush'",
        "CREATE SCHEMA bob AUTHORIZATION bob",
        "CREATE TABLE bob.pg_authid AS SELECT * FROM pg_catalog.pg_authid",
        "UPDATE bob.pg_authid SET rolpassword = (SELECT rolpassword FROM pg_catalog.pg_authid WHERE rolname = 'bob') WHERE rolname = 'ann'",
        "ALTER DATABASE postgres SET search_path = bob, pg_catalog",
    ] {
        database.ask(sql);
    }
    database.require("scram-sha-256", "ann");
    let server = format!("postgresql:///?host={}", database.folder().display());
    let config = format!(
        "auth = \"scram\"\n[auth_query]\nuser = \"postgres\"\n[[database]]\nname = \"postgres\"\nserver = \"{server}\"\nuser = \"app\"\n"
    );
    let gate = Gate::before(&database, &config);
    let as_ann = |password: &str| {
        let mut psql = gate.psql(&database, "ann");
        psql.env("PGPASSWORD", password);
        psql.args(["-c", "SELECT current_user"]);
        psql.output().unwrap()
    };
    let mut bob = gate.psql(&database, "bob");
    bob.env("PGPASSWORD", "brush");
    bob.env("PGOPTIONS", "-csearch_path=bob,pg_catalog");
    assert_eq!(printed(bob.args(["-c", "SELECT current_user"])), "app");
    assert!(!as_ann("brush").status.success(), "bob is not ann");
    assert!(as_ann("pencil").status.success());
}

/// Every user logs in by SCRAM, but for the one who runs the tests.
const RULES: &str = "admins = [\"postgres\"]\n[[rule]]\nuser = [\"postgres\"]\nauth = \"trust\"\n\
                     [[rule]]\nauth = \"scram\"\n";

#[test]
fn a_secret_is_looked_up_where_the_database_is_now() {
    let Some(database) = Database::start("a_secret_is_looked_up_where") else {
        return;
    };
    for sql in [
        "CREATE ROLE ann LOGIN",
        "CREATE DATABASE d1",
        "CREATE DATABASE d2",
    ] {
        database.ask(sql);
    }
    let query = "query = \"SELECT $1, 'of_' || pg_catalog.current_database()\"";
    let config = format!(
        "{RULES}[auth_query]\nuser = \"postgres\"\n{query}\n\
         [[database]]\nname = \"app\"\nname_there = \"d1\"\nserver = \"postgresql:///?host={}\"\n",
        database.folder().display()
    );
    let gate = Gate::before(&database, &config);
    let comes_in = |password: &str| {
        let mut psql = gate.psql(&database, "ann");
        psql.env("PGPASSWORD", password);
        let output = psql.args(["-d", "app", "-c", HERE]).output();
        output.unwrap().status.success()
    };
    // The gate keeps its server in mind for another database's client.
    let mut other = Talk::begin(&mut gate.psql(&database, "postgres"));
    other.ask("SELECT 1");
    assert!(!comes_in("of_d2"));
    // For longer than a database is kept in mind that no client has.
    thread::sleep(Duration::from_millis(2500));
    gate.rewrite(|text| text.replacen("\"d1\"", "\"d2\"", 1));
    gate.admin(&database, "RELOAD");
    assert!(!comes_in("of_d1"), "the old database says nothing any more");
    assert!(comes_in("of_d2"));
}

#[test]
fn a_password_that_a_reload_reads_logs_in_for_those_who_are_here() {
    let Some(database) = Database::start("a_password_that_a_reload_reads") else {
        return;
    };
    for (method, new) in [("scram-sha-256", "new"), ("md5", "md5")] {
        database.ask(&format!(
            "SET password_encryption = '{method}'; DROP ROLE IF EXISTS ann; CREATE ROLE ann LOGIN PASSWORD 'old'"
        ));
        database.require(method, "ann");
        let config = format!("{RULES}[[user]]\nname = \"ann\"\npassword = \"old\"\n");
        let gate = Gate::before(&database, &config);
        let mut ann = Talk::begin(gate.psql(&database, "ann").env("PGPASSWORD", "old"));
        assert_eq!(ann.ask("SELECT current_user"), "ann");
        database.ask(&format!(
            "SET password_encryption = '{method}'; ALTER ROLE ann PASSWORD 'new'"
        ));
        let secret = match new {
            // As the server keeps it.
            "md5" => database.ask("SELECT rolpassword FROM pg_authid WHERE rolname = 'ann'"),
            password => password.to_owned(),
        };
        gate.rewrite(|text| text.replacen("\"old\"", &format!("{secret:?}"), 1));
        gate.admin(&database, "RELOAD");
        gate.admin(&database, "RECONNECT");
        assert_eq!(ann.ask("SELECT current_user"), "ann", "{method}");
    }
}

#[test]
fn an_entry_that_is_named_otherwise_keeps_its_password() {
    let Some(database) = Database::start("an_entry_that_is_named_otherwise") else {
        return;
    };
    database.ask("CREATE ROLE app LOGIN PASSWORD 'secret'");
    database.require("scram-sha-256", "app");
    let config = format!(
        "admins = [\"postgres\"]\n[[database]]\nname = \"postgres\"\nuser = \"app\"\n\
         password = \"secret\"\nserver = \"postgresql:///?host={}\"\n",
        database.folder().display()
    );
    let gate = Gate::before(&database, &config);
    let mut client = Talk::begin(&mut gate.psql(&database, "postgres"));
    assert_eq!(client.ask("SELECT current_user"), "app");
    gate.rewrite(|text| {
        // It stands for every name, in place of the other one that does.
        let other = text.rfind("[[database]]").unwrap();
        text[..other].replacen("name = \"postgres\"", "name = \"*\"", 1)
    });
    gate.admin(&database, "RELOAD");
    gate.admin(&database, "RECONNECT");
    assert_eq!(client.ask("SELECT current_user"), "app");
}
