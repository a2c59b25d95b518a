//! Conversations message by message: where the server skips, waits, ends, and what a client that
//! leaves loses.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use crate::bytes::message;
use crate::support::{Database, Gate, Talk, transactions, until};

/// What is not answered by then never will be.
const PATIENCE: Duration = Duration::from_secs(20);

/// A session in bytes, up to its first ReadyForQuery.
fn in_bytes(gate: &Gate) -> UnixStream {
    let mut stream = UnixStream::connect(gate.folder().join(".s.PGSQL.6432")).unwrap();
    let startup = b"\0\0\0\x29\0\x03\0\0user\0postgres\0database\0postgres\0\0";
    stream.write_all(startup).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    hear_until(&mut stream, b"Z\0\0\0\x05I");
    stream
}

/// Reads up to these bytes.
fn hear_until(stream: &mut UnixStream, end: &[u8]) {
    let mut heard = Vec::new();
    while !heard.ends_with(end) {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        heard.push(byte[0]);
    }
}

/// A message of the extended protocol: `text` prepared without a name, bound and executed.
fn executed(text: &str) -> Vec<u8> {
    [
        message(b'P', format!("\0{text}\0\0\0").as_bytes()),
        message(b'B', &[0; 8]),
        message(b'E', &[0; 5]),
    ]
    .concat()
}

fn query(text: &str) -> Vec<u8> {
    message(b'Q', format!("{text}\0").as_bytes())
}

/// The types of what comes up to the end of the connection, and the SQLSTATE of errors.
fn answers(stream: &mut UnixStream) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let (mut rest, mut said) = (&bytes[..], String::new());
    while let Some((header, _)) = rest.split_first_chunk::<5>() {
        let length = i32::from_be_bytes(header[1..].try_into().unwrap()) as usize;
        let (one, behind) = rest.split_at(1 + length);
        said.push(char::from(one[0]));
        if one[0] == b'E' {
            let mut fields = one[5..].split(|byte| *byte == 0);
            let code = fields.find_map(|field| field.strip_prefix(b"C"));
            said += &format!("({})", String::from_utf8_lossy(code.unwrap()));
        }
        rest = behind;
    }
    said
}

#[test]
fn what_stands_before_a_goodbye_is_done_before_it() {
    let Some(database) = Database::start("what_stands_before_a_goodbye") else {
        return;
    };
    database.ask("CREATE TABLE t (i int)");
    let gate = Gate::before(&database, &transactions(1));
    let (end, sync) = (message(b'X', b""), message(b'S', b""));
    let slow = "INSERT INTO t SELECT 3 FROM pg_sleep(0.3)";
    let said = [
        (
            vec![query("BEGIN; INSERT INTO t VALUES (1)"), query("COMMIT")],
            "CCZCZ",
        ),
        (vec![query("INSERT INTO t VALUES (2)")], "CZ"),
        (vec![executed(slow), sync.clone()], "12CZ"),
        // What is not committed is rolled back.
        (vec![executed("INSERT INTO t VALUES (9)")], ""),
        (vec![query("BEGIN; INSERT INTO t VALUES (9)")], "CCZ"),
        (
            vec![query("COPY t FROM STDIN"), message(b'd', b"9\n")],
            "GE(08P01)E(08P01)",
        ),
        // Nor does it matter what says goodbye.
        (
            vec![query("INSERT INTO t VALUES (4)"), message(b'?', b"")],
            "CZE(08P01)",
        ),
    ];
    for (messages, expected) in said {
        let mut client = in_bytes(&gate);
        let goodbye = if expected.ends_with("ZE(08P01)") {
            vec![]
        } else {
            end.clone()
        };
        client
            .write_all(&[messages.concat(), goodbye].concat())
            .unwrap();
        assert_eq!(answers(&mut client), expected, "{messages:?}");
    }
    let left = "SELECT string_agg(i::text, ' ' ORDER BY i) FROM t";
    assert_eq!(gate.ask(&database, &[left]), "1 2 3 4");
}

