//! What a session keeps from one transaction to the next: more clients than server connections, and
//! none of them notices.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use super::{in_bytes, message, read_through};
use crate::support::{Database, Gate, transactions};

/// A client that waits for longer waits for another that is tied.
const PATIENCE: Duration = Duration::from_secs(20);

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A session with options of its own; what carries it ends with the runtime.
async fn connect(folder: &std::path::Path, port: u16, user: &str, options: &str) -> Client {
    let mut config = Config::new();
    config.host_path(folder).port(port).user(user);
    config.dbname("postgres").options(options);
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// What a client is answered: values, or the code of an error.
async fn told(client: &Client, sql: &str) -> String {
    let answer = timeout(PATIENCE, client.simple_query(sql)).await;
    let Ok(answer) = answer else {
        return "no answer".into();
    };
    let shown = |message: SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => {
            let fields = (0..row.len()).map(|at| row.get(at).unwrap_or("NULL").to_owned());
            fields.collect::<Vec<_>>().join("|")
        }
        _ => String::new(),
    };
    match answer {
        Ok(messages) => messages.into_iter().map(shown).collect(),
        Err(error) => error
            .code()
            .map_or_else(|| error.to_string(), |code| code.code().to_owned()),
    }
}

/// Sets what clients set, takes it back, and ties no client: at a limit of one transaction another
/// client is answered.
#[test]
fn what_ends_or_can_follow_ties_nobody() {
    let Some(database) = Database::start("what_ends_or_can_follow") else {
        return;
    };
    let gate = Gate::before(&database, &transactions(1));
    runtime().block_on(async {
        let [one, other] = [
            connect(gate.folder(), 6432, "postgres", "").await,
            connect(gate.folder(), 6432, "postgres", "").await,
        ];
        for commands in [
            &["SELECT set_config('app.user', '7', true)"][..],
            &["SELECT set_config('app.user', '7', false)"],
            &["SELECT set_config('TimeZone', 'UTC', false)"],
            &["SET standard_conforming_strings = on"],
            &["SET client_min_messages TO 'warning'"],
            &["SET SESSION AUTHORIZATION DEFAULT"],
            &["SET work_mem TO DEFAULT"],
            &["SET nonsense = 1", "RESET nonsense"],
            &["BEGIN; CREATE TEMP TABLE t (i int) ON COMMIT DROP; COMMIT"],
            &["BEGIN", "CREATE TEMP TABLE t (i int)", "ROLLBACK"],
            &["CREATE TEMP TABLE t (i int)", "DROP TABLE t"],
            &["CREATE TEMP TABLE t (i int)", "DISCARD TEMP"],
            &["BEGIN; SET work_mem = '9MB'; ROLLBACK"],
            &["BEGIN; LISTEN news; ROLLBACK"],
            &["LISTEN news", "UNLISTEN news"],
            &["LISTEN news", "UNLISTEN *"],
            &["SELECT pg_advisory_lock(1)", "SELECT pg_advisory_unlock(1)"],
            &[
                "SELECT pg_advisory_lock(1), pg_advisory_lock_shared(2)",
                "SELECT pg_advisory_unlock_all()",
            ],
            &["PREPARE p AS SELECT 1", "DEALLOCATE p"],
            &["PREPARE p AS SELECT 1", "DEALLOCATE ALL"],
            &[
                "BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT 1; COMMIT",
                "CLOSE c",
            ],
            &["LISTEN a; PREPARE p AS SELECT 1", "DISCARD ALL"],
        ] {
            for sql in commands {
                told(&one, sql).await;
            }
            assert_eq!(told(&other, "SELECT 1").await, "1", "{commands:?}");
            assert_eq!(told(&one, "SELECT 2").await, "2", "{commands:?}");
        }
        // And what is still there does.
        told(&one, "SELECT pg_advisory_lock(1), pg_advisory_lock(1)").await;
        told(&one, "SELECT pg_advisory_unlock(1)").await;
        let mut waits = std::pin::pin!(other.simple_query("SELECT 1"));
        let early = timeout(Duration::from_millis(100), &mut waits).await;
        assert!(early.is_err(), "the lock is held twice");
        told(&one, "SELECT pg_advisory_unlock(1)").await;
        timeout(PATIENCE, waits).await.unwrap().unwrap();
    });
}

