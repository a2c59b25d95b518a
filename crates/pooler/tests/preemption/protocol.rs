//! What a client hears of a statement that is sent again, message by message: as if it had been
//! sent once.

use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use super::{
    AGAIN, LATE, REPEATS, ROLLED_BACK, ask, direct, hear, say, shown, start, start_with, talk,
    until_waiting,
};
use crate::conversations::session::Session;
use crate::support::{Database, Gate, Talk, printed, until};

fn in_bytes(gate: &Gate, user: &str) -> Session {
    let socket = gate.folder().join(".s.PGSQL.6432");
    Session::begin_as(user, &socket, "postgres").unwrap()
}

fn message(tag: u8, body: &str) -> Vec<u8> {
    let length = (4 + body.len() as i32).to_be_bytes();
    [&[tag][..], &length, body.as_bytes()].concat()
}

fn parse(name: &str, sql: &str) -> Vec<u8> {
    message(b'P', &format!("{name}\0{sql}\0\0\0"))
}

/// Bound to this statement, executed, and the end of the cycle.
fn executed(name: &str) -> Vec<u8> {
    [
        message(b'B', &format!("\0{name}\0\0\0\0\0\0\0")),
        message(b'E', "\0\0\0\0\0"),
        message(b'S', ""),
    ]
    .concat()
}

/// What is heard up to the end of a cycle.
fn answer(session: &mut Session) -> String {
    let is_ready = |session: &Session| {
        let last = session.heard.last();
        last.is_some_and(|last| last.starts_with('Z'))
    };
    session.until("an answer", is_ready).unwrap();
    let heard = session.heard.iter().map(|one| one.trim_end());
    let heard = heard.collect::<Vec<_>>().join(", ");
    session.heard.clear();
    heard
}

fn asked(session: &mut Session, bytes: &[u8]) -> String {
    session.send(bytes);
    answer(session)
}

/// Until ann stands first in a queue, and bob, who came before, is there again.
fn until_ann_is_first(database: &Database) {
    until("ann is first", || {
        let first = "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) \
                     WHERE usename = 'ann' AND granted AND locktype = 'tuple'";
        let order = "SELECT string_agg(usename, ' ' ORDER BY waitstart) \
                     FROM pg_locks JOIN pg_stat_activity USING (pid) \
                     WHERE NOT granted AND locktype = 'relation'";
        database.ask(first) == "1" || database.ask(order) == "ann bob"
    });
    until_waiting(database, 2);
}

const UPDATE: &str = "UPDATE t SET n = n + 1 WHERE id = 1 RETURNING n";

/// The gate prepares a statement on another server connection in an attempt that the client hears
/// nothing of; with the lock of a table it is that Parse which waits and is cancelled.
#[test]
fn what_the_gate_prepares_in_an_attempt_stays_its_own() {
    let Some((database, gate)) = start("what_the_gate_prepares_in_an_attempt", "") else {
        return;
    };
    let (mut stranger, mut high) = (direct(&database), talk(&gate, &database, "ann"));
    let locks = [
        "SELECT FROM t WHERE id = 1 FOR UPDATE",
        "LOCK TABLE t IN ACCESS EXCLUSIVE MODE",
    ];
    for (at, (lock, name)) in locks
        .iter()
        .flat_map(|lock| ["s", ""].map(|name| (*lock, name)))
        .enumerate()
    {
        let mut low = in_bytes(&gate, "bob");
        let prepared = asked(&mut low, &[parse(name, UPDATE), message(b'S', "")].concat());
        assert_eq!(prepared, "1, Z I");
        // Another client has that server connection from now on.
        let mut others: Vec<Talk> = (0..=at)
            .map(|_| Talk::begin(&mut gate.psql(&database, "bob")))
            .collect();
        others.iter_mut().for_each(|other| drop(other.ask("BEGIN")));
        database.ask("UPDATE t SET n = 0 WHERE id = 1");
        stranger.ask("BEGIN");
        stranger.ask(lock);
        low.send(&executed(name));
        until_waiting(&database, 1);
        // For both, one that those in front are in the way of.
        say(
            &mut high,
            if lock.starts_with("LOCK") {
                "BEGIN; LOCK TABLE t; UPDATE t SET n = n + 1 WHERE id = 1; COMMIT"
            } else {
                UPDATE
            },
        );
        until_ann_is_first(&database);
        stranger.ask("COMMIT");
        assert_eq!(hear(&mut high), "00000");
        assert_eq!(
            answer(&mut low),
            "2, D 2, C UPDATE 1, Z I",
            "{lock} {name:?}"
        );
        assert_eq!(asked(&mut low, &executed(name)), "2, D 3, C UPDATE 1, Z I");
        drop(others);
        assert_eq!(asked(&mut low, &executed(name)), "2, D 4, C UPDATE 1, Z I");
    }
    assert_eq!(
        shown(&gate, &database, "low", REPEATS),
        locks.len() as u64 * 2
    );
}

