//! Who makes room for a transaction that waits for a lock longer than its class allows: psql and
//! pgbench, a real PostgreSQL, the gate between them.

mod disturbed;
mod protocol;

use std::thread;
use std::time::Duration;

use sooner_testbed::postgres::DATABASE_PORT;

use crate::support::{Database, Gate, Talk, printed, until};

/// `ann` matters and waits for a tenth of a second; `bob` matters less.
fn start(test: &str, preempt: &str) -> Option<(Database, Gate)> {
    start_with(test, preempt, "")
}

/// The same, with these settings of the whole gate besides.
fn start_with(test: &str, preempt: &str, more: &str) -> Option<(Database, Gate)> {
    let database = Database::start(test)?;
    for role in ["ann", "bob"] {
        database.ask(&format!("CREATE ROLE {role} LOGIN"));
    }
    database.ask("CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL)");
    database.ask("INSERT INTO t SELECT id, 0 FROM generate_series(1, 9) AS id");
    database.ask("CREATE TABLE came (at serial, who text DEFAULT current_user)");
    database.ask("GRANT ALL ON t, came, came_at_seq TO public");
    let gate = gate(&database, preempt, more);
    Some((database, gate))
}

fn gate(database: &Database, preempt: &str, more: &str) -> Gate {
    let config = format!(
        "{more}admins = [\"postgres\"]\n\
         [[class]]\nname = \"high\"\nuser = [\"ann\"]\npriority = 1\nwait_target = \"100ms\"\n{preempt}\n\
         [[class]]\nname = \"low\"\nuser = [\"bob\"]\npriority = 2\n\
         [limits]\ntransactions = 16\n"
    );
    Gate::before(database, &config)
}

fn talk(gate: &Gate, database: &Database, user: &str) -> Talk {
    let mut talk = Talk::begin(&mut gate.psql(database, user));
    talk.ask("\\set ON_ERROR_STOP off\nSET lock_timeout = '20s'");
    talk
}

/// Past the gate.
fn direct(database: &Database) -> Talk {
    Talk::begin(&mut database.psql(database.folder(), DATABASE_PORT, "postgres"))
}

/// Sends a command, of which the SQLSTATE is heard afterwards.
fn say(talk: &mut Talk, sql: &str) {
    talk.say(&format!("{sql};\n\\echo :SQLSTATE"));
}

/// That SQLSTATE; `00000` where all is well.
fn hear(talk: &mut Talk) -> String {
    let heard = talk.hear();
    let last = heard.lines().last().unwrap_or_default();
    last.trim_end_matches(';').to_owned()
}

fn ask(talk: &mut Talk, sql: &str) -> String {
    say(talk, sql);
    hear(talk)
}

/// What SHOW LOCK_WAITS has of a class, by columns.
fn shown(gate: &Gate, database: &Database, class: &str, column: usize) -> u64 {
    let table = gate.admin(database, "SHOW LOCK_WAITS");
    let line = table
        .lines()
        .find(|line| line.split('|').next() == Some(class));
    let field = line.and_then(|line| line.split('|').nth(column));
    field
        .and_then(|field| field.parse().ok())
        .unwrap_or_else(|| panic!("{table}"))
}

const LATE: usize = 3;
const AGAIN: usize = 4;
const ROLLED_BACK: usize = 6;
const MADE_ROOM: usize = 7;
const REPEATS: usize = 9;

fn until_waiting(database: &Database, count: usize) {
    until("they wait for locks", || {
        let waiting = database.ask("SELECT count(*) FROM pg_locks WHERE NOT granted");
        waiting == count.to_string()
    });
}

