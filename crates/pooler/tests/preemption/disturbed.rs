//! What is disturbed while one makes room: a gate that ends, a reload, a server that starts anew,
//! refuses to tell who waits, or only follows another.

use std::thread;
use std::time::Duration;

use super::{AGAIN, LATE, ROLLED_BACK, ask, direct, hear, say, shown, start, talk, until_waiting};
use crate::support::{Talk, until};

const UPDATE: &str = "UPDATE t SET n = n + 1 WHERE id = 1";

/// As where it is killed: its connections end without a goodbye.
#[test]
fn a_gate_that_ends_while_statements_are_sent_again_leaves_nothing_behind() {
    let test = "a_gate_that_ends_while_statements_are_sent_again";
    let Some((database, _)) = start(test, "") else {
        return;
    };
    let mut stranger = direct(&database);
    // All still stand in one queue, or they go on.
    for goes_on in [false, true] {
        database.ask("UPDATE t SET n = 0");
        let gate = super::gate(&database, "preempt = \"always\"", "");
        gate.rewrite(|text| text.replace("100ms", "2ms"));
        gate.admin(&database, "RELOAD");
        let script = gate.folder().join("hot.sql");
        std::fs::write(&script, format!("{UPDATE} RETURNING pg_sleep(0.002);\n")).unwrap();
        let bench = |user: &str, count: usize| {
            let mut bench = gate.program(&database, "pgbench");
            let count = count.to_string();
            bench.args(["-n", "-c", &count, "-T", "50", "-U", user, "-f"]);
            bench.arg(&script).arg("postgres");
            thread::spawn(move || bench.output().unwrap())
        };
        stranger.ask("BEGIN");
        stranger.ask("SELECT FROM t WHERE id = 1 FOR UPDATE");
        let of_low = bench("bob", 6);
        until_waiting(&database, 6);
        let all = [of_low, bench("ann", 2)];
        until("some are sent again", || {
            shown(&gate, &database, "high", AGAIN) > 0
        });
        if goes_on {
            stranger.ask("COMMIT");
            thread::sleep(Duration::from_millis(100));
        }
        drop(gate);
        stranger.ask("ROLLBACK");
        let mut done = 0;
        for told in all {
            let output = told.join().unwrap();
            let told = String::from_utf8(output.stdout).unwrap();
            let line = told
                .lines()
                .find(|line| line.contains("actually processed"));
            let count = line.and_then(|line| line.rsplit(' ').next());
            let count = count.and_then(|count| count.split('/').next());
            done += count
                .unwrap_or_else(|| panic!("{told}"))
                .parse::<u64>()
                .unwrap();
        }
        until("the server has none of its sessions", || {
            let sessions = "SELECT count(*) FROM pg_stat_activity WHERE usename IN ('ann', 'bob')";
            database.ask(sessions) == "0"
        });
        // The last ones may have been done without an answer.
        let counted: u64 = database
            .ask("SELECT n FROM t WHERE id = 1")
            .parse()
            .unwrap();
        assert!((done..=done + 8).contains(&counted), "{done} {counted}");
    }
}

#[test]
fn a_reload_without_targets_leaves_alone_who_comes_later() {
    let Some((database, gate)) = start("a_reload_without_targets", "") else {
        return;
    };
    let mut stranger = direct(&database);
    let users = ["bob", "ann", "bob"];
    let [mut low, mut high, mut idle] = users.map(|user| talk(&gate, &database, user));
    stranger.ask("BEGIN");
    stranger.ask("SELECT FROM t WHERE id = 1 FOR UPDATE");
    say(&mut low, UPDATE);
    until_waiting(&database, 1);
    say(&mut high, UPDATE);
    until("bob's is sent again", || {
        shown(&gate, &database, "high", AGAIN) == 1
    });
    idle.ask("BEGIN");
    idle.ask("UPDATE t SET n = 100 WHERE id = 2");
    gate.rewrite(|text| text.replace("wait_target = \"100ms\"\n", ""));
    gate.admin(&database, "RELOAD");
    stranger.ask("COMMIT");
    assert_eq!([hear(&mut high), hear(&mut low)], ["00000", "00000"]);
    assert_eq!(database.ask("SELECT n FROM t WHERE id = 1"), "2");
    say(&mut high, "UPDATE t SET n = n + 1 WHERE id = 2");
    until_waiting(&database, 1);
    thread::sleep(Duration::from_millis(300));
    assert_eq!(ask(&mut idle, "COMMIT"), "00000");
    assert_eq!(hear(&mut high), "00000");
    assert_eq!(shown(&gate, &database, "high", ROLLED_BACK), 0);
    // With them again it is as before.
    gate.rewrite(|text| text.replace("priority = 1\n", "priority = 1\nwait_target = \"100ms\"\n"));
    gate.admin(&database, "RELOAD");
    idle.ask("BEGIN");
    idle.ask("UPDATE t SET n = 100 WHERE id = 2");
    assert_eq!(ask(&mut high, "UPDATE t SET n = 1 WHERE id = 2"), "00000");
    assert_eq!(ask(&mut idle, "COMMIT"), "40001");
}

