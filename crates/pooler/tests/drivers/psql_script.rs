//! What psql sees of a PostgreSQL, a line a step.
//!
//! Two of them, `a` and `b`, take turns, so that behind a gate neither stays with one server
//! connection. What ties a client to its server connection is said by `c`, which is another one
//! each time.

use std::process::{Command, Stdio};

use super::place::ScriptTarget;
use crate::support::{Talk, said};

/// What is said by whom, without `c`.
const TAKING_TURNS: &[(char, &str)] = &[
    (
        'a',
        "CREATE TABLE t (i int PRIMARY KEY, s text); INSERT INTO t SELECT i, 's' || i FROM generate_series(0, 99) i",
    ),
    ('b', r"SELECT 1\; SELECT 'two', NULL\; VALUES (3), (4)"),
    ('a', r"\d t"),
    ('b', "BEGIN; UPDATE t SET s = 'committed' WHERE i = 1"),
    ('a', "SELECT s FROM t WHERE i = 1"),
    ('b', "COMMIT"),
    ('a', "SELECT s FROM t WHERE i = 1"),
    (
        'a',
        "BEGIN; UPDATE t SET s = 'never' WHERE i = 1; SAVEPOINT within; SELECT 1/0",
    ),
    ('b', "SELECT s FROM t WHERE i = 1"),
    ('a', "SELECT 1"),
    (
        'a',
        "ROLLBACK TO within; SELECT s FROM t WHERE i = 1; ROLLBACK",
    ),
    ('a', "BEGIN; SELECT nowhere"),
    ('a', "COMMIT"),
    (
        'a',
        "COPY t FROM STDIN;\n1000\tx\n1001\t\\N\n\\.\nSELECT 'copied'",
    ),
    (
        'b',
        "COPY t FROM STDIN;\n1002\tx\nno number\tx\n1003\tx\n\\.\nSELECT 'not copied'",
    ),
    (
        'b',
        "COPY (SELECT * FROM t WHERE i >= 1000 ORDER BY i) TO STDOUT",
    ),
    (
        'a',
        r"\copy (SELECT i, repeat('x', 100) FROM generate_series(2000, 20000) i) TO 'rows.txt'",
    ),
    ('b', r"\copy t FROM 'rows.txt'"),
    ('b', r"\copy t FROM 'rows.txt'"),
    (
        'a',
        "COPY (SELECT 1/(3-i) FROM generate_series(1, 9) i) TO STDOUT",
    ),
    ('a', "SELECT count(*), sum(i) FROM t"),
    (
        'b',
        "\\set FETCH_COUNT 7\nSELECT sum(i), count(*) FROM t;\nSELECT i FROM t WHERE i < 20 ORDER BY i",
    ),
    (
        'b',
        "SELECT 1/(i-10) FROM t WHERE i < 20 ORDER BY i;\n\\unset FETCH_COUNT\nSELECT 'whole'",
    ),
    ('a', "\\set AUTOCOMMIT off\nINSERT INTO t VALUES (-1)"),
    ('b', "SELECT count(*) FROM t WHERE i < 0"),
    ('a', "ROLLBACK;\n\\set AUTOCOMMIT on\nSELECT 'on'"),
    (
        'a',
        "\\set ON_ERROR_ROLLBACK on\nBEGIN;\nSELECT 1/0;\nSELECT 'goes on';\nCOMMIT;\n\\unset ON_ERROR_ROLLBACK\nSELECT 'off'",
    ),
    (
        'b',
        "SELECT i AS key, s FROM t WHERE i = 2 \\gset\n\\echo :key :s",
    ),
    (
        'b',
        "SELECT format('SELECT %s', i) FROM t WHERE i < 3 ORDER BY i \\gexec\n",
    ),
    ('a', "SELECT i, $1 FROM t \\gdesc\n"),
    ('a', "SELECT i, s FROM t \\gdesc\n"),
    ('a', "SET TimeZone TO 'Asia/Tokyo'; SET DateStyle TO German"),
    ('b', "SET TimeZone TO 'America/New_York'; BEGIN"),
    ('a', "SELECT timestamptz '2024-02-29 12:00 UTC'"),
    (
        'b',
        "SELECT timestamptz '2024-02-29 12:00 UTC'; COMMIT; SHOW TimeZone",
    ),
    ('a', "SHOW TimeZone; RESET TimeZone; SHOW TimeZone"),
    (
        'b',
        "RESET TimeZone; SELECT timestamptz '2024-02-29 12:00 UTC'",
    ),
    ('a', r"\encoding LATIN1"),
    ('b', "SHOW client_encoding"),
    ('a', "SHOW client_encoding"),
    ('a', r"\encoding UTF8"),
    (
        'a',
        "BEGIN; SET LOCAL work_mem TO '9MB'; SELECT pg_try_advisory_xact_lock(8)",
    ),
    ('b', "SHOW work_mem; SELECT pg_try_advisory_xact_lock(8)"),
    ('a', "SHOW work_mem; COMMIT; SHOW work_mem"),
    (
        'b',
        "DO $$ BEGIN RAISE NOTICE 'hello'; RAISE WARNING 'beware'; END $$",
    ),
    (
        'a',
        "BEGIN; DECLARE portal SCROLL CURSOR FOR SELECT i FROM t ORDER BY i; FETCH 2 FROM portal",
    ),
    ('b', "SELECT 'between'"),
    (
        'a',
        "FETCH 1 FROM portal; FETCH BACKWARD 2 FROM portal; COMMIT; FETCH 1 FROM portal",
    ),
    ('b', "SET LOCAL work_mem TO '9MB'"),
    ('b', "BEGIN; PREPARE TRANSACTION 'x'"),
    ('a', "-- nothing"),
    (
        'b',
        "SELECT md5(repeat('0123456789', 300000)), length(repeat('x', 3000000))",
    ),
];