#[test]
fn what_an_idle_client_has_open_is_rolled_back_and_it_is_told() {
    let Some((database, gate)) = start("what_an_idle_client_has_open", "") else {
        return;
    };
    let (mut low, mut high) = (talk(&gate, &database, "bob"), talk(&gate, &database, "ann"));
    low.ask("BEGIN");
    assert_eq!(ask(&mut low, "UPDATE t SET n = 100 WHERE id = 1"), "00000");
    assert_eq!(
        ask(&mut high, "UPDATE t SET n = n + 1 WHERE id = 1"),
        "00000"
    );
    assert_eq!(ask(&mut low, "SELECT 1"), "40001", "it is told once");
    assert_eq!(
        ask(&mut low, "SELECT 1"),
        "25P02",
        "then it is as after any failure"
    );
    assert_eq!(ask(&mut low, "ROLLBACK"), "00000");
    assert_eq!(ask(&mut low, "SELECT 1"), "00000");
    assert_eq!(database.ask("SELECT n FROM t WHERE id = 1"), "1");
    assert_eq!(shown(&gate, &database, "high", LATE), 1);
    assert_eq!(shown(&gate, &database, "high", ROLLED_BACK), 1);
    assert_eq!(shown(&gate, &database, "low", MADE_ROOM), 1);

    // A commit fails, and the transaction is over with that.
    low.ask("BEGIN");
    low.ask("UPDATE t SET n = 100 WHERE id = 1");
    high.ask("UPDATE t SET n = n + 1 WHERE id = 1");
    assert_eq!(ask(&mut low, "COMMIT"), "40001");
    assert_eq!(ask(&mut low, "UPDATE t SET n = 7 WHERE id = 2"), "00000");
    assert_eq!(
        database.ask("SELECT n FROM t WHERE id < 3 ORDER BY id"),
        "2\n7"
    );

    // Who gives up by itself need not be told.
    low.ask("BEGIN");
    low.ask("UPDATE t SET n = 100 WHERE id = 1");
    high.ask("UPDATE t SET n = n + 1 WHERE id = 1");
    assert_eq!(ask(&mut low, "ROLLBACK"), "00000");
    assert_eq!(database.ask("SELECT n FROM t WHERE id = 1"), "3");

    // What was set in it is as it was before.
    let zone = low.ask("SHOW TimeZone");
    low.ask("BEGIN");
    low.ask("SET LOCAL TimeZone = 'Asia/Tokyo'");
    low.ask("UPDATE t SET n = 100 WHERE id = 1");
    high.ask("UPDATE t SET n = n WHERE id = 1");
    assert_eq!(ask(&mut low, "COMMIT"), "40001");
    assert_eq!(low.ask("SHOW TimeZone"), zone);

    // One that leaves a savepoint is rolled back whole.
    low.ask("BEGIN");
    low.ask("UPDATE t SET n = 100 WHERE id = 1");
    low.ask("SAVEPOINT a");
    high.ask("UPDATE t SET n = n + 1 WHERE id = 1");
    assert_eq!(ask(&mut low, "ROLLBACK TO a"), "40001");
    assert_eq!(ask(&mut low, "ROLLBACK TO a"), "3B001");
    assert_eq!(ask(&mut low, "END"), "00000");
    assert_eq!(database.ask("SELECT n FROM t WHERE id = 1"), "4");
}

/// PREPARE names a statement, and COMMIT PREPARED another transaction, which no block may.
#[test]
fn what_only_begins_as_a_commit_leaves_a_transaction_failed() {
    let Some((database, gate)) = start("what_only_begins_as_a_commit", "") else {
        return;
    };
    let (mut low, mut high) = (talk(&gate, &database, "bob"), talk(&gate, &database, "ann"));
    for command in ["PREPARE q AS SELECT 1", "COMMIT PREPARED 'x'"] {
        low.ask("BEGIN");
        low.ask("UPDATE t SET n = 100 WHERE id = 1");
        assert_eq!(ask(&mut high, "UPDATE t SET n = 1 WHERE id = 1"), "00000");
        assert_eq!(ask(&mut low, command), "40001", "{command}");
        assert_eq!(ask(&mut low, "SELECT 1"), "25P02", "{command}");
        assert_eq!(ask(&mut low, "ROLLBACK"), "00000");
        assert_eq!(ask(&mut low, "SELECT 1"), "00000");
    }
    low.ask("BEGIN");
    low.ask("UPDATE t SET n = 100 WHERE id = 1");
    high.ask("UPDATE t SET n = 1 WHERE id = 1");
    assert_eq!(ask(&mut low, "PREPARE TRANSACTION 'x'"), "40001");
    assert_eq!(ask(&mut low, "SELECT 1"), "00000", "as with COMMIT");
}