#[test]
fn a_parse_of_the_clients_own_that_is_cancelled_is_answered_once() {
    let Some((database, gate)) = start("a_parse_of_the_clients_own", "") else {
        return;
    };
    let (mut stranger, mut high) = (direct(&database), talk(&gate, &database, "ann"));
    let mut low = in_bytes(&gate, "bob");
    stranger.ask("BEGIN");
    stranger.ask("LOCK TABLE t IN ACCESS EXCLUSIVE MODE");
    low.send(&[parse("", UPDATE), executed("")].concat());
    until_waiting(&database, 1);
    say(&mut high, "BEGIN; LOCK TABLE t; COMMIT");
    until_ann_is_first(&database);
    stranger.ask("COMMIT");
    assert_eq!(hear(&mut high), "00000");
    assert_eq!(answer(&mut low), "1, 2, D 1, C UPDATE 1, Z I");
    assert_eq!(asked(&mut low, &executed("")), "2, D 2, C UPDATE 1, Z I");
    assert_eq!(shown(&gate, &database, "low", REPEATS), 1);
}

/// Its Sync commits it: what the gate could send in its place would do so as well.
#[test]
fn a_batch_that_waits_for_its_end_is_left_to_its_client() {
    let Some((database, gate)) = start("a_batch_that_waits_for_its_end", "") else {
        return;
    };
    let mut bob = in_bytes(&gate, "bob");
    let (bind, execute) = (message(b'B', &"\0".repeat(8)), message(b'E', "\0\0\0\0\0"));
    bob.send(&[parse("", UPDATE), bind, execute, message(b'H', "")].concat());
    let is_done = |bob: &Session| bob.heard.iter().any(|heard| heard.starts_with('C'));
    bob.until("its row", is_done).unwrap();
    let mut ann = talk(&gate, &database, "ann");
    say(&mut ann, UPDATE);
    until("ann is late", || shown(&gate, &database, "high", LATE) == 1);
    thread::sleep(Duration::from_millis(300));
    assert_eq!(shown(&gate, &database, "high", ROLLED_BACK), 0);
    let heard = asked(&mut bob, &message(b'S', ""));
    assert!(
        !heard.split(", ").any(|one| one.starts_with('E')),
        "{heard}"
    );
    assert_eq!(hear(&mut ann), "00000");
    assert_eq!(database.ask("SELECT n FROM t WHERE id = 1"), "2");
}

#[test]
fn a_client_that_has_heard_a_notice_hears_it_once() {
    let Some((database, gate)) = start("a_client_that_has_heard_a_notice", "") else {
        return;
    };
    database.ask(
        "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ DECLARE now int; BEGIN \
         RAISE NOTICE 'it begins'; \
         UPDATE t SET n = n + 1 WHERE id = 1 RETURNING n INTO now; RETURN now; END $$",
    );
    let (mut stranger, mut high) = (direct(&database), talk(&gate, &database, "ann"));
    let mut low = in_bytes(&gate, "bob");
    stranger.ask("BEGIN");
    stranger.ask("SELECT FROM t WHERE id = 1 FOR UPDATE");
    low.send(&message(b'Q', "SELECT f()\0"));
    until_waiting(&database, 1);
    say(&mut high, UPDATE);
    until("ann is late", || shown(&gate, &database, "high", LATE) == 1);
    thread::sleep(Duration::from_millis(100));
    stranger.ask("COMMIT");
    assert_eq!(hear(&mut high), "00000");
    let heard = answer(&mut low);
    assert_eq!(heard, "T f, N NOTICE 00000 it begins, D 1, C SELECT 1, Z I");
    assert_eq!(shown(&gate, &database, "high", AGAIN), 0);
}

