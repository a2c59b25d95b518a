//! What the gate asks the server when a client's turn is over: nothing that the client has set or
//! cancels ends that, so no setting of the client's is lost.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::bytes::{connect, hear, query, session, session_with};
use crate::support::{Database, Gate, Talk, transactions, until};

/// After RESET the gate asks by this view how each setting came to be what it is.
const VIEW: &str = "pg_catalog.pg_settings";
/// In one turn.
const CHANGES: &str = "SET work_mem = '7MB'; RESET enable_seqscan";
const MEMORY: &str = "SHOW work_mem";
const TIMEOUT: &str = "SHOW statement_timeout";
const PATH: &str = "SHOW search_path";

fn start(test: &str) -> Option<(Database, Gate)> {
    let database = Database::start(test)?;
    database.ask("CREATE ROLE bob LOGIN");
    let config = format!("admins = [\"postgres\"]\n{}", transactions(2));
    let gate = Gate::before(&database, &config);
    Some((database, gate))
}

/// The values, errors and end of what is answered to a query.
fn ask(client: &mut UnixStream, sql: &str) -> String {
    client.write_all(&query(sql)).unwrap();
    let mut heard = Vec::new();
    loop {
        let (tag, body) = hear(client);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match tag {
            // The only column.
            b'D' => heard.push(text(&body[6..])),
            b'E' => heard.push(text(&body).replace('\0', " ")),
            b'Z' => return heard.join(" "),
            _ => {}
        }
    }
}

/// The gate's question waits for who holds this, past the gate.
fn hold(database: &Database) -> Talk {
    let mut holder = Talk::begin(&mut database.psql(database.folder(), 5432, "postgres"));
    holder.ask("BEGIN");
    holder.ask(&format!("LOCK TABLE {VIEW} IN ACCESS EXCLUSIVE MODE"));
    holder
}

/// Whether a session waits, and has for longer than so many ms.
fn waits(database: &Database, for_ms: u32) -> bool {
    let long = format!("clock_timestamp() - waitstart > interval '{for_ms} ms'");
    let sql = format!("SELECT count(*) FROM pg_locks WHERE NOT granted AND {long}");
    database.ask(&sql) == "1"
}

#[test]
fn a_clients_statement_timeout_does_not_end_the_gates_question() {
    let test = "a_clients_statement_timeout_does_not_end";
    let Some((database, gate)) = start(test) else {
        return;
    };
    let (mut client, _) = session(&gate, "postgres");
    let (mut other, _) = session(&gate, "postgres");
    ask(&mut client, "SET statement_timeout = '300ms'");
    assert_eq!(ask(&mut other, TIMEOUT), "0");
    assert_eq!(ask(&mut client, TIMEOUT), "300ms");
    let mut holder = hold(&database);
    ask(&mut client, CHANGES);
    until("the question outlasts the timeout", || {
        waits(&database, 900)
    });
    holder.ask("COMMIT");
    assert_eq!(ask(&mut client, MEMORY), "7MB");
    assert_ne!(ask(&mut other, MEMORY), "7MB");
    assert_eq!(ask(&mut other, TIMEOUT), "0");
    assert_eq!(ask(&mut client, TIMEOUT), "300ms");
    // What is asked for before the timeout is lifted, with another setting and after a RESET.
    ask(&mut client, "SET statement_timeout = '9s'; RESET work_mem");
    assert_eq!(ask(&mut other, TIMEOUT), "0");
    assert_eq!(ask(&mut client, TIMEOUT), "9s");
    ask(&mut client, "RESET statement_timeout");
    assert_eq!(ask(&mut client, TIMEOUT), "0");
}

#[test]
fn a_cancel_request_that_comes_late_does_not_reach_the_gates_question() {
    let test = "a_cancel_request_that_comes_late";
    let Some((database, gate)) = start(test) else {
        return;
    };
    let (mut client, cancel) = session(&gate, "postgres");
    let mut holder = hold(&database);
    ask(&mut client, CHANGES);
    until("the gate asks", || waits(&database, 0));
    let mut canceller = connect(&gate);
    canceller.write_all(&cancel).unwrap();
    // It would be over soon if it went on to the server, and is not.
    canceller
        .set_read_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    let ended = canceller.read(&mut [0]);
    assert!(ended.is_err(), "{ended:?}");
    assert!(waits(&database, 0), "the question was cancelled");
    holder.ask("COMMIT");
    assert_eq!(ask(&mut client, MEMORY), "7MB");
    // Nor does it mean what comes next.
    assert_eq!(ask(&mut client, "SELECT 'next' FROM pg_sleep(0.1)"), "next");
}

#[test]
fn a_client_of_which_the_server_does_not_tell_the_settings_keeps_its_connection() {
    let test = "a_client_of_which_the_server_does_not_tell";
    let Some((database, gate)) = start(test) else {
        return;
    };
    database.ask(&format!("REVOKE SELECT ON {VIEW} FROM public"));
    let (mut client, _) = session_with(&gate, "bob", "search_path\0app\0");
    let (mut other, _) = session(&gate, "bob");
    ask(&mut client, CHANGES);
    let usual = ask(&mut other, MEMORY);
    assert_ne!(usual, "7MB");
    assert_eq!(ask(&mut client, MEMORY), "7MB");
    assert_eq!(ask(&mut other, MEMORY), usual);
    let shown = || gate.admin(&database, "SHOW CLIENTS");
    let active = || shown().matches("C|bob|postgres|active|").count();
    until("it keeps its connection", || active() == 1);
    // What its first packet has set is back after RESET, and the rest stays.
    ask(&mut client, "RESET search_path");
    assert_eq!(ask(&mut client, PATH), "app");
    assert_eq!(ask(&mut client, MEMORY), "7MB");
    ask(&mut client, "SET search_path = later; RESET ALL");
    assert_eq!(ask(&mut client, PATH), "app");
    assert_eq!(ask(&mut client, MEMORY), usual);
    ask(&mut client, "SET search_path = later; SET work_mem = '7MB'");
    assert_eq!(ask(&mut client, PATH), "later");
    assert_ne!(ask(&mut other, PATH), "later");
    // As soon as it tells them, that is over.
    database.ask(&format!("GRANT SELECT ON {VIEW} TO public"));
    assert_eq!(ask(&mut client, MEMORY), "7MB");
    until("it keeps none", || active() == 0);
    assert_eq!(ask(&mut client, PATH), "later");
    assert_eq!(ask(&mut other, MEMORY), usual);
    assert_eq!(ask(&mut client, MEMORY), "7MB");
}
