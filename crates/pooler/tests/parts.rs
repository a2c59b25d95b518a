//! Clients that send a part of a message and then nothing: it takes no place inside, and where it had
//! to take one, the client is ended as any other that holds one and does nothing.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::Duration;

use crate::bytes::{hear, message, query, session, session_with};
use crate::support::{Database, Gate, transactions, until};

/// The gate has read what was sent by then.
const A_WHILE: Duration = Duration::from_millis(100);

/// A gate with one place.
fn start(name: &str, limits: &str) -> Option<(Database, Gate)> {
    let database = Database::start(name)?;
    database.ask("CREATE ROLE ann LOGIN");
    let config = format!("admins = [\"postgres\"]\n{}{limits}", transactions(1));
    let gate = Gate::before(&database, &config);
    Some((database, gate))
}

/// What is heard up to the end of a cycle: an error with its code, rows with their values.
fn answer(stream: &mut UnixStream) -> String {
    let mut heard = Vec::new();
    loop {
        let (tag, body) = hear(stream);
        match tag {
            // Behind the number of fields and the length of the only one.
            b'D' => heard.push(String::from_utf8_lossy(&body[6..]).into_owned()),
            b'E' => {
                let text = String::from_utf8_lossy(&body);
                let code = text.split('\0').find(|field| field.starts_with('C'));
                heard.push(code.unwrap().to_owned());
                if text.starts_with("SFATAL") {
                    return heard.join(" ");
                }
            }
            b'Z' => return heard.join(" "),
            _ => {}
        }
    }
}

fn ask(stream: &mut UnixStream, sql: &str) -> String {
    stream.write_all(&query(sql)).unwrap();
    answer(stream)
}

/// How many are inside.
fn inside(gate: &Gate, database: &Database) -> String {
    let gates = gate.admin(database, "SHOW GATES");
    gates.split('|').nth(2).unwrap().to_owned()
}

/// What tables say that ann does.
fn activity(gate: &Gate, database: &Database) -> String {
    let clients = gate.admin(database, "SHOW CLIENTS");
    let own = clients.lines().find(|line| line.starts_with("C|ann|"));
    own.unwrap().split('|').nth(3).unwrap().to_owned()
}