/// What ties a client to its server connection: what `c` says, and meanwhile, inside a transaction,
/// `b`.
const TYING: &[(&str, &[(char, &str)])] = &[
    (
        "listening",
        &[
            ('c', "LISTEN news"),
            (
                'b',
                "NOTIFY news, 'first'; SELECT pg_notify('news', 'second'); COMMIT; BEGIN",
            ),
            ('c', "SELECT 'heard'"),
            ('c', "UNLISTEN *"),
        ],
    ),
    (
        "a temporary table",
        &[
            ('c', "CREATE TEMP TABLE mine AS SELECT 5 AS i"),
            ('b', "SELECT to_regclass('mine')"),
            ('c', "SELECT i FROM mine"),
            ('c', r"\d mine"),
        ],
    ),
    (
        "locks of the session",
        &[
            ('c', "SELECT pg_advisory_lock(7)"),
            (
                'b',
                "SELECT objid, granted FROM pg_locks WHERE locktype = 'advisory'",
            ),
            (
                'c',
                "SELECT pg_advisory_unlock(7); SELECT pg_advisory_unlock(7)",
            ),
        ],
    ),
    (
        "settings that are not reported",
        &[
            ('c', "SET work_mem TO '7MB'; SET search_path TO pg_catalog"),
            ('b', "SHOW work_mem; SHOW search_path"),
            ('c', "SHOW work_mem; SHOW search_path"),
            ('c', "DISCARD ALL"),
            ('c', "SHOW work_mem; SHOW search_path"),
        ],
    ),
    (
        "prepared by SQL",
        &[
            ('c', "PREPARE p (int) AS SELECT $1 + 1; EXECUTE p (1)"),
            ('c', "EXECUTE p (2); DEALLOCATE p; EXECUTE p (3)"),
            ('b', "EXECUTE p (1)"),
        ],
    ),
    (
        "a held cursor",
        &[
            (
                'c',
                "DECLARE held CURSOR WITH HOLD FOR SELECT generate_series(1, 5); FETCH 2 FROM held",
            ),
            ('b', "SELECT count(*) FROM pg_cursors WHERE name = 'held'"),
            ('c', "FETCH ALL FROM held; CLOSE held"),
        ],
    ),
    // By calls of functions.
    (
        "large objects",
        &[
            ('c', r"\lo_import 'rows.txt' 'of psql'"),
            ('c', r"\lo_export :LASTOID 'rows-again.txt'"),
            (
                'c',
                "SELECT length(lo_get(:LASTOID)), md5(lo_get(:LASTOID))",
            ),
            ('c', r"\lo_unlink :LASTOID"),
            ('c', r"\lo_unlink :LASTOID"),
        ],
    ),
    (
        "another session",
        &[
            ('c', "CREATE TEMP TABLE mine AS SELECT 5 AS i"),
            ('c', r"\connect -"),
            ('c', "SELECT to_regclass('mine')"),
        ],
    ),
];