#[test]
fn what_is_said_to_be_done_can_be_seen_by_others() {
    let Some(database) = Database::start("what_is_said_to_be_done") else {
        return;
    };
    // It commits slowly.
    database.ask(
        "CREATE TABLE t (i int);
         CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER late AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION wait()",
    );
    let gate = Gate::before(&database, &transactions(2));
    let sync = message(b'S', b"");
    let named = |tag: u8, body: &str| message(tag, body.as_bytes());
    let mut client = in_bytes(&gate);
    let mut hear = |said: &[Vec<u8>], until: u8| {
        client.write_all(&said.concat()).unwrap();
        loop {
            let mut header = [0; 5];
            client.read_exact(&mut header).unwrap();
            let length = i32::from_be_bytes(header[1..].try_into().unwrap());
            let mut body = vec![0; length as usize - 4];
            client.read_exact(&mut body).unwrap();
            if header[0] == until {
                return;
            }
        }
    };
    let count = || database.ask("SELECT count(*) FROM t");
    // Where a Sync stands before a COPY's rows, as tokio-postgres sends it, the gate asks the
    // server for its answer behind the last of them before it sends anything.
    hear(&[executed("COPY t FROM STDIN"), sync.clone()], b'G');
    let rows = [message(b'd', b"1\n"), message(b'c', b""), sync.clone()];
    hear(&rows, b'C');
    assert_eq!(count(), "1");
    hear(&[], b'Z');
    // So it does where a statement has to be prepared on another connection first.
    hear(&[named(b'P', "s\0SELECT 1\0\0\0"), sync.clone()], b'Z');
    let mut other = Talk::begin(&mut gate.psql(&database, "postgres"));
    other.ask("BEGIN");
    let mut third = Talk::begin(&mut gate.psql(&database, "postgres"));
    third.ask("BEGIN");
    third.ask("END");
    let pipeline = [
        executed("INSERT INTO t VALUES (2)"),
        named(b'B', "\0s\0\0\0\0\0\0\0"),
        message(b'E', &[0; 5]),
        sync,
    ];
    hear(&pipeline, b'C');
    assert_eq!(count(), "2");
    other.ask("END");
}

#[test]
fn answers_keep_their_order_where_the_gate_asks_for_them_again_and_again() {
    let Some(database) = Database::start("answers_keep_their_order") else {
        return;
    };
    let gate = Gate::before(&database, &transactions(1));
    let sync = message(b'S', b"");
    let (bind, execute) = (message(b'B', &[0; 8]), message(b'E', &[0; 5]));
    let pipeline = [
        executed("SELECT 1"),
        query("SELECT 2"),
        message(b'H', b""),
        query("SELECT 3"),
        executed("SELECT 4"),
        query("SELECT 5; SELECT 6"),
        query("COPY (SELECT 7) TO STDOUT"),
        [bind, execute, sync.clone()].concat(),
        executed("SELECT 8"),
        sync,
        message(b'X', b""),
    ];
    for _ in 0..10 {
        let mut client = in_bytes(&gate);
        client.write_all(&pipeline.concat()).unwrap();
        let expected = "12DCTDCZTDCZ12DCTDCTDCZHdcCZE(26000)Z12DCZ";
        assert_eq!(answers(&mut client), expected);
    }
}

#[test]
fn the_end_of_a_cycle_is_not_kept_for_the_next() {
    let Some(database) = Database::start("the_end_of_a_cycle_is_not_kept") else {
        return;
    };
    let gate = Gate::before(&database, &transactions(1));
    let sync = message(b'S', b"");
    // The gate asks for the answers of both, and the second has no end yet.
    let copy = || executed("COPY (SELECT 1) TO STDOUT");
    let begun = [copy(), sync.clone(), copy(), message(b'B', &[0; 8])];
    for _ in 0..10 {
        let mut client = in_bytes(&gate);
        client.write_all(&begun.concat()).unwrap();
        hear_until(&mut client, b"Z\0\0\0\x05I");
        let end = [sync.clone(), message(b'X', b"")];
        client.write_all(&end.concat()).unwrap();
        assert_eq!(answers(&mut client), "12HdcC2Z");
    }
    // What the client itself has requested is not kept either.
    let parse = message(b'P', b"\0SELECT 1\0\0\0");
    let flush = message(b'H', b"");
    let slow = executed("SELECT pg_sleep(60)");
    let begun = [parse, flush, slow, query("SELECT 2"), sync];
    let mut client = in_bytes(&gate);
    client.write_all(&begun.concat()).unwrap();
    hear_until(&mut client, b"1\0\0\0\x04");
    drop(client);
    // Nor where the gate has requested it before.
    let begun = [copy(), message(b'H', b"")];
    let mut client = in_bytes(&gate);
    client.write_all(&begun.concat()).unwrap();
    hear_until(&mut client, b"COPY 1\0");
}