#[test]
fn one_that_waits_itself_makes_room_and_one_that_runs_is_spared() {
    let Some((database, gate)) = start("one_that_waits_itself", "preempt = \"waiting\"") else {
        return;
    };
    let mut stranger = direct(&database);
    let (mut low, mut high) = (talk(&gate, &database, "bob"), talk(&gate, &database, "ann"));
    stranger.ask("BEGIN");
    stranger.ask("UPDATE t SET n = n WHERE id = 2");
    low.ask("BEGIN");
    low.ask("UPDATE t SET n = 100 WHERE id = 1");
    say(&mut low, "UPDATE t SET n = 100 WHERE id = 2");
    until_waiting(&database, 1);
    assert_eq!(
        ask(&mut high, "UPDATE t SET n = n + 1 WHERE id = 1"),
        "00000"
    );
    assert_eq!(hear(&mut low), "40001");
    assert_eq!(ask(&mut low, "ROLLBACK"), "00000");
    stranger.ask("ROLLBACK");

    low.ask("BEGIN");
    low.ask("UPDATE t SET n = 100 WHERE id = 1");
    say(&mut low, "SELECT pg_sleep(1)");
    say(&mut high, "UPDATE t SET n = n + 1 WHERE id = 1");
    assert_eq!(hear(&mut low), "00000");
    assert_eq!(ask(&mut low, "COMMIT"), "00000");
    assert_eq!(hear(&mut high), "00000");
    assert_eq!(database.ask("SELECT n FROM t WHERE id = 1"), "101");
}

#[test]
fn always_takes_the_locks_of_one_that_runs_and_of_its_savepoints() {
    let Some((database, gate)) = start("always_takes_the_locks", "preempt = \"always\"") else {
        return;
    };
    let (mut low, mut high) = (talk(&gate, &database, "bob"), talk(&gate, &database, "ann"));
    for savepoint in ["SELECT 1", "SAVEPOINT a"] {
        low.ask("BEGIN");
        low.ask("UPDATE t SET n = 100 WHERE id = 1");
        low.ask(savepoint);
        say(&mut low, "SELECT pg_sleep(20)");
        assert_eq!(
            ask(&mut high, "UPDATE t SET n = n + 1 WHERE id = 1"),
            "00000"
        );
        assert_eq!(hear(&mut low), "40001", "{savepoint}");
        assert_eq!(ask(&mut low, "ROLLBACK"), "00000");
    }
    assert_eq!(database.ask("SELECT n FROM t WHERE id = 1"), "2");

    // What it does in its transaction afterwards is not meant.
    low.ask("BEGIN");
    low.ask("SAVEPOINT a");
    low.ask("UPDATE t SET n = 100 WHERE id = 1");
    say(&mut low, "SELECT pg_sleep(20)");
    assert_eq!(ask(&mut high, "UPDATE t SET n = 3 WHERE id = 1"), "00000");
    assert_eq!(hear(&mut low), "40001");
    assert_eq!(ask(&mut low, "ROLLBACK TO a"), "00000");
    assert_eq!(ask(&mut low, "SELECT pg_sleep(0.1)"), "00000");
    assert_eq!(ask(&mut low, "COMMIT"), "00000");
}

