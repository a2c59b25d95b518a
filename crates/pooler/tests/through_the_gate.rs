//! Real clients, a real PostgreSQL, the gate between them.

mod cancels;
mod in_step;
mod own_questions;
mod sessions;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use crate::bytes::message;
use crate::support::{Database, Gate, Talk, printed, said, transactions, until};

#[test]
fn psql_notices_no_difference() {
    let Some(database) = Database::start("psql_notices_no_difference") else {
        return;
    };
    let gate = Gate::before(&database, "");
    let commands = [
        "CREATE TABLE t (i int PRIMARY KEY, s text)",
        "INSERT INTO t SELECT i, repeat('x', i) FROM generate_series(1, 500) i",
        "SELECT count(*), sum(length(s)) FROM t",
        "BEGIN; UPDATE t SET s = 'y' WHERE i = 1; ROLLBACK",
        "SELECT s FROM t WHERE i = 1; SELECT 2; SELECT 3",
        "DO $$ BEGIN RAISE NOTICE 'hello'; END $$",
        "SELECT length(repeat('z', 3000000))",
        "SELECT repeat('z', 300000)",
    ];
    let through = gate.ask(&database, &commands);
    database.ask("DROP TABLE t");
    let mut direct = database.psql(database.folder(), 5432, "postgres");
    direct.args(commands.iter().flat_map(|sql| ["-c", sql]));
    assert_eq!(through, printed(&mut direct));
    let failed = gate
        .psql(&database, "postgres")
        .args(["-c", "SELECT 1/0"])
        .output()
        .unwrap();
    assert_eq!(said(&failed), "ERROR:  division by zero");
}

#[test]
fn pgbench_runs_in_every_protocol_with_fewer_connections_than_clients() {
    let Some(database) = Database::start("pgbench_runs_in_every_protocol") else {
        return;
    };
    let gate = Gate::before(&database, &transactions(2));
    printed(
        gate.program(&database, "pgbench")
            .args(["-i", "-q", "postgres"]),
    );
    for protocol in ["simple", "extended", "prepared"] {
        let mut pgbench = gate.program(&database, "pgbench");
        // A thread a client: it prepares statements without looking at its other clients, which may
        // have all the connections.
        pgbench.args([
            "-n", "-M", protocol, "-c", "8", "-j", "8", "-t", "50", "postgres",
        ]);
        let printed = printed(&mut pgbench);
        assert!(
            printed.contains("number of transactions actually processed: 400/400"),
            "{printed}"
        );
    }
    assert_eq!(database.ask("SELECT count(*) FROM pgbench_history"), "1200");
    let sums = "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history)";
    assert_eq!(database.ask(sums), "t");
}

#[test]
fn rows_are_copied_both_ways() {
    let Some(database) = Database::start("rows_are_copied_both_ways") else {
        return;
    };
    let gate = Gate::before(&database, &transactions(1));
    let copied = gate.ask(
        &database,
        &[
            "CREATE TABLE t (i int, s text)",
            "INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 20000) i",
            r"\copy t to rows.txt",
            "CREATE TABLE u (i int, s text)",
            r"\copy u from rows.txt",
            "SELECT count(*), sum(i), sum(length(s)) FROM u",
        ],
    );
    assert!(copied.contains("20000|200010000|20000000"), "{copied}");
    // A COPY that fails in the middle of its rows is no end of the connection.
    let mut psql = gate.psql(&database, "postgres");
    psql.args([
        "-v",
        "ON_ERROR_STOP=0",
        "-c",
        r"\copy u (i) from program 'yes wrong | head -n 100000'",
    ]);
    let output = psql.args(["-c", "SELECT 'goes on'"]).output().unwrap();
    assert!(
        said(&output).contains("invalid input syntax"),
        "{}",
        said(&output)
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "goes on");
}