/// A name that is a parameter, as drivers send it.
#[test]
fn a_setting_whose_name_is_bound_follows() {
    let Some(database) = Database::start("a_setting_whose_name_is_bound") else {
        return;
    };
    let gate = Gate::before(&database, &transactions(1));
    runtime().block_on(async {
        let [one, other] = [
            connect(gate.folder(), 6432, "postgres", "").await,
            connect(gate.folder(), 6432, "postgres", "").await,
        ];
        let set = "SELECT set_config($1, $2, false)";
        for (name, value) in [("app.user", "it's"), ("Work_mem", "8MB"), ("jit", "off")] {
            let rows = timeout(PATIENCE, one.query(set, &[&name, &value])).await;
            assert_eq!(rows.unwrap().unwrap()[0].get::<_, &str>(0), value);
            let has = format!("SELECT current_setting('{name}', true)");
            assert_ne!(told(&other, &has).await, value);
            assert_eq!(told(&one, &has).await, value);
        }
    });
}

/// Settings that are looked at.
const READ: &str = "SELECT current_setting('work_mem'), current_setting('search_path'),
    current_setting('timezone'), current_setting('datestyle'), current_setting('statement_timeout'),
    current_setting('default_transaction_read_only'), current_setting('application_name'),
    coalesce(current_setting('app.one', true), ''), coalesce(current_setting('app.two', true), ''),
    current_setting('role'), current_user, session_user, current_setting('log_statement'),
    current_setting('extra_float_digits'), current_setting('intervalstyle'),
    current_setting('geqo'), current_setting('random_page_cost')";

/// Commands that are no setting of a value by its name.
const OTHERS: [&str; 27] = [
    "RESET ALL",
    "DISCARD ALL",
    "SET ROLE bob",
    "SET ROLE postgres",
    "RESET ROLE",
    "SET SESSION AUTHORIZATION bob",
    "RESET SESSION AUTHORIZATION",
    "SET TIME ZONE 3",
    "SET TIME ZONE LOCAL",
    "SET app.one = Second",
    "SET app.one TO 007",
    "SELECT set_config('app.one', 'Second', 0 = 1)",
    "SET search_path = Public, \"A b\"",
    "SET search_path TO user",
    "SET work_mem = 4096",
    "SET extra_float_digits = 3",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "PREPARE st AS SELECT set_config('work_mem', '2MB', false); EXECUTE st; DEALLOCATE st",
    "PREPARE st(text) AS SELECT set_config('timezone', $1, 1 = 2); EXECUTE st('UTC'); DEALLOCATE st",
    "SET transaction_read_only TO on",
    "SELECT set_config('transaction_read_only', 'on', false)",
    "SET seed TO 0.5",
    "SET search_path TO pg_temp, public",
    "SELECT 1/0",
    "SAVEPOINT a",
    "ROLLBACK TO SAVEPOINT a",
    "SELECT 1",
];

fn command() -> impl Strategy<Value = String> {
    let settings = [
        "work_mem",
        "search_path",
        "timezone",
        "datestyle",
        "statement_timeout",
        "default_transaction_read_only",
        "application_name",
        "app.one",
        "app.two",
        "log_statement",
        "extra_float_digits",
        "intervalstyle",
        "geqo",
        "random_page_cost",
        "nonsense",
    ];
    let value = |name: &'static str, number: usize| match name {
        "work_mem" => ["1MB", "4MB", "5000"][number],
        "search_path" => ["a, \"b''c\", pg_catalog", "public", ""][number],
        "timezone" => ["UTC", "Asia/Tokyo", "Etc/UTC"][number],
        "datestyle" => ["German", "ISO", "SQL, DMY"][number],
        "statement_timeout" => ["10s", "0", "100000"][number],
        "default_transaction_read_only" => ["on", "off", "maybe"][number],
        "log_statement" => ["none", "ddl", "none"][number],
        "extra_float_digits" => ["0", "3", "1"][number],
        "intervalstyle" => ["postgres", "ISO_8601", "sql_standard"][number],
        "geqo" => ["on", "False", "1"][number],
        "random_page_cost" => ["4", "1.10", "04"][number],
        _ => ["x", "caf\u{e9}, it''s", "y"][number],
    };
    let one = (prop::sample::select(settings.to_vec()), 0_usize..3, 0..8);
    let setting = one.prop_map(move |(name, number, how)| {
        let value = value(name, number);
        match how {
            0 | 1 => format!("SET {name} TO '{value}'"),
            2 => format!("SET SESSION {name} = DEFAULT"),
            3 => format!("RESET {name}"),
            4 => format!("SET LOCAL {name} = '{value}'"),
            5 => format!("SELECT set_config('{name}', '{value}', false)"),
            6 => format!("SELECT set_config('{name}', '{value}', true)"),
            _ => format!("SELECT set_config('{name}', '{value}', {number} = 1)"),
        }
    });
    let others = prop::sample::select(&OTHERS[..]);
    prop_oneof![3 => setting, 1 => others.prop_map(str::to_owned)]
}