#[test]
fn a_statement_alone_is_sent_again_behind_what_matters_more() {
    let Some((database, gate)) = start("a_statement_alone_is_sent_again", "") else {
        return;
    };
    let mut stranger = direct(&database);
    let (mut low, mut high) = (talk(&gate, &database, "bob"), talk(&gate, &database, "ann"));
    stranger.ask("BEGIN");
    stranger.ask("SELECT FROM t WHERE id = 1 FOR UPDATE");
    let come = "WITH own AS (UPDATE t SET n = n + 1 WHERE id = 1 RETURNING n) \
                INSERT INTO came SELECT n, current_user FROM own";
    say(&mut low, come);
    until_waiting(&database, 1);
    say(&mut high, come);
    until("it is sent again", || {
        shown(&gate, &database, "high", AGAIN) > 0
    });
    // It stands behind the other one by now.
    until_waiting(&database, 2);
    thread::sleep(Duration::from_millis(50));
    stranger.ask("COMMIT");
    assert_eq!(
        (hear(&mut high), hear(&mut low)),
        ("00000".into(), "00000".into())
    );
    assert_eq!(database.ask("SELECT who FROM came ORDER BY at"), "ann\nbob");
    assert!(shown(&gate, &database, "low", REPEATS) > 0);

    // It is sent again some times; then it is what it is.
    stranger.ask("BEGIN");
    stranger.ask("SELECT FROM t WHERE id = 1 FOR UPDATE");
    let mut timed = talk(&gate, &database, "bob");
    timed.ask("SET statement_timeout = '700ms'");
    say(&mut timed, come);
    until_waiting(&database, 1);
    say(&mut high, come);
    assert_eq!(hear(&mut timed), "57014");
    stranger.ask("COMMIT");
    assert_eq!(hear(&mut high), "00000");
}

#[test]
fn track_only_counts() {
    if let Some((database, gate)) = start("track_only_counts", "preempt = \"track\"") {
        only_counts(&database, &gate);
    }
}

#[test]
fn a_rehearsal_only_counts() {
    let always = "preempt = \"always\"";
    let started = start_with("a_rehearsal_only_counts", always, "observe = true\n");
    if let Some((database, gate)) = started {
        only_counts(&database, &gate);
    }
}

fn only_counts(database: &Database, gate: &Gate) {
    let (mut low, mut high) = (talk(gate, database, "bob"), talk(gate, database, "ann"));
    low.ask("BEGIN");
    low.ask("UPDATE t SET n = 100 WHERE id = 1");
    say(&mut high, "UPDATE t SET n = n + 1 WHERE id = 1");
    until("it is counted", || {
        shown(gate, database, "high", ROLLED_BACK) == 1
    });
    thread::sleep(Duration::from_millis(200));
    assert_eq!(ask(&mut low, "COMMIT"), "00000");
    assert_eq!(hear(&mut high), "00000");
    assert_eq!(database.ask("SELECT n FROM t WHERE id = 1"), "101");
    assert_eq!(shown(gate, database, "high", LATE), 1);
    assert_eq!(
        shown(gate, database, "high", ROLLED_BACK),
        1,
        "counted once"
    );
    assert_eq!(shown(gate, database, "low", MADE_ROOM), 0);
}

#[test]
fn who_made_room_five_times_is_spared_the_sixth() {
    let Some((database, gate)) = start("who_made_room_five_times", "") else {
        return;
    };
    let (mut low, mut high) = (talk(&gate, &database, "bob"), talk(&gate, &database, "ann"));
    for time in 1..=6 {
        low.ask("BEGIN");
        low.ask("UPDATE t SET n = 100 WHERE id = 1");
        say(&mut high, "UPDATE t SET n = n + 1 WHERE id = 1");
        thread::sleep(Duration::from_millis(if time > 5 { 500 } else { 0 }));
        if time <= 5 {
            assert_eq!(hear(&mut high), "00000");
        }
        let expected = if time <= 5 { "40001" } else { "00000" };
        // What only gives up is no transaction that is through.
        if time % 2 == 0 {
            assert_eq!(ask(&mut low, "COMMIT"), expected, "{time}");
        } else {
            assert_eq!(ask(&mut low, "SELECT 1"), expected, "{time}");
            assert_eq!(ask(&mut low, "ROLLBACK"), "00000", "{time}");
        }
    }
    assert_eq!(hear(&mut high), "00000");
    assert_eq!(database.ask("SELECT n FROM t WHERE id = 1"), "101");
}