/// Its client may have sent all of them before it hears that the first is wrong.
#[test]
fn rows_behind_a_copy_that_failed_need_no_admission() {
    let Some(database) = Database::start("rows_behind_a_copy_that_failed") else {
        return;
    };
    database.ask("CREATE TABLE t (i int)");
    let config = format!("admins = [\"postgres\"]\n{}", transactions(1));
    let gate = Gate::before(&database, &config);
    let admitted = || -> u64 {
        let gates = gate.admin(&database, "SHOW GATES");
        gates.split('|').nth(4).unwrap().parse().unwrap()
    };
    for tie in ["SELECT 1", "LISTEN news"] {
        let mut client = in_bytes(&gate);
        client
            .write_all(&message(b'Q', format!("{tie}\0").as_bytes()))
            .unwrap();
        read_through(&mut client, b"Z\0\0\0\x05I");
        let before = admitted();
        client
            .write_all(&message(b'Q', b"COPY t FROM STDIN\0"))
            .unwrap();
        read_through(&mut client, b"G\0\0\0\x09\0\0\x01\0\0");
        client.write_all(&message(b'd', b"no number\n")).unwrap();
        read_through(&mut client, b"Z\0\0\0\x05I");
        let mut rest = message(b'd', b"1\n").repeat(3000);
        rest.extend(message(b'd', &[b'x'; 100_000]));
        rest.extend(message(b'c', b""));
        // In pieces, so that messages are cut off.
        for piece in rest.chunks(7001) {
            client.write_all(piece).unwrap();
        }
        client
            .write_all(&message(b'Q', b"SELECT 'goes on'\0"))
            .unwrap();
        read_through(&mut client, b"Z\0\0\0\x05I");
        let since = admitted() - before;
        assert!(since <= 2, "{tie}: {since}");
    }
    let before = admitted();
    let mut psql = gate.psql(&database, "postgres");
    psql.args([
        "-c",
        r"\copy t from program 'echo wrong; seq 100000'",
        "-c",
        "SELECT 'goes on'",
    ]);
    let output = psql.output().unwrap();
    assert!(
        said(&output).contains("invalid input syntax"),
        "{}",
        said(&output)
    );
    let since = admitted() - before;
    assert!(since <= 3, "{since}");
    assert_eq!(database.ask("SELECT count(*) FROM t"), "0");
}

#[test]
fn settings_follow_their_client_through_one_connection() {
    let Some(database) = Database::start("settings_follow_their_client") else {
        return;
    };
    let gate = Gate::before(&database, &transactions(1));
    let mut rome = Talk::begin(gate.psql(&database, "postgres").env("PGTZ", "Europe/Rome"));
    let mut tokyo = Talk::begin(
        gate.psql(&database, "postgres")
            .env("PGOPTIONS", "-c statement_timeout=7s"),
    );
    assert_eq!(rome.ask("SHOW timezone"), "Europe/Rome");
    tokyo.ask("SET timezone TO 'Asia/Tokyo'");
    let pids = [
        rome.ask("SELECT pg_backend_pid()"),
        tokyo.ask("SELECT pg_backend_pid()"),
    ];
    assert_eq!(pids[0], pids[1], "one connection for both");
    assert_eq!(rome.ask("SHOW timezone"), "Europe/Rome");
    assert_eq!(tokyo.ask("SHOW timezone"), "Asia/Tokyo");
    assert_eq!(rome.ask("SHOW statement_timeout"), "0");
    assert_eq!(tokyo.ask("SHOW statement_timeout"), "7s");
}