/// A command, or a transaction of some.
fn unit() -> impl Strategy<Value = Vec<String>> {
    let block = (prop::collection::vec(command(), 0..5), any::<bool>());
    let block = block.prop_map(|(commands, commits)| {
        let end = if commits { "COMMIT" } else { "ROLLBACK" };
        let begin = ["BEGIN".to_owned()].into_iter();
        let all = begin.chain(commands).chain([end.to_owned()]);
        all.collect()
    });
    prop_oneof![2 => command().prop_map(|command| vec![command]), 1 => block]
}

/// Two clients that share one server connection, and their doubles with one each.
async fn compare(database: &Database, gate: &Gate, script: &[(usize, Vec<String>)]) {
    let options = [
        "-c work_mem=6MB -c timezone=Europe/Rome -c app.one=first",
        "",
    ];
    let mut pairs = Vec::new();
    for options in options {
        pairs.push([
            connect(database.folder(), 5432, "postgres", options).await,
            connect(gate.folder(), 6432, "postgres", options).await,
        ]);
    }
    for (number, commands) in script {
        let [straight, through] = &pairs[*number];
        for sql in commands {
            let (expected, found) = (told(straight, sql).await, told(through, sql).await);
            assert_eq!(found, expected, "client {number}: {sql} of {script:?}");
        }
        for (number, [straight, through]) in pairs.iter().enumerate() {
            let (expected, found) = (told(straight, READ).await, told(through, READ).await);
            assert_eq!(
                found, expected,
                "client {number} after {commands:?} of {script:?}"
            );
        }
    }
}

/// Also where the session already is who it is to be.
#[test]
fn a_role_ends_where_the_session_says_who_it_is() {
    let Some(database) = Database::start("a_role_ends_where_the_session_says") else {
        return;
    };
    database.ask("CREATE ROLE bob LOGIN");
    let gate = Gate::before(&database, &transactions(1));
    let becomes_bob = "SET SESSION AUTHORIZATION bob";
    for again in [
        becomes_bob,
        "SELECT set_config('session_authorization', 'bob', false)",
        "RESET SESSION AUTHORIZATION",
        "SET SESSION AUTHORIZATION DEFAULT",
        "SET SESSION AUTHORIZATION postgres",
    ] {
        for first in [becomes_bob, "SELECT 1"] {
            let script = [
                (1, first),
                (1, "SET ROLE bob"),
                (1, again),
                (0, "SET work_mem TO '1MB'"),
                (1, "SELECT 1"),
            ];
            let script = script.map(|(client, sql)| (client, vec![sql.to_owned()]));
            runtime().block_on(compare(&database, &gate, &script));
        }
    }
}

#[test]
fn whatever_is_set_is_as_it_would_be_alone() {
    let Some(database) = Database::start("whatever_is_set") else {
        return;
    };
    database.ask("CREATE ROLE bob LOGIN");
    let script = prop::collection::vec((0_usize..2, unit()), 1..12);
    let gate = Gate::before(&database, &transactions(1));
    let by_session = format!("mode = \"session\"\n{}", transactions(2));
    let by_session = Gate::before(&database, &by_session);
    let mut runner = TestRunner::new(Cases {
        cases: 24,
        max_shrink_iters: 60,
        failure_persistence: None,
        ..Cases::default()
    });
    let ran = runner.run(&script, |script| {
        runtime().block_on(async {
            compare(&database, &gate, &script).await;
            compare(&database, &by_session, &script).await;
        });
        Ok(())
    });
    ran.unwrap();
}

/// Plays units of commands of one client, by transaction and by session.
fn compare_units(name: &str, units: &[&[&str]]) {
    let Some(database) = Database::start(name) else {
        return;
    };
    let owned = |unit: &&[&str]| (0, unit.iter().map(|sql| (*sql).to_owned()).collect());
    let script: Vec<(usize, Vec<String>)> = units.iter().map(owned).collect();
    for config in [
        transactions(1),
        format!("mode = \"session\"\n{}", transactions(2)),
    ] {
        let gate = Gate::before(&database, &config);
        runtime().block_on(compare(&database, &gate, &script));
    }
}

#[test]
fn what_the_first_packet_set_is_back_after_reset_all() {
    compare_units(
        "what_the_first_packet_set_is_back",
        &[
            &["SELECT set_config('timezone', 'Etc/UTC', false)"],
            &["RESET ALL"],
            &["SET timezone TO 'Etc/UTC'"],
            &["BEGIN", "RESET ALL", "ROLLBACK"],
            &["RESET timezone"],
            &["SET timezone TO 'Etc/UTC'"],
            &["SELECT set_config('timezone', NULL, false) IS NULL"],
        ],
    );
}