#[test]
fn what_the_gate_says_itself_stands_between_messages() {
    let Some(database) = Database::start("what_the_gate_says_itself") else {
        return;
    };
    database.ask("CREATE TABLE t (i int)");
    let gate = Gate::before(&database, &transactions(1));
    let sync = message(b'S', b"");
    let copy = || [executed("COPY t FROM STDIN"), sync.clone()].concat();
    // A row of two megabytes, which is on its way while the COPY fails.
    let (wrong, long) = (message(b'd', b"x\n"), message(b'd', &[b'1'; 2 << 20]));
    let (first, rest) = long.split_at(1 << 20);
    let mut client = in_bytes(&gate);
    client
        .write_all(&[&copy(), &wrong[..], first].concat())
        .unwrap();
    let end = message(b'c', b"");
    let then = [rest, &end, &sync, &query("SELECT 1"), &message(b'X', b"")];
    thread::sleep(Duration::from_millis(300));
    client.write_all(&then.concat()).unwrap();
    assert_eq!(answers(&mut client), "12GE(22P02)ZTDCZ");
    // Who is gone in the middle of one leaves nothing behind, and no place taken.
    for what in [copy(), query("BEGIN"), vec![]] {
        for cut_off in [message(b'd', &[b'1'; 100]), query("INSERT INTO t SELECT 1")] {
            let mut client = in_bytes(&gate);
            client
                .write_all(&[&what[..], &cut_off[..20]].concat())
                .unwrap();
            thread::sleep(Duration::from_millis(50));
            drop(client);
            assert_eq!(gate.ask(&database, &["SELECT count(*) FROM t"]), "0");
        }
    }
}

#[test]
fn a_goodbye_does_not_overtake_what_waits_for_its_turn() {
    let Some(database) = Database::start("a_goodbye_does_not_overtake") else {
        return;
    };
    database.ask("CREATE TABLE t (i int)");
    let gate = Gate::before(&database, &transactions(1));
    let mut holder = Talk::begin(&mut gate.psql(&database, "postgres"));
    holder.ask("BEGIN");
    let mut clients = [in_bytes(&gate), in_bytes(&gate)];
    clients[0]
        .write_all(&[query("INSERT INTO t VALUES (1)"), message(b'X', b"")].concat())
        .unwrap();
    let cycle = [
        executed("INSERT INTO t VALUES (2)"),
        message(b'S', b""),
        message(b'X', b""),
    ];
    clients[1].write_all(&cycle.concat()).unwrap();
    drop(clients);
    holder.ask("COMMIT");
    until("both are there", || {
        holder.ask("SELECT string_agg(i::text, ' ' ORDER BY i) FROM t") == "1 2"
    });
}

#[test]
fn a_commit_is_not_cancelled_and_what_cannot_commit_is() {
    let Some(database) = Database::start("a_commit_is_not_cancelled") else {
        return;
    };
    database.ask("CREATE TABLE t (i int)");
    let gate = Gate::before(&database, &transactions(1));
    let mut inserts = in_bytes(&gate);
    inserts
        .write_all(&query("INSERT INTO t SELECT 1 FROM pg_sleep(3)"))
        .unwrap();
    let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    until("it sleeps", || database.ask(sleeps) == "1");
    drop(inserts);
    assert_eq!(gate.ask(&database, &["SELECT count(*) FROM t"]), "1");
    let mut sleeper = in_bytes(&gate);
    sleeper
        .write_all(&query(
            "BEGIN; INSERT INTO t VALUES (2); SELECT pg_sleep(600)",
        ))
        .unwrap();
    until("it sleeps", || database.ask(sleeps) == "1");
    drop(sleeper);
    // In a transaction that was begun and cannot end.
    until("it is cancelled", || database.ask(sleeps) == "0");
    assert_eq!(gate.ask(&database, &["SELECT count(*) FROM t"]), "1");
}