/// They come at the end of the attempt, and the server does not say them again.
#[test]
fn notifications_and_settings_of_an_attempt_are_heard() {
    let Some((database, gate)) = start("notifications_and_settings_of_an_attempt", "") else {
        return;
    };
    let (mut stranger, mut high) = (direct(&database), talk(&gate, &database, "ann"));
    let mut low = in_bytes(&gate, "bob");
    assert_eq!(
        asked(&mut low, &message(b'Q', "LISTEN c\0")),
        "C LISTEN, Z I"
    );
    low.reported.clear();
    // A server process looks at that when the next command comes.
    database.ask("ALTER SYSTEM SET TimeZone = 'Asia/Tokyo'");
    database.ask("SELECT pg_reload_conf()");
    until("new sessions have it", || {
        database.ask("SHOW TimeZone") == "Asia/Tokyo"
    });
    stranger.ask("BEGIN");
    stranger.ask("SELECT FROM t WHERE id = 1 FOR UPDATE");
    let sql = "WITH own AS (UPDATE t SET n = n + 1 WHERE id = 1 RETURNING n) \
               SELECT pg_notify('c', 'own') IS NULL FROM own\0";
    low.send(&message(b'Q', sql));
    until_waiting(&database, 1);
    database.ask("NOTIFY c, 'other'");
    say(&mut high, UPDATE);
    until_ann_is_first(&database);
    stranger.ask("COMMIT");
    assert_eq!(hear(&mut high), "00000");
    let heard = answer(&mut low);
    assert_eq!(
        heard,
        "A c other, T ?column?, D f, C SELECT 1, A c own, Z I"
    );
    assert_eq!(low.reported, ["TimeZone=Asia/Tokyo"]);
    assert_eq!(shown(&gate, &database, "low", REPEATS), 1);
}

/// A request that was on its way when the statement was sent again means that statement.
#[test]
fn a_client_cancels_what_is_sent_again_as_it_cancels_anything() {
    for mode in ["transaction", "session"] {
        let test = "a_client_cancels_what_is_sent_again";
        let session = format!("mode = \"{mode}\"\n");
        let Some((database, gate)) = start_with(test, "", &session) else {
            return;
        };
        let (mut stranger, mut high) = (direct(&database), talk(&gate, &database, "ann"));
        let mut low = in_bytes(&gate, "bob");
        stranger.ask("BEGIN");
        stranger.ask("SELECT FROM t WHERE id = 1 FOR UPDATE");
        low.send(&message(b'Q', &format!("{UPDATE}\0")));
        until_waiting(&database, 1);
        let request = UnixStream::connect(gate.folder().join(".s.PGSQL.6432")).unwrap();
        say(&mut high, UPDATE);
        until_ann_is_first(&database);
        low.cancel_by(request);
        let told = "E ERROR 57014 canceling statement due to user request, Z I";
        assert_eq!(answer(&mut low), told, "{mode}");
        let select = message(b'Q', "SELECT 1\0");
        assert_eq!(asked(&mut low, &select), "T ?column?, D 1, C SELECT 1, Z I");
        stranger.ask("COMMIT");
        assert_eq!(hear(&mut high), "00000");
        assert_eq!(ask(&mut high, UPDATE), "00000");
        assert_eq!(database.ask("SELECT n FROM t WHERE id = 1"), "2");
    }
}

/// What the gate has cancelled is over before the next statement of the same session begins.
#[test]
fn a_session_loses_no_other_statement() {
    let test = "a_session_loses_no_other_statement";
    let Some((database, gate)) = start_with(test, "preempt = \"always\"", "mode = \"session\"\n")
    else {
        return;
    };
    gate.rewrite(|text| text.replace("100ms", "1ms"));
    gate.admin(&database, "RELOAD");
    let script = gate.folder().join("hot.sql");
    let own = "UPDATE t SET n = n + 1 WHERE id = 1 RETURNING pg_sleep(0.003);\n";
    std::fs::write(&script, format!("{own}SELECT pg_sleep(0.001);\n")).unwrap();
    let bench = |user: &str, clients: &str| {
        let mut bench = gate.program(&database, "pgbench");
        bench.args(["-n", "-c", clients, "-t", "30", "-U", user, "-f"]);
        bench.arg(&script).arg("postgres");
        bench
    };
    let (mut low, mut high) = (bench("bob", "6"), bench("ann", "2"));
    // All stand in one queue for a while.
    let mut stranger = direct(&database);
    stranger.ask("BEGIN");
    stranger.ask("SELECT FROM t WHERE id = 1 FOR UPDATE");
    let of_low = thread::spawn(move || printed(&mut low));
    until_waiting(&database, 6);
    let of_high = thread::spawn(move || printed(&mut high));
    until("some are sent again", || {
        shown(&gate, &database, "high", AGAIN) > 0
    });
    stranger.ask("COMMIT");
    for told in [of_high.join().unwrap(), of_low.join().unwrap()] {
        assert!(told.contains("failed transactions: 0"), "{told}");
    }
    assert_eq!(database.ask("SELECT n FROM t WHERE id = 1"), "240");
}
