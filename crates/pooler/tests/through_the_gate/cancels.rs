//! Cancel requests that come while the transaction that they mean is let in.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::Duration;

use crate::bytes::{hear, message, session};
use crate::support::{Database, Gate, Talk, transactions, until};

const SLEEPS: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";

/// The tags of what is answered to a query.
fn answers(stream: &mut UnixStream) -> String {
    let mut tags = String::new();
    while !tags.ends_with('Z') {
        tags.push(char::from(hear(stream).0));
    }
    tags
}

#[test]
fn a_cancel_request_means_what_waited_when_it_came() {
    let Some(database) = Database::start("a_cancel_request_means_what_waited") else {
        return;
    };
    let config = format!("admins = [\"postgres\"]\n{}", transactions(1));
    let gate = Gate::before(&database, &config);
    let mut inside = Talk::begin(&mut gate.psql(&database, "postgres"));
    let (mut client, cancel) = session(&gate, "postgres");
    let sleeps = message(b'Q', b"SELECT pg_sleep(5)\0");
    let connect = || {
        let canceller = UnixStream::connect(gate.folder().join(".s.PGSQL.6432")).unwrap();
        sleep(Duration::from_millis(300));
        canceller
    };
    let is_asleep = || until("it sleeps", || database.ask(SLEEPS) == "1");
    inside.ask("BEGIN");
    client.write_all(&sleeps).unwrap();
    until("it waits", || {
        gate.admin(&database, "SHOW LISTS")
            .contains("waiting_clients|1")
    });
    let mut canceller = connect();
    inside.ask("COMMIT");
    is_asleep();
    canceller.write_all(&cancel).unwrap();
    assert_eq!(answers(&mut client), "TEZ");
    // One that came before its query does not mean that.
    let mut canceller = connect();
    client.write_all(&sleeps).unwrap();
    is_asleep();
    canceller.write_all(&cancel).unwrap();
    assert_eq!(answers(&mut client), "TDCZ");
}
