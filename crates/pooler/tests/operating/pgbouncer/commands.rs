//! Commands beside PgBouncer's: those that it has and the gate has not are named, and what is said
//! of databases that no client uses at the moment.

use super::tables::{field, rows, rows_of};
use super::{PgBouncer, answer, start};
use crate::support::{Database, Gate, until};

/// Commands out of PgBouncer's own help: those with a database about `postgres`.
fn commands_of(help: &str) -> Vec<String> {
    let mut all = Vec::new();
    for line in help
        .lines()
        .filter(|line| line.starts_with(char::is_whitespace))
    {
        let (verb, object) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        match (verb, object) {
            ("SHOW", tables) => all.extend(tables.split('|').map(|table| format!("SHOW {table}"))),
            // It is for settings, and this for the end.
            ("SET" | "SHUTDOWN", _) => {}
            (verb, "") => all.push(verb.to_owned()),
            (verb, _) => all.push(format!("{verb} postgres")),
        }
    }
    all
}

#[test]
fn each_of_pgbouncers_commands_is_there_or_named() {
    let Some((database, _bouncer, gate)) = start("each_of_pgbouncers_commands") else {
        return;
    };
    gate.ask(&database, &["SELECT 1"]);
    let (_, _, help) = answer(PgBouncer::psql(&database), "SHOW HELP");
    let commands = commands_of(&help);
    assert!(commands.len() > 24, "{commands:?} of {help}");
    let mut missing = Vec::new();
    for command in &commands {
        let (is_done, _, said) = answer(gate.psql(&database, "postgres"), command);
        if !is_done && !said.contains("not paused") {
            missing.push(command.as_str());
            let is_named = said.contains("instead") && !said.contains("invalid command");
            assert!(is_named, "{command}: {said}");
        }
        if command.starts_with("PAUSE") || command.starts_with("KILL") {
            answer(gate.psql(&database, "postgres"), "RESUME postgres");
        }
    }
    assert_eq!(missing, ["SHOW FDS", "SUSPEND"]);
}

#[test]
fn a_second_pause_is_told_as_pgbouncer_tells_it() {
    let Some((database, _bouncer, gate)) = start("a_second_pause_is_told") else {
        return;
    };
    let theirs = |command: &str| answer(PgBouncer::psql(&database), command);
    let ours = |command: &str| answer(gate.psql(&database, "postgres"), command);
    for (command, is_done) in [
        ("PAUSE", true),
        ("PAUSE", false),
        ("RESUME", true),
        ("RESUME", false),
        ("PAUSE", true),
        ("RESUME", true),
    ] {
        for (who, (done, _, said)) in [("PgBouncer", theirs(command)), ("gate", ours(command))] {
            assert_eq!(done, is_done, "{who}: {command}: {said}");
        }
    }
    ours("PAUSE");
    let (_, _, said) = ours("PAUSE");
    assert!(said.contains("already suspended/paused"), "{said}");
}

#[test]
fn a_database_that_clients_have_used_is_known_while_it_is_idle() {
    let Some(database) = Database::start("a_database_that_clients_have_used") else {
        return;
    };
    let config = "admins = [\"postgres\"]\n[limits]\ntransactions = 2\nserver_idle_seconds = 1\n";
    let gate = Gate::before(&database, config);
    let forget = || {
        gate.ask(&database, &["SELECT 1"]);
        until("the database is forgotten", || {
            let all = rows(&gate, &database, "SHOW DATABASES");
            all.iter().all(|row| field(row, "name") != "postgres")
        });
    };
    let say = |command: &str| answer(gate.psql(&database, "postgres"), command);
    forget();
    let (is_done, _, said) = say("KILL postgres");
    assert!(is_done, "{said}");
    let (is_done, _, said) = say("RESUME postgres");
    assert!(is_done, "{said}");
    forget();
    let (is_done, _, said) = say("RESUME postgres");
    assert!(!is_done && said.contains("is not paused"), "{said}");
    let (is_done, _, said) = say("PAUSE postgres");
    assert!(is_done && !said.contains("no client has asked"), "{said}");
    let (is_done, _, said) = say("KILL nosuch");
    assert!(!is_done && said.contains("SHOW DATABASES"), "{said}");
}

#[test]
fn the_console_has_a_row_in_the_sums() {
    let Some((database, _bouncer, gate)) = start("the_console_has_a_row") else {
        return;
    };
    for table in ["STATS", "STATS_TOTALS", "STATS_AVERAGES"] {
        let command = format!("SHOW {table}");
        let theirs = rows_of(answer(PgBouncer::psql(&database), &command), &command);
        let ours = rows(&gate, &database, &command);
        for (who, rows) in [("PgBouncer", theirs), ("the gate", ours)] {
            let own = rows
                .iter()
                .find(|row| field(row, "database") == "pgbouncer");
            let own = own.unwrap_or_else(|| panic!("{who}: {table}: {rows:?}"));
            if table == "STATS_TOTALS" {
                for column in ["xact_count", "query_count"] {
                    assert_eq!(field(own, column), "2", "{who}: {column}");
                }
            }
        }
    }
    let (_, _, said) = answer(gate.psql(&database, "postgres"), "SET max_client_conn=2");
    assert!(
        said.contains("man gate.toml") && !said.contains("docs/"),
        "{said}"
    );
}