/// Also where another client had the server connection in between.
#[test]
fn what_was_set_is_back_after_a_rollback_of_more() {
    let Some(database) = Database::start("what_was_set_is_back_after_a_rollback") else {
        return;
    };
    database.ask("CREATE ROLE bob LOGIN");
    let gate = Gate::before(&database, &transactions(1));
    let owned = |commands: &[&str]| commands.iter().map(|sql| (*sql).to_owned()).collect();
    let script: Vec<(usize, Vec<String>)> = vec![
        (
            0,
            owned(&[
                "BEGIN",
                "SELECT set_config('timezone', 'Etc/UTC', false)",
                "COMMIT",
            ]),
        ),
        (1, owned(&["SET SESSION timezone = DEFAULT"])),
        (
            0,
            owned(&[
                "BEGIN",
                "SELECT set_config('timezone', 'UTC', 0 = 1)",
                "SELECT set_config('datestyle', 'SQL, DMY', true)",
                "RESET app.two",
                "SET SESSION log_statement = DEFAULT",
                "ROLLBACK",
            ]),
        ),
    ];
    runtime().block_on(compare(&database, &gate, &script));
}

/// What SET keeps of a constant is not what set_config keeps of the same letters.
#[test]
fn the_same_letters_may_be_another_value() {
    let units: [&[&str]; 8] = [
        &["SELECT set_config('search_path', '', false)"],
        &["SET search_path TO ''"],
        &["SELECT set_config('app.one', 'Second', false)"],
        &["SET app.one = Second"],
        &["SELECT set_config('app.one', '007', false)"],
        &["SET app.one = 007"],
        &["SELECT set_config('search_path', 'a b', false)"],
        &["SET search_path TO 'a b'"],
    ];
    compare_units("the_same_letters_may_be_another_value", &units);
}

/// At the end of a transaction the server calls what a local setting hid one of the session.
#[test]
fn a_local_setting_does_not_hide_a_reset() {
    let (begin, commit) = ("BEGIN", "COMMIT");
    let (zone, memory) = (
        "SET LOCAL timezone = 'Asia/Tokyo'",
        "SET LOCAL work_mem = '1MB'",
    );
    let units: [&[&str]; 13] = [
        &[
            begin,
            "RESET ALL",
            "SELECT set_config('timezone', 'Etc/UTC', 2 = 1)",
            commit,
        ],
        &[
            begin,
            "SET timezone = DEFAULT",
            "SELECT set_config('timezone', 'Asia/Tokyo', 1 = 1)",
            commit,
        ],
        &[
            begin,
            "SELECT set_config('timezone', NULL, false) IS NULL",
            zone,
            commit,
        ],
        &[begin, "RESET timezone", zone, commit],
        &[
            begin,
            "RESET work_mem",
            "SELECT set_config('work_mem', '1MB', true)",
            commit,
        ],
        &["SET work_mem TO '4MB'"],
        &[begin, "RESET work_mem", memory, "ROLLBACK"],
        &[
            begin,
            "SAVEPOINT a",
            "RESET work_mem",
            "ROLLBACK TO a",
            memory,
            commit,
        ],
        &[begin, memory, "RESET work_mem", commit],
        &["SET timezone TO 'Etc/UTC'"],
        &[begin, "RESET work_mem", zone, commit],
        &[
            begin,
            "RESET timezone",
            "SET timezone TO 'Etc/UTC'",
            memory,
            commit,
        ],
        &[
            begin,
            "RESET ALL",
            "SET timezone TO 'Etc/UTC'",
            zone,
            commit,
        ],
    ];
    compare_units("a_local_setting_does_not_hide", &units);
    compare_units(
        "a_local_setting_does_not_hide",
        &[&[begin, "RESET ALL", zone, commit]],
    );
}

/// As Npgsql begins each of its sessions: with the next command in the same packet.
#[test]
fn discard_all_and_what_comes_with_it_need_no_new_connection() {
    let Some(database) = Database::start("discard_all_and_what_comes_with_it") else {
        return;
    };
    let gate = Gate::before(&database, &transactions(1));
    let pid = gate.ask(&database, &["SELECT pg_backend_pid()"]);
    let mut client = in_bytes(&gate);
    for _ in 0..5 {
        let both = [
            message(b'Q', b"DISCARD ALL\0"),
            message(b'P', b"\0SELECT pg_backend_pid()::text\0\0\0"),
            message(b'B', b"\0\0\0\0\0\0\0\0"),
            message(b'E', b"\0\0\0\0\0"),
            message(b'S', b""),
        ];
        std::io::Write::write_all(&mut client, &both.concat()).unwrap();
        read_through(&mut client, b"Z\0\0\0\x05I");
        read_through(&mut client, pid.as_bytes());
        read_through(&mut client, b"Z\0\0\0\x05I");
    }
}