#[test]
fn what_outlives_a_transaction_keeps_the_connection_and_is_gone_afterwards() {
    let Some(database) = Database::start("what_outlives_a_transaction") else {
        return;
    };
    let gate = Gate::before(&database, &transactions(2));
    let mut holder = Talk::begin(&mut gate.psql(&database, "postgres"));
    holder.ask("CREATE TEMP TABLE mine (i int)");
    let mut other = Talk::begin(&mut gate.psql(&database, "postgres"));
    for _ in 0..5 {
        assert_eq!(other.ask("SELECT to_regclass('pg_temp.mine')"), "");
        assert_eq!(holder.ask("SELECT to_regclass('pg_temp.mine')"), "mine");
    }
    let pid = holder.ask("SELECT pg_backend_pid()");
    drop(holder);
    // Its connection is as new: the next client finds nothing of it.
    until("the table is gone", || {
        let left = format!("SELECT count(*) FROM pg_class WHERE relname = 'mine' AND {pid} > 0");
        other.ask(&left) == "0"
    });
}

#[test]
fn a_cancel_request_ends_what_its_client_runs() {
    let Some(database) = Database::start("a_cancel_request") else {
        return;
    };
    let gate = Gate::before(&database, &transactions(2));
    let mut sleeping = gate.psql(&database, "postgres");
    let sleeping = sleeping
        .args(["-c", "SELECT pg_sleep(50)"])
        .stderr(Stdio::piped());
    let sleeping = sleeping.spawn().unwrap();
    let mut other = Talk::begin(&mut gate.psql(&database, "postgres"));
    let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    until("it sleeps", || other.ask(sleeps) == "1");
    // psql is below `timeout`, which passes the signal on.
    let id = rustix::process::Pid::from_raw(sleeping.id() as i32).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let output = sleeping.wait_with_output().unwrap();
    let words = "ERROR:  canceling statement due to user request";
    assert!(said(&output).ends_with(words), "{}", said(&output));
    assert_eq!(other.ask("SELECT 'unharmed'"), "unharmed");
}

#[test]
fn a_client_that_is_killed_leaves_nothing_behind() {
    let Some(database) = Database::start("a_client_that_is_killed") else {
        return;
    };
    let gate = Gate::before(&database, &transactions(1));
    let mut killed = Talk::begin(&mut gate.psql(&database, "postgres"));
    killed.ask("CREATE TABLE t (i int)");
    killed.ask("BEGIN");
    killed.ask("INSERT INTO t VALUES (1)");
    killed.kill();
    assert_eq!(gate.ask(&database, &["SELECT count(*) FROM t"]), "0");
}

#[test]
fn whoever_waits_outlives_a_restart_of_the_database() {
    let Some(database) = Database::start("whoever_waits_outlives_a_restart") else {
        return;
    };
    let gate = Gate::before(&database, &transactions(2));
    let mut client = Talk::begin(&mut gate.psql(&database, "postgres"));
    assert_eq!(client.ask("SELECT 1"), "1");
    database.stop("fast");
    client.say("SELECT 'after'");
    std::thread::sleep(std::time::Duration::from_millis(500));
    database.restart();
    assert_eq!(client.hear(), "after");
}