/// Programs that others wrote: what is sent again is done once, whatever protocol it comes in.
#[test]
fn pgbench_sees_no_error_and_every_update_counts_once() {
    let Some((database, gate)) = start("pgbench_sees_no_error", "preempt = \"always\"") else {
        return;
    };
    gate.rewrite(|text| text.replace("100ms", "2ms"));
    gate.admin(&database, "RELOAD");
    // One may cancel what the other runs: no cancel request is needed.
    database.ask("GRANT bob TO ann");
    let mut stranger = direct(&database);
    let script = gate.folder().join("hot.sql");
    std::fs::write(
        &script,
        "UPDATE t SET n = n + 1 WHERE id = 1 RETURNING pg_sleep(0.002);\n",
    )
    .unwrap();
    for protocol in ["simple", "extended", "prepared"] {
        database.ask("UPDATE t SET n = 0");
        let bench = |user: &str, clients: &str, count: &str| {
            let mut bench = gate.program(&database, "pgbench");
            bench.args([
                "-n", "-M", protocol, "-c", clients, "-t", count, "-U", user, "-f",
            ]);
            bench.arg(&script).arg("postgres");
            bench
        };
        let (mut low, mut high) = (bench("bob", "8", "25"), bench("ann", "2", "25"));
        // All stand in one queue for a while.
        stranger.ask("BEGIN");
        stranger.ask("SELECT FROM t WHERE id = 1 FOR UPDATE");
        let of_low = thread::spawn(move || printed(&mut low));
        until_waiting(&database, 8);
        let of_high = thread::spawn(move || printed(&mut high));
        until_waiting(&database, 10);
        thread::sleep(Duration::from_millis(100));
        stranger.ask("COMMIT");
        let of_high = of_high.join().unwrap();
        for told in [of_high, of_low.join().unwrap()] {
            assert!(
                told.contains("failed transactions: 0"),
                "{protocol}: {told}"
            );
        }
        assert_eq!(
            database.ask("SELECT n FROM t WHERE id = 1"),
            "250",
            "{protocol}"
        );
    }
    assert!(shown(&gate, &database, "low", REPEATS) > 0);
}

#[test]
fn lock_queues_are_in_the_order_of_classes() {
    let test = "lock_queues_are_in_the_order_of_classes";
    let Some((database, gate)) = start(test, "") else {
        return;
    };
    if !database.restart_with_library(test, "sooner_locks") {
        return;
    }
    let map = database.folder().join("data/sooner_locks.map");
    gate.rewrite(|text| {
        let text = text.replace("wait_target = \"100ms\"\n", "");
        let with_map = format!("name = \"*\"\nlock_map = \"{}\"", map.display());
        text.replace("name = \"*\"", &with_map)
    });
    gate.admin(&database, "RELOAD");
    let users = ["bob", "bob", "bob", "ann"];
    let mut clients = users.map(|user| talk(&gate, &database, user));
    let mut stranger = direct(&database);
    for _ in 0..2 {
        database.ask("TRUNCATE came");
        stranger.ask("BEGIN");
        stranger.ask("SELECT FROM t WHERE id = 1 FOR UPDATE");
        for (at, client) in clients.iter_mut().enumerate() {
            say(
                client,
                "WITH own AS (SELECT FROM t WHERE id = 1 FOR UPDATE) INSERT INTO came SELECT FROM own",
            );
            until_waiting(&database, at + 1);
        }
        until("it has moved forward", || {
            database.ask("SELECT moved > 0 FROM sooner_lock_stats()") == "t"
        });
        stranger.ask("COMMIT");
        for client in &mut clients {
            assert_eq!(hear(client), "00000");
        }
        // The first of them owns the queue.
        assert_eq!(
            database.ask("SELECT string_agg(who, ' ' ORDER BY at) FROM came"),
            "bob ann bob bob"
        );
        database.ask("SELECT sooner_lock_stats_reset()");
    }
}