#[test]
fn a_server_that_starts_anew_is_asked_anew() {
    let Some((database, gate)) = start("a_server_that_starts_anew", "") else {
        return;
    };
    for time in 1..=2 {
        let (mut low, mut high) = (talk(&gate, &database, "bob"), talk(&gate, &database, "ann"));
        low.ask("BEGIN");
        low.ask("UPDATE t SET n = 100 WHERE id = 1");
        assert_eq!(ask(&mut high, UPDATE), "00000");
        assert_eq!(ask(&mut low, "COMMIT"), "40001");
        assert_eq!(shown(&gate, &database, "high", ROLLED_BACK), time);
        // With the session that asks for locks, which is kept for a while.
        database.stop("fast");
        database.restart();
    }
}

#[test]
fn a_server_that_says_nothing_or_cancels_nothing_by_command_is_lived_with() {
    let Some((database, gate)) = start("a_server_that_says_nothing", "preempt = \"always\"") else {
        return;
    };
    database.ask("REVOKE EXECUTE ON FUNCTION pg_cancel_backend FROM public");
    let (mut low, mut high) = (talk(&gate, &database, "bob"), talk(&gate, &database, "ann"));
    low.ask("BEGIN");
    low.ask("UPDATE t SET n = 100 WHERE id = 1");
    say(&mut low, "SELECT pg_sleep(20)");
    assert_eq!(ask(&mut high, UPDATE), "00000");
    assert_eq!(hear(&mut low), "40001", "by a cancel request");
    assert_eq!(ask(&mut low, "ROLLBACK"), "00000");

    database.ask("REVOKE SELECT ON pg_locks FROM public");
    low.ask("BEGIN");
    low.ask("UPDATE t SET n = 100 WHERE id = 1");
    say(&mut high, UPDATE);
    until_waiting(&database, 1);
    thread::sleep(Duration::from_millis(300));
    assert_eq!(ask(&mut low, "COMMIT"), "00000");
    assert_eq!(hear(&mut high), "00000");
    assert_eq!(database.ask("SELECT n FROM t WHERE id = 1"), "101");
    assert_eq!(shown(&gate, &database, "high", LATE), 1, "the first one");
}

/// Nothing is changed there; locks of an application's own are taken as elsewhere.
#[test]
fn a_standby_has_locks_as_well() {
    let Some((database, gate)) = start("a_standby_has_locks", "preempt = \"always\"") else {
        return;
    };
    database.stop("fast");
    let signal = database.folder().join("data/standby.signal");
    std::fs::write(&signal, "").unwrap();
    database.give(&signal);
    database.restart();
    assert_eq!(database.ask("SELECT pg_is_in_recovery()"), "t");
    let (mut low, mut high) = (talk(&gate, &database, "bob"), talk(&gate, &database, "ann"));
    let lock = "SELECT pg_advisory_xact_lock(1)";
    for then in ["SELECT 1", "SELECT pg_sleep(20)"] {
        low.ask("BEGIN");
        assert_eq!(ask(&mut low, lock), "00000");
        say(&mut low, then);
        if then.ends_with('1') {
            assert_eq!(hear(&mut low), "00000");
        }
        assert_eq!(ask(&mut high, lock), "00000");
        let told = if then.ends_with('1') {
            ask(&mut low, "COMMIT")
        } else {
            hear(&mut low)
        };
        assert_eq!(told, "40001", "{then}");
        ask(&mut low, "ROLLBACK");
    }
    let mut stranger: Talk = direct(&database);
    stranger.ask("BEGIN");
    stranger.ask(lock);
    say(&mut low, lock);
    until_waiting(&database, 1);
    say(&mut high, lock);
    until("it is sent again", || {
        shown(&gate, &database, "high", AGAIN) > 0
    });
    stranger.ask("COMMIT");
    assert_eq!([hear(&mut high), hear(&mut low)], ["00000", "00000"]);
}

/// The gate asks who waits in a session of one of those that wait.
#[test]
fn a_bound_on_statements_of_the_role_does_not_end_the_look() {
    let test = "a_bound_on_statements_of_the_role_does_not_end_the_look";
    let Some((database, gate)) = start(test, "preempt = \"track\"") else {
        return;
    };
    // So many locks take longer to tell than the role's statements may take.
    let mut many = direct(&database);
    many.ask("BEGIN");
    many.ask("SELECT count(pg_advisory_xact_lock(n)) FROM generate_series(1, 2000) AS n");
    let (mut low, mut high) = (talk(&gate, &database, "bob"), talk(&gate, &database, "ann"));
    for own in [&mut low, &mut high] {
        own.ask("SET statement_timeout = 0");
    }
    database.ask("ALTER ROLE ann SET statement_timeout = '1ms'");
    low.ask("BEGIN");
    low.ask(UPDATE);
    say(&mut high, UPDATE);
    until("it is seen to wait", || {
        shown(&gate, &database, "high", LATE) > 0
    });
    low.ask("COMMIT");
    assert_eq!(hear(&mut high), "00000");
}
