//! How a session ends that an admin, a stop or the loss of its server ends, byte by byte: a client
//! that has heard a part of a message takes whatever comes next for the rest of it.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::Duration;

use crate::bytes::{connect, hear, message, query, session};
use crate::support::{Database, Gate, Talk, transactions, until};

const ADMIN: &str = "admins = [\"postgres\"]\n";
/// A row of a hundred megabytes.
const ROW: &str = "SELECT repeat('x', 100000000)";
const ROWS: &str = "COPY (SELECT repeat('x', 999) FROM generate_series(1, 100000)) TO STDOUT";
/// The number of the only client of this user.
fn number(gate: &Gate, database: &Database, user: &str) -> String {
    let all = gate.admin(database, "SHOW CLIENTS");
    let line = all
        .lines()
        .find(|line| line.starts_with(&format!("C|{user}|")));
    let field = line.and_then(|line| line.split('|').nth(13));
    field.unwrap_or_else(|| panic!("{all}")).to_owned()
}

/// Reads a message of this tag up to its header, and what comes before.
fn begin(stream: &mut UnixStream, tag: u8) {
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).unwrap();
        if head[0] == tag {
            return;
        }
        let length = i32::from_be_bytes(head[1..].try_into().unwrap());
        let mut body = vec![0; length as usize - 4];
        stream.read_exact(&mut body).unwrap();
    }
}

/// All that comes until the connection is closed.
fn rest(stream: &mut UnixStream) -> Vec<u8> {
    let mut heard = Vec::new();
    // A connection that is closed over unread bytes ends with an error.
    let _ = stream.read_to_end(&mut heard);
    heard
}

/// The end of what was heard, without the rows.
fn words(heard: &[u8]) -> String {
    let end = &heard[heard.len().saturating_sub(300)..];
    String::from_utf8_lossy(end)
        .trim_start_matches('x')
        .to_owned()
}

#[test]
fn a_client_in_the_middle_of_a_row_is_told_nothing() {
    let Some(database) = Database::start("a_client_in_the_middle_of_a_row") else {
        return;
    };
    database.ask("CREATE ROLE ann LOGIN");
    let gate = Gate::before(&database, &format!("{ADMIN}{}", transactions(2)));
    for (sql, tag) in [(ROW, b'D'), (ROWS, b'd')] {
        for command in ["KILL_CLIENT", "KILL"] {
            let (mut client, _) = session(&gate, "ann");
            client.write_all(&query(sql)).unwrap();
            begin(&mut client, tag);
            // It reads no more for a while, and the gate has as much as it takes.
            sleep(Duration::from_millis(300));
            let what = match command {
                "KILL" => "postgres".to_owned(),
                _ => number(&gate, &database, "ann"),
            };
            gate.admin(&database, &format!("{command} {what}"));
            until("the client is gone", || {
                !gate.admin(&database, "SHOW CLIENTS").contains("C|ann|")
            });
            let heard = words(&rest(&mut client));
            assert!(!heard.contains("FATAL"), "{sql}: {command}: {heard:?}");
            if command == "KILL" {
                gate.admin(&database, "RESUME postgres");
            }
        }
    }
    // One that has heard whole messages is told.
    let (mut client, _) = session(&gate, "ann");
    client.write_all(&query("SELECT pg_sleep(50)")).unwrap();
    until("it sleeps", || {
        gate.admin(&database, "SHOW CLIENTS")
            .contains("C|ann|postgres|active")
    });
    let ann = number(&gate, &database, "ann");
    gate.admin(&database, &format!("KILL_CLIENT {ann}"));
    let heard = words(&rest(&mut client));
    assert!(
        heard.contains("terminating connection due to administrator command"),
        "{heard:?}"
    );
}

#[test]
fn a_server_that_is_lost_in_the_middle_of_a_row_leaves_no_words() {
    let Some(database) = Database::start("a_server_that_is_lost_in_the_middle") else {
        return;
    };
    let gate = Gate::before(&database, &format!("{ADMIN}{}", transactions(2)));
    for (sql, tag) in [(ROW, b'D'), (ROWS, b'd')] {
        let (mut client, _) = session(&gate, "postgres");
        client.write_all(&query(sql)).unwrap();
        begin(&mut client, tag);
        sleep(Duration::from_millis(300));
        database.stop("immediate");
        let heard = words(&rest(&mut client));
        assert!(!heard.contains("FATAL"), "{sql}: {heard:?}");
        database.restart();
    }
    // Between two messages it is told.
    let (mut client, _) = session(&gate, "postgres");
    client.write_all(&query("SELECT pg_sleep(50)")).unwrap();
    let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    until("it sleeps", || database.ask(sleeping) == "1");
    database.stop("immediate");
    let heard = words(&rest(&mut client));
    assert!(
        heard.contains("FATAL") && heard.contains("was lost"),
        "{heard:?}"
    );
    database.restart();
}

/// A batch that waited for its turn is cancelled before its end has come.
#[test]
fn a_client_that_is_cancelled_outside_before_its_sync_can_be_ended() {
    let Some(database) = Database::start("a_client_that_is_cancelled_outside") else {
        return;
    };
    database.ask("CREATE ROLE ann LOGIN");
    let gate = Gate::before(&database, &format!("{ADMIN}{}", transactions(1)));
    let batch = [
        message(b'P', b"\0SELECT 1\0\0\0"),
        message(b'B', b"\0\0\0\0\0\0\0\0"),
        message(b'E', b"\0\0\0\0\0"),
    ]
    .concat();
    for command in ["KILL_CLIENT", "SHUTDOWN WAIT_FOR_SERVERS"] {
        let (mut client, cancel) = session(&gate, "ann");
        let mut inside = Talk::begin(&mut gate.psql(&database, "postgres"));
        inside.ask("BEGIN");
        client.write_all(&batch).unwrap();
        until("it waits", || {
            gate.admin(&database, "SHOW LISTS")
                .contains("waiting_clients|1")
        });
        let mut canceller = connect(&gate);
        canceller.write_all(&cancel).unwrap();
        rest(&mut canceller);
        let (tag, words) = hear(&mut client);
        let words = String::from_utf8_lossy(&words).into_owned();
        assert!(tag == b'E' && words.contains("57014"), "{words:?}");
        let command = match command {
            "KILL_CLIENT" => format!("KILL_CLIENT {}", number(&gate, &database, "ann")),
            other => other.to_owned(),
        };
        gate.admin(&database, &command);
        let (tag, words) = hear(&mut client);
        let words = String::from_utf8_lossy(&words).into_owned();
        assert!(
            tag == b'E' && words.contains("57P01"),
            "{command}: {words:?}"
        );
        assert_eq!(rest(&mut client), b"", "{command}");
        inside.ask("COMMIT");
    }
    until("the gate has ended", || gate.is_over());
}