#[test]
fn a_database_that_does_not_come_back_is_told() {
    let Some(database) = Database::start("a_database_that_does_not_come_back") else {
        return;
    };
    let gate = Gate::before(&database, "[limits]\npatience_seconds = 1\n");
    database.stop("fast");
    let output = gate
        .psql(&database, "postgres")
        .args(["-c", "SELECT 1"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(
        said(&output).contains("does not answer"),
        "{}",
        said(&output)
    );
    database.restart();
    assert_eq!(gate.ask(&database, &["SELECT 1"]), "1");
    let mut unknown = database.psql(gate.folder(), 6432, "postgres");
    let unknown = unknown
        .args(["-d", "nowhere", "-c", "SELECT 1"])
        .output()
        .unwrap();
    assert!(
        said(&unknown).contains("database \"nowhere\" does not exist"),
        "{}",
        said(&unknown)
    );
}

#[test]
fn a_password_opens_gate_and_database_and_is_stored_in_neither() {
    let Some(database) = Database::start("a_password_opens_gate_and_database") else {
        return;
    };
    database.ask("CREATE ROLE ann LOGIN PASSWORD 'pencil'");
    let verifier = database.ask("SELECT rolpassword FROM pg_authid WHERE rolname = 'ann'");
    assert!(verifier.starts_with("SCRAM-SHA-256$"));
    database.require("scram-sha-256", "ann");
    for auth in ["scram", "md5"] {
        let gate = Gate::before(
            &database,
            &format!("auth = {auth:?}\n[[user]]\nname = \"ann\"\npassword = {verifier:?}\n"),
        );
        let with = |user: &str, password: &str| {
            let mut psql = gate.psql(&database, user);
            psql.env("PGPASSWORD", password)
                .args(["-c", "SELECT current_user"])
                .output()
                .unwrap()
        };
        let right = with("ann", "pencil");
        assert_eq!(
            String::from_utf8_lossy(&right.stdout).trim(),
            "ann",
            "{}",
            said(&right)
        );
        for (user, password) in [("ann", "pencils"), ("bob", "pencil")] {
            let wrong = said(&with(user, password));
            assert!(
                wrong.contains(&format!(
                    "password authentication failed for user \"{user}\""
                )),
                "{wrong}"
            );
        }
    }
}

/// As `scram_iterations` of PostgreSQL 16 makes one.
#[test]
fn a_verifier_may_have_many_iterations() {
    const VERIFIER: &str = "SCRAM-SHA-256$210000:W22ZaJ0SNY7soEsUEjb6gQ==$CB0Sl+yQbquNhezX0SIjfy70F1z6uX6kmMfMGSSeG/w=:iBY+Pt4UAVsqj/IlPfk0a8mY1iykiOUvbBgNSbsdnR8=";
    let Some(database) = Database::start("a_verifier_may_have_many_iterations") else {
        return;
    };
    database.ask(&format!("CREATE ROLE ann LOGIN PASSWORD '{VERIFIER}'"));
    database.require("scram-sha-256", "ann");
    // By the client's proof, by its password in clear text, and by one that the gate knows.
    for (auth, password) in [
        ("scram", VERIFIER),
        ("password", VERIFIER),
        ("scram", "pencil"),
    ] {
        let user = format!("[[user]]\nname = \"ann\"\npassword = {password:?}\n");
        let gate = Gate::before(&database, &format!("auth = {auth:?}\n{user}"));
        let mut psql = gate.psql(&database, "ann");
        psql.args(["-c", "SELECT current_user"]);
        assert_eq!(printed(psql.env("PGPASSWORD", "pencil")), "ann", "{auth}");
        let wrong = psql.env("PGPASSWORD", "pencils").output().unwrap();
        assert!(
            said(&wrong).contains("password authentication failed"),
            "{}",
            said(&wrong)
        );
    }
}

#[test]
fn a_password_in_the_users_file_serves_every_method() {
    let Some(database) = Database::start("a_password_in_the_users_file") else {
        return;
    };
    database.ask("CREATE ROLE ann LOGIN PASSWORD 'pencil'");
    database.require("scram-sha-256", "ann");
    for auth in ["scram", "md5", "password"] {
        let gate = Gate::before(
            &database,
            &format!("auth = {auth:?}\n[[user]]\nname = \"ann\"\npassword = \"pencil\"\n"),
        );
        let mut psql = gate.psql(&database, "ann");
        assert_eq!(
            printed(psql.env("PGPASSWORD", "pencil").args(["-c", "SELECT 5"])),
            "5",
            "{auth:?}"
        );
    }
}

#[test]
fn what_is_no_postgresql_is_told_so_and_nobody_else_notices() {
    let Some(database) = Database::start("what_is_no_postgresql") else {
        return;
    };
    let gate = Gate::before(&database, &transactions(1));
    let socket = gate.folder().join(".s.PGSQL.6432");
    let answer = |bytes: &[u8]| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).replace('\0', " ")
    };
    let startup = b"\0\0\0\x29\0\x03\0\0user\0postgres\0database\0postgres\0\0";
    for (bytes, sqlstate) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "C08P01"),
        (b"\0\0\0\x11\0\x03\0\0user\0x\0\0a", "C08P01"),
        (&[&startup[..], b"?\0\0\0\x04"].concat(), "C08P01"),
        (&[&startup[..], b"Q\xff\xff\xff\xff"].concat(), "C08P01"),
        (&[&startup[..], b"D\x7f\xff\xff\xff"].concat(), "C08P01"),
    ] {
        let answer = answer(bytes);
        assert!(answer.contains(sqlstate), "{bytes:?}: {answer}");
    }
    assert_eq!(gate.ask(&database, &["SELECT 1"]), "1");
}