/// A cycle with a statement of so many bytes.
fn long_cycle(bytes: usize) -> Vec<u8> {
    let sql = format!("SELECT 7 -- {}", "x".repeat(bytes));
    let parse = [b"\0", sql.as_bytes(), b"\0\0\0"].concat();
    [
        message(b'P', &parse),
        message(b'B', b"\0\0\0\0\0\0\0\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'S', b""),
    ]
    .concat()
}

#[test]
fn a_part_of_a_message_takes_no_place() {
    let Some((database, gate)) = start("a_part_of_a_message_takes_no_place", "") else {
        return;
    };
    let (mut ann, _) = session(&gate, "ann");
    let (mut other, _) = session(&gate, "postgres");
    let before = activity(&gate, &database);
    let (short, long) = (query("SELECT 7"), long_cycle(200_000));
    for (cycle, part_bytes) in [
        (&short, 1),
        (&short, 3),
        (&short, 5),
        (&short, 9),
        (&long, 5),
        (&long, 150_000),
    ] {
        let (part, rest) = cycle.split_at(part_bytes);
        ann.write_all(part).unwrap();
        sleep(A_WHILE);
        assert_eq!(inside(&gate, &database), "0", "{part_bytes} bytes");
        assert_eq!(activity(&gate, &database), before, "{part_bytes} bytes");
        assert_eq!(ask(&mut other, "SELECT 8"), "8", "{part_bytes} bytes");
        ann.write_all(rest).unwrap();
        assert_eq!(answer(&mut ann), "7", "{part_bytes} bytes");
    }
    // Also where it comes with a message that is whole.
    let both = [&query("SELECT 5")[..], &short].concat();
    let (begin, rest) = both.split_at(both.len() - short.len() + 3);
    ann.write_all(begin).unwrap();
    assert_eq!(answer(&mut ann), "5");
    sleep(A_WHILE);
    assert_eq!(inside(&gate, &database), "0");
    assert_eq!(ask(&mut other, "SELECT 8"), "8");
    ann.write_all(rest).unwrap();
    assert_eq!(answer(&mut ann), "7");
}

#[test]
fn what_is_no_message_is_refused_without_a_place() {
    let Some((database, gate)) = start("what_is_no_message_is_refused", "") else {
        return;
    };
    let (mut holder, _) = session(&gate, "postgres");
    ask(&mut holder, "BEGIN");
    for broken in [&b"\xff"[..], b"Q\0\0\0\x03", b"D\x7f\0\0\0"] {
        let (mut ann, _) = session(&gate, "ann");
        ann.write_all(broken).unwrap();
        assert_eq!(answer(&mut ann), "C08P01", "{broken:?}");
    }
    // One that leaves in the middle of a message leaves nothing behind.
    let (mut ann, _) = session(&gate, "ann");
    ann.write_all(b"Q\0\0").unwrap();
    drop(ann);
    until("it is gone", || {
        !gate.admin(&database, "SHOW CLIENTS").contains("C|ann|")
    });
    assert_eq!(ask(&mut holder, "SELECT 1"), "1");
}

/// As PostgreSQL counts it.
#[test]
fn a_client_that_has_sent_a_part_is_idle() {
    let Some((database, gate)) = start("a_client_that_has_sent_a_part_is_idle", "") else {
        return;
    };
    let own = "idle_session_timeout\x00500\0";
    let (mut timed, _) = session_with(&gate, "ann", own);
    timed.write_all(b"Q\0\0").unwrap();
    sleep(A_WHILE);
    timed.write_all(b"\0").unwrap();
    assert_eq!(answer(&mut timed), "C57P05");
    let (mut ann, _) = session(&gate, "ann");
    ann.write_all(b"Q\0\0").unwrap();
    sleep(A_WHILE);
    gate.admin(&database, "SHUTDOWN WAIT_FOR_SERVERS");
    assert_eq!(answer(&mut ann), "C57P01");
    until("the gate has ended", || gate.is_over());
}

/// What is too long to be waited for as a whole is inside from its beginning on.
#[test]
fn a_client_that_stops_in_a_long_message_is_ended() {
    let limits = "kept_idle_seconds = 2\n";
    let Some((database, gate)) = start("a_client_that_stops_in_a_long_message", limits) else {
        return;
    };
    let sql = format!("SELECT 7 -- {}", "x".repeat(100_000));
    let long = query(&sql);
    for first in ["SELECT 1", "BEGIN"] {
        let (mut ann, _) = session(&gate, "ann");
        ask(&mut ann, first);
        // As long as something comes, however slowly, it is not idle.
        for part in long[..60_000].chunks(7_500) {
            ann.write_all(part).unwrap();
            sleep(4 * A_WHILE);
        }
        assert_eq!(activity(&gate, &database), "active");
        assert_eq!(answer(&mut ann), "C57P05", "{first}");
        let (mut other, _) = session(&gate, "postgres");
        assert_eq!(ask(&mut other, "SELECT 8"), "8", "{first}");
    }
    let (mut ann, _) = session(&gate, "ann");
    ann.write_all(&long).unwrap();
    assert_eq!(answer(&mut ann), "7");
}

/// Its rows come when the client has them: no place of a pause makes it another one.
#[test]
fn a_client_that_pauses_in_a_row_of_a_copy_is_not_ended() {
    let limits = "kept_idle_seconds = 1\n";
    let Some((database, gate)) = start("a_client_that_pauses_in_a_row", limits) else {
        return;
    };
    database.ask("CREATE TABLE t (s text)");
    let (mut client, _) = session(&gate, "postgres");
    client.write_all(&query("COPY t FROM STDIN")).unwrap();
    assert_eq!(hear(&mut client).0, b'G');
    let row = message(b'd', format!("{}\n", "x".repeat(1000)).as_bytes());
    let (half, rest) = row.split_at(500);
    client.write_all(half).unwrap();
    sleep(30 * A_WHILE);
    client.write_all(rest).unwrap();
    client.write_all(&message(b'c', b"")).unwrap();
    assert_eq!(answer(&mut client), "");
    assert_eq!(ask(&mut client, "SELECT count(*) FROM t"), "1");
}