/// Runs all steps.
pub fn run(place: &ScriptTarget<'_>) -> String {
    let (mut a, mut b) = (begin(place), begin(place));
    let mut lines = String::new();
    for (who, what) in TAKING_TURNS {
        let talk = if *who == 'a' { &mut a } else { &mut b };
        lines += &line(*who, what, &ask(talk, what));
    }
    for (name, steps) in TYING {
        let mut c = begin(place);
        for (who, what) in *steps {
            if *who == 'b' {
                b.ask("BEGIN");
                lines += &line(*who, what, &ask(&mut b, what));
                b.ask("ROLLBACK");
            } else {
                lines += &line(*who, &format!("{name}: {what}"), &ask(&mut c, what));
            }
        }
    }
    for (what, arguments) in [
        ("no such database", ["-d", "nowhere"]),
        (
            "an end",
            ["-c", "SELECT pg_terminate_backend(pg_backend_pid())"],
        ),
    ] {
        let output = place.psql().args(arguments).output().unwrap();
        let said = said(&output);
        let first = said.split("FATAL:").nth(1).unwrap().lines().next();
        lines += &line('-', what, first.unwrap());
    }
    lines + &line('-', "cancelled", &cancelled(place, &mut b))
}

/// What it answers. A command of psql's own would take the semicolon that is put behind it for a
/// part of it.
fn ask(talk: &mut Talk, what: &str) -> String {
    if what.starts_with('\\') || what.ends_with('\n') {
        talk.ask(&format!("{what}\nSELECT 'done'"))
    } else {
        talk.ask(what)
    }
}

/// A step; without numbers where they are of processes and large objects.
fn line(who: char, what: &str, answer: &str) -> String {
    let has_numbers = answer.contains("PID") || what.contains("\\lo_");
    let hidden: String = if has_numbers {
        answer.split(|c: char| c.is_ascii_digit()).collect()
    } else {
        answer.to_owned()
    };
    format!("{who}: {what:?}: {hidden:?}\n")
}

/// A psql with its errors among its answers.
fn begin(place: &ScriptTarget<'_>) -> Talk {
    let psql = place.psql();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "exec \"$0\" \"$@\" 2>&1"])
        .arg(psql.get_program());
    shell.args(psql.get_args()).args(["-v", "ON_ERROR_STOP=0"]);
    shell.current_dir(psql.get_current_dir().unwrap());
    Talk::begin(&mut shell)
}

/// As by Ctrl-C.
fn cancelled(place: &ScriptTarget<'_>, other: &mut Talk) -> String {
    let mut psql = place.psql();
    psql.args(["-c", "SELECT pg_sleep(50)"])
        .stderr(Stdio::piped());
    let psql = psql.spawn().unwrap();
    let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    crate::support::until("it sleeps", || other.ask(sleeps) == "1");
    // It is below `timeout`, which passes the signal on.
    let id = rustix::process::Pid::from_child(&psql);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    // psql says that it has requested the cancel as often as the signal came.
    let said = said(&psql.wait_with_output().unwrap());
    said.lines().last().unwrap_or_default().to_owned()
}