/// A session in bytes, up to its first ReadyForQuery.
fn in_bytes(gate: &Gate) -> UnixStream {
    let mut stream = UnixStream::connect(gate.folder().join(".s.PGSQL.6432")).unwrap();
    let startup = b"\0\0\0\x29\0\x03\0\0user\0postgres\0database\0postgres\0\0";
    stream.write_all(startup).unwrap();
    read_through(&mut stream, b"Z\0\0\0\x05I");
    stream
}

fn read_through(stream: &mut UnixStream, end: &[u8]) {
    let mut heard = Vec::new();
    while !heard.ends_with(end) {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        heard.push(byte[0]);
    }
}

#[test]
fn a_copy_that_fails_over_commands_sent_ahead_is_nobody_elses() {
    let Some(database) = Database::start("a_copy_that_fails") else {
        return;
    };
    database.ask("CREATE TABLE t (i int)");
    let gate = Gate::before(&database, &transactions(1));
    let mut odd = in_bytes(&gate);
    let prepare = message(b'P', b"a\0SELECT pg_sleep(1), 'a stranger''s'\0\0\0");
    odd.write_all(&[prepare, message(b'S', b"")].concat())
        .unwrap();
    read_through(&mut odd, b"Z\0\0\0\x05I");
    odd.write_all(&message(b'Q', b"COPY t FROM STDIN\0"))
        .unwrap();
    read_through(&mut odd, b"G\0\0\0\x09\0\0\x01\0\0");
    let ahead = [
        message(b'd', b"no number\n"),
        message(b'B', b"\0a\0\0\0\0\0\0\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'S', b""),
    ];
    odd.write_all(&ahead.concat()).unwrap();
    let others = std::thread::scope(|scope| {
        let asking = scope.spawn(|| gate.ask(&database, &["SELECT 'mine'", "SELECT 'and mine'"]));
        std::thread::sleep(std::time::Duration::from_millis(300));
        drop(odd);
        asking.join().unwrap()
    });
    assert_eq!(others, "mine\nand mine");
}

#[test]
fn half_a_message_is_not_the_next_clients() {
    let Some(database) = Database::start("half_a_message") else {
        return;
    };
    let gate = Gate::before(&database, &transactions(1));
    let mut odd = in_bytes(&gate);
    odd.write_all(b"d\0\0\x03\xe8 ten bytes").unwrap();
    drop(odd);
    assert_eq!(gate.ask(&database, &["SELECT 'mine'"]), "mine");
}

#[test]
fn a_new_client_inherits_nothing() {
    let Some(database) = Database::start("a_new_client_inherits_nothing") else {
        return;
    };
    let gate = Gate::before(&database, &transactions(1));
    let read = "SHOW timezone; SHOW default_transaction_read_only; SHOW datestyle";
    let fresh = gate.ask(&database, &[read]);
    let changes = "SET timezone TO 'Asia/Tokyo'; SET default_transaction_read_only TO on; SET datestyle TO 'German'";
    gate.ask(
        &database,
        &[changes, "BEGIN", "PREPARE p AS SELECT 1", "COMMIT"],
    );
    assert_eq!(gate.ask(&database, &[read]), fresh);
    let prepared = "SELECT count(*) FROM pg_prepared_statements";
    assert_eq!(gate.ask(&database, &[prepared]), "0");
}
