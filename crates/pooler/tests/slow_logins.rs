//! Transactions that wait while the server lets a new session in, which can take a hundred times as
//! long as a transaction: `post_auth_delay` makes it so.

use std::fs;
use std::process::Command;

use sooner_testbed::postgres::DATABASE_PORT;

use crate::support::{Database, Gate, Talk, until};

/// A session past the gate that makes logins slow.
struct Slowing<'a> {
    database: &'a Database,
    direct: Talk,
}

impl<'a> Slowing<'a> {
    fn of(database: &'a Database) -> Self {
        let direct = Talk::begin(&mut database.psql(database.folder(), DATABASE_PORT, "postgres"));
        Slowing { database, direct }
    }

    /// New sessions of the server sleep for so long before they are ready.
    fn set_login_seconds(&mut self, seconds: u32) {
        let loaded_at = "SELECT pg_conf_load_time()";
        let before = self.direct.ask(loaded_at);
        let set = format!("ALTER SYSTEM SET post_auth_delay = {seconds}");
        self.direct.ask(&set);
        self.direct.ask("SELECT pg_reload_conf()");
        // A session has read it when the server has.
        until("the setting is in force", || {
            self.direct.ask(loaded_at) != before
        });
    }

    /// Processes of the server that are letting a session in.
    fn logging_in(&self) -> Vec<u32> {
        let file = self.database.folder().join("data/postmaster.pid");
        let server: u32 = fs::read_to_string(file)
            .unwrap()
            .lines()
            .next()
            .unwrap()
            .parse()
            .unwrap();
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let starts = |pid: &u32| {
            let title = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let behind_name = stat.rsplit(')').next().unwrap_or_default();
            let parent = behind_name.split_whitespace().nth(1);
            title.contains("startup") && parent == Some(server.to_string().as_str())
        };
        pids.filter(starts).collect()
    }
}

fn start(test: &str) -> Option<(Database, Gate)> {
    let database = Database::start(test)?;
    let config = "admins = [\"postgres\"]\n[limits]\ntransactions = 2\n";
    let gate = Gate::before(&database, config);
    Some((database, gate))
}

const OWN: &str = "SELECT pg_backend_pid()";

#[test]
fn who_waits_for_a_login_gets_what_comes_back_first() {
    let Some((database, gate)) = start("who_waits_for_a_login_gets_what_comes_back_first") else {
        return;
    };
    let talk = || Talk::begin(&mut gate.psql(&database, "postgres"));
    let mut first = talk();
    let own = first.ask(OWN);
    let (mut second, mut third) = (talk(), talk());
    let mut slowing = Slowing::of(&database);
    slowing.set_login_seconds(5);
    first.ask("BEGIN");
    second.say(OWN);
    until("a session is let in", || slowing.logging_in().len() == 1);
    first.ask("COMMIT");
    assert_eq!(second.hear(), own);
    // The login goes on, for the next one that finds no connection: it begins no other.
    first.ask("BEGIN");
    third.say(OWN);
    let other = third.hear();
    assert_ne!(other, own);
    assert_eq!(first.ask(OWN), own);
    first.ask("COMMIT");
    let servers = gate.admin(&database, "SHOW SERVERS");
    assert_eq!(servers.lines().count(), 2, "{servers}");
}

#[test]
fn one_that_waits_for_anothers_login_begins_its_own_when_that_fails() {
    let test = "one_that_waits_for_anothers_login_begins_its_own_when_that_fails";
    let Some((database, gate)) = start(test) else {
        return;
    };
    let talk = || Talk::begin(&mut gate.psql(&database, "postgres"));
    let mut first = talk();
    let own = first.ask(OWN);
    let (mut second, mut third) = (talk(), talk());
    let mut slowing = Slowing::of(&database);
    slowing.set_login_seconds(30);
    first.ask("BEGIN");
    second.say(OWN);
    until("a session is let in", || slowing.logging_in().len() == 1);
    let failing = slowing.logging_in()[0];
    first.ask("COMMIT");
    assert_eq!(second.hear(), own);
    first.ask("BEGIN");
    third.say(OWN);
    slowing.set_login_seconds(0);
    let ended = Command::new("kill").arg(failing.to_string()).status();
    assert!(ended.unwrap().success());
    assert_ne!(third.hear(), own);
    first.ask("COMMIT");
}

#[test]
fn a_login_for_a_place_that_a_reload_has_changed_serves_no_client() {
    let test = "a_login_for_a_place_that_a_reload_has_changed_serves_no_client";
    let Some(database) = Database::start(test) else {
        return;
    };
    database.ask("CREATE DATABASE other");
    let server = format!("postgresql:///?host={}", database.folder().display());
    let config = format!(
        "admins = [\"postgres\"]\n[limits]\ntransactions = 2\n\
         [[database]]\nname = \"postgres\"\nserver = \"{server}\"\n"
    );
    let gate = Gate::before(&database, &config);
    let talk = || Talk::begin(&mut gate.psql(&database, "postgres"));
    let mut first = talk();
    let here = "SELECT current_database()";
    assert_eq!(first.ask(here), "postgres");
    let mut second = talk();
    let mut slowing = Slowing::of(&database);
    slowing.set_login_seconds(4);
    first.ask("BEGIN");
    second.say(here);
    until("a session is let in", || slowing.logging_in().len() == 1);
    let there = "name = \"postgres\"\nname_there = \"other\"\n";
    gate.rewrite(|text| text.replacen("name = \"postgres\"\n", there, 1));
    gate.admin(&database, "RELOAD");
    assert_eq!(second.hear(), "other");
    // What was begun at the old place ends there.
    assert_eq!(first.ask(here), "postgres");
    first.ask("COMMIT");
    assert_eq!(first.ask(here), "other");
}

#[test]
fn a_limit_that_a_reload_sets_while_the_first_session_logs_in_stays() {
    let Some(database) = Database::start("a_limit_that_a_reload_sets") else {
        return;
    };
    let config = "admins = [\"postgres\"]\n[limits]\ntransactions = \"auto\"\n";
    let gate = Gate::before(&database, config);
    let mut slowing = Slowing::of(&database);
    slowing.set_login_seconds(4);
    let mut first = Talk::begin(&mut gate.psql(&database, "postgres"));
    first.say(OWN);
    until("a session is let in", || slowing.logging_in().len() == 1);
    gate.rewrite(|text| text.replacen("transactions = \"auto\"", "transactions = 3", 1));
    gate.admin(&database, "RELOAD");
    // The server has been asked how many connections it allows.
    first.hear();
    let gates = gate.admin(&database, "SHOW GATES");
    assert_eq!(gates.split('|').nth(1), Some("3"), "{gates}");
}