#[test]
fn what_the_server_skips_is_not_waited_for() {
    let Some(database) = Database::start("what_the_server_skips") else {
        return;
    };
    let gate = Gate::before(&database, &transactions(1));
    let mut client = in_bytes(&gate);
    let (sync, end) = (message(b'S', b""), message(b'X', b""));
    let call = message(b'F', &[0; 10]);
    let fails = executed("SELECT 1/0");
    let works = [executed("SELECT 7"), sync.clone()].concat();
    let batches = [
        [
            fails.clone(),
            query("SELECT 5"),
            sync.clone(),
            works.clone(),
        ]
        .concat(),
        [
            fails.clone(),
            call,
            message(b'H', b""),
            query("SELECT 5"),
            sync,
            works.clone(),
        ]
        .concat(),
        [executed("SELECT 6"), query("SELECT 1/0"), works].concat(),
    ];
    for batch in &batches {
        client.write_all(batch).unwrap();
    }
    // Another one gets its turn meanwhile.
    assert_eq!(gate.ask(&database, &["SELECT 'another'"]), "another");
    client.write_all(&end).unwrap();
    let failed = "1E(22012)Z12DCZ";
    assert_eq!(
        answers(&mut client),
        format!("{failed}{failed}12DCE(22012)Z12DCZ")
    );
}

#[test]
fn what_is_no_row_ends_a_copy_whatever_it_needs() {
    let Some(database) = Database::start("what_is_no_row_ends_a_copy") else {
        return;
    };
    database.ask("CREATE TABLE t (i int)");
    let gate = Gate::before(&database, &transactions(1));
    let copy = query("COPY t FROM STDIN");
    let sync = message(b'S', b"");
    for (text, about) in [
        ("INSERT INTO t VALUES (1)", b'D'),
        ("SELECT 1", b'D'),
        ("INSERT INTO t VALUES (1)", b'B'),
        ("SELECT 1", b'B'),
    ] {
        let mut client = in_bytes(&gate);
        let parse = message(b'P', format!("named\0{text}\0\0\0").as_bytes());
        client.write_all(&[parse, sync.clone()].concat()).unwrap();
        hear_until(&mut client, b"Z\0\0\0\x05I");
        // Another one's session ends, and with it the server connection that knows the statement.
        let mut other = in_bytes(&gate);
        let end = [copy.clone(), message(b'E', b"\0\0\0\0\0")].concat();
        other.write_all(&end).unwrap();
        assert_eq!(answers(&mut other), "GE(08P01)E(08P01)");
        client.write_all(&copy).unwrap();
        hear_until(&mut client, b"G\0\0\0\x09\0\0\x01\0\0");
        let body: &[u8] = match about {
            b'D' => b"Snamed\0",
            _ => b"\0named\0\0\0\0\0\0\0",
        };
        client.write_all(&message(about, body)).unwrap();
        assert_eq!(answers(&mut client), "E(08P01)E(08P01)", "{text}");
    }
}

#[test]
fn a_batch_may_have_any_number_of_messages() {
    let Some(database) = Database::start("a_batch_may_have_any_number") else {
        return;
    };
    let gate = Gate::before(&database, &transactions(1));
    let mut client = in_bytes(&gate);
    let prepare = message(b'P', b"\0SELECT\0\0\0");
    let run = [message(b'B', &[0; 8]), message(b'E', &[0; 5])].concat();
    let batch = [
        prepare,
        run.repeat(50_000),
        message(b'S', b""),
        message(b'X', b""),
    ]
    .concat();
    let mut writer = client.try_clone().unwrap();
    let writing = std::thread::spawn(move || writer.write_all(&batch).unwrap());
    let said = answers(&mut client);
    writing.join().unwrap();
    assert_eq!(
        said.len(),
        1 + 3 * 50_000 + 1,
        "{}",
        &said[said.len().saturating_sub(40)..]
    );
    assert!(said.starts_with("12DC2DC") && said.ends_with("2DCZ"));
}

#[test]
fn the_servers_own_last_words_are_the_last() {
    let Some(database) = Database::start("the_servers_own_last_words") else {
        return;
    };
    let gate = Gate::before(&database, "");
    let mut client = in_bytes(&gate);
    let times_out = "SET LOCAL idle_in_transaction_session_timeout = 100";
    client
        .write_all(&query(&format!("BEGIN; {times_out}")))
        .unwrap();
    assert_eq!(answers(&mut client), "CCZE(25P03)");
}
