//! Roles and databases with a CONNECTION LIMIT in the server: who is at one holds up no others.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::support::{Database, Gate, Talk, printed, transactions, until};

/// A gate that lets two transactions in, for ann and bob.
fn start(test: &str) -> Option<(Database, Gate)> {
    let database = Database::start(test)?;
    database.ask("CREATE ROLE ann LOGIN");
    database.ask("CREATE ROLE bob LOGIN");
    let config = format!("admins = [\"postgres\"]\n{}", transactions(2));
    let gate = Gate::before(&database, &config);
    Some((database, gate))
}

/// What a psql says of its error, once it has ended.
struct Ends {
    psql: Child,
    said: mpsc::Receiver<String>,
}

impl Ends {
    fn begin(psql: &mut Command) -> Ends {
        let psql = psql.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut psql = psql.stdin(Stdio::null()).spawn().unwrap();
        let mut from = psql.stderr.take().unwrap();
        let (says, said) = mpsc::channel();
        thread::spawn(move || {
            let mut text = String::new();
            from.read_to_string(&mut text).unwrap();
            let _ = says.send(text);
        });
        Ends { psql, said }
    }

    /// `None` where it goes on for long.
    fn said(&mut self) -> Option<String> {
        let said = self.said.recv_timeout(Duration::from_secs(20)).ok();
        if said.is_none() {
            crate::support::signal_child_of(self.psql.id(), "-KILL");
            let _ = self.psql.kill();
        }
        let _ = self.psql.wait();
        said
    }
}

/// Whether a user's statement is answered before long.
fn is_answered(gate: &Gate, database: &Database, user: &str) -> bool {
    let mut psql = gate.psql(database, user);
    let psql = psql.args(["-c", "SELECT 'answered'"]);
    let mut psql = psql
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let from = psql.stdout.take().unwrap();
    let (says, said) = mpsc::channel();
    thread::spawn(move || {
        let mut lines = BufReader::new(from).lines();
        let _ = says.send(lines.next().and_then(Result::ok));
    });
    let said = said.recv_timeout(Duration::from_secs(20));
    if said.is_err() {
        crate::support::signal_child_of(psql.id(), "-KILL");
        let _ = psql.kill();
    }
    let _ = psql.wait();
    said.ok().flatten().as_deref() == Some("answered")
}

fn waiting(gate: &Gate, database: &Database, user: &str) -> usize {
    let waits = format!("C|{user}|");
    let clients = gate.admin(database, "SHOW CLIENTS");
    let own = clients.lines().filter(|line| line.starts_with(&waits));
    own.filter(|line| line.contains("|waiting|")).count()
}

#[test]
fn who_has_no_connection_that_could_come_free_is_told_at_once() {
    let Some((database, gate)) = start("who_has_no_connection_that_could") else {
        return;
    };
    database.ask("CREATE DATABASE app2 CONNECTION LIMIT 0");
    let mut both = [(); 2].map(|()| {
        let mut psql = gate.psql(&database, "bob");
        Ends::begin(psql.args(["-d", "app2", "-c", "SELECT 1"]))
    });
    assert!(is_answered(&gate, &database, "ann"));
    let words = "FATAL:  too many connections for database \"app2\"";
    for one in &mut both {
        let said = one.said();
        assert!(
            said.as_deref().is_some_and(|said| said.contains(words)),
            "{said:?}"
        );
    }
}

#[test]
fn who_waits_for_a_connection_of_its_own_role_waits_outside() {
    let Some((database, gate)) = start("who_waits_for_a_connection_of_its_own") else {
        return;
    };
    database.ask("ALTER ROLE bob CONNECTION LIMIT 1");
    let mut first = Talk::begin(&mut gate.psql(&database, "bob"));
    let mut others = [(); 5].map(|()| Talk::begin(&mut gate.psql(&database, "bob")));
    for other in &mut others {
        other.ask("SELECT 1");
    }
    first.ask("BEGIN");
    for (number, other) in others.iter_mut().enumerate() {
        other.say(&format!("SELECT 'bob {number}'"));
    }
    until("they wait", || waiting(&gate, &database, "bob") == 5);
    for _ in 0..3 {
        assert!(is_answered(&gate, &database, "ann"));
    }
    assert_eq!(waiting(&gate, &database, "bob"), 5);
    // A server connection of the role in another database is in its way as well.
    first.ask("COMMIT");
    for (number, other) in others.iter_mut().enumerate() {
        assert_eq!(other.hear(), format!("bob {number}"));
    }
    database.ask("CREATE DATABASE app2");
    let mut elsewhere = gate.psql(&database, "bob");
    let elsewhere = elsewhere.args(["-d", "app2", "-c", "SELECT current_database()"]);
    assert_eq!(printed(elsewhere).trim(), "app2");
    assert!(is_answered(&gate, &database, "bob"));
}

/// PostgreSQL counts by its own name, clients may have two.
#[test]
fn who_waits_for_a_connection_by_another_name_of_its_database_waits_outside() {
    let test = "who_waits_for_a_connection_by_another_name";
    let Some(database) = Database::start(test) else {
        return;
    };
    database.ask("CREATE ROLE bob LOGIN");
    database.ask("CREATE DATABASE shop CONNECTION LIMIT 1");
    let server = format!("postgresql:///?host={}", database.folder().display());
    let entry = format!(
        "[[database]]\nname = \"shop_session\"\nname_there = \"shop\"\nserver = \"{server}\"\n"
    );
    let config = format!("admins = [\"postgres\"]\n{}{entry}", transactions(3));
    let gate = Gate::before(&database, &config);
    let mut first = Talk::begin(gate.psql(&database, "bob").args(["-d", "shop"]));
    first.ask("BEGIN");
    let other = || {
        let mut psql = gate.psql(&database, "bob");
        psql.args(["-d", "shop_session", "-c", "SELECT current_database()"]);
        printed(&mut psql)
    };
    thread::scope(|scope| {
        let other = scope.spawn(other);
        until("it waits", || {
            assert!(!other.is_finished(), "it does not wait");
            waiting(&gate, &database, "bob") == 1
        });
        first.ask("COMMIT");
        assert_eq!(other.join().unwrap().trim(), "shop");
    });
}
