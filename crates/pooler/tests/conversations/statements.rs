//! Prepared statements while tables, types and functions change, and by both of their names: what
//! PostgreSQL says directly is what it has to say through the gate.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::bytes::message;
use crate::support::{Database, Gate, transactions};

/// Messages of one client, up to one that ends a cycle.
type Cycle = Vec<Vec<u8>>;

fn query(text: &str) -> Cycle {
    vec![message(b'Q', format!("{text}\0").as_bytes())]
}

fn parse(name: &str, text: &str) -> Vec<u8> {
    message(b'P', format!("{name}\0{text}\0\0\0").as_bytes())
}

fn describe(name: &str) -> Vec<u8> {
    message(b'D', format!("S{name}\0").as_bytes())
}

fn close(name: &str) -> Vec<u8> {
    message(b'C', format!("S{name}\0").as_bytes())
}

fn bind(name: &str, values: &[&str]) -> Vec<u8> {
    let mut body = format!("\0{name}\0\0\0").into_bytes();
    body.extend((values.len() as i16).to_be_bytes());
    for value in values {
        body.extend((value.len() as i32).to_be_bytes());
        body.extend(value.as_bytes());
    }
    body.extend([0, 0]);
    message(b'B', &body)
}

fn execute() -> Vec<u8> {
    message(b'E', &[0; 5])
}

fn sync() -> Vec<u8> {
    message(b'S', b"")
}

fn prepared(name: &str, text: &str) -> Cycle {
    vec![parse(name, text), describe(name), sync()]
}

fn executed(name: &str, values: &[&str]) -> Cycle {
    vec![bind(name, values), execute(), sync()]
}

/// A client in messages.
struct Client(UnixStream);

impl Client {
    fn connect(socket: &Path) -> Self {
        let mut client = Client(UnixStream::connect(socket).unwrap());
        // What is not answered by then never will be.
        let patience = Some(std::time::Duration::from_secs(20));
        client.0.set_read_timeout(patience).unwrap();
        let startup = b"\0\0\0\x29\0\x03\0\0user\0postgres\0database\0postgres\0\0";
        client.0.write_all(startup).unwrap();
        client.hear();
        client
    }

    fn say(&mut self, cycle: &Cycle) -> String {
        self.0.write_all(&cycle.concat()).unwrap();
        self.hear()
    }

    /// What is said up to ReadyForQuery, a word a message.
    fn hear(&mut self) -> String {
        let mut words = Vec::new();
        loop {
            let mut header = [0; 5];
            self.0.read_exact(&mut header).unwrap();
            let length = i32::from_be_bytes(header[1..].try_into().unwrap()) as usize;
            let mut body = vec![0; length - 4];
            self.0.read_exact(&mut body).unwrap();
            words.push(word(header[0], &body));
            if header[0] == b'Z' {
                return words.join(" ");
            }
        }
    }
}

fn word(tag: u8, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let rest = match tag {
        b'E' => {
            let fields: BTreeMap<char, &str> = text
                .split('\0')
                .filter(|field| !field.is_empty())
                .map(|field| (field.chars().next().unwrap(), &field[1..]))
                .collect();
            // Where it comes from is what some drivers go by.
            let of = |field: char| fields.get(&field).copied().unwrap_or("-");
            // In a failed transaction the gate's Parse is refused where the client's next message
            // would be.
            let from = if of('C') == "25P02" {
                ['V'; 2]
            } else {
                ['F', 'R']
            };
            let all = ['V', 'C', 'M', from[0], from[1]].map(of);
            format!("({})", all.join(" "))
        }
        // Object identifiers of tables and types that were made differ from one to the next.
        b'T' => format!("{}", i16::from_be_bytes([body[0], body[1]])),
        b't' => {
            let types = body[2..].chunks(4);
            let types = types.map(|oid| u32::from_be_bytes(oid.try_into().unwrap()));
            let named = types.map(|oid| {
                if oid < 16384 {
                    oid.to_string()
                } else {
                    "made".into()
                }
            });
            format!("({})", named.collect::<Vec<_>>().join(","))
        }
        b'D' | b'C' | b'Z' => format!("{}", text.escape_debug()),
        _ => String::new(),
    };
    format!("{}{rest}", char::from(tag))
}

/// Plays cycles of clients by their numbers, directly and through gates; says what was heard
/// directly. A client that says nothing leaves.
fn same_as_direct(test: &str, limit: usize, cycles: &[(usize, Cycle)]) -> Option<String> {
    let database = Database::start(test)?;
    let play = |socket: &Path| {
        let mut clients: BTreeMap<usize, Client> = BTreeMap::new();
        let mut heard = Vec::new();
        for (number, cycle) in cycles {
            if cycle.is_empty() {
                clients.remove(number);
                continue;
            }
            let client = clients
                .entry(*number)
                .or_insert_with(|| Client::connect(socket));
            heard.push(format!("{number}: {}", client.say(cycle)));
        }
        drop(clients);
        let clear = "DROP SCHEMA public CASCADE; CREATE SCHEMA public";
        database.ask(clear);
        heard.join("\n")
    };
    let direct = play(&database.folder().join(".s.PGSQL.5432"));
    let session = format!("mode = \"session\"\n{}", transactions(9));
    for config in [transactions(limit), transactions(limit + 2), session] {
        let gate = Gate::before(&database, &config);
        let heard = play(&gate.folder().join(".s.PGSQL.6432"));
        assert_eq!(heard, direct, "{config}");
    }
    Some(direct)
}

/// Two clients inside at once, so that later turns of each may be on the other's connection.
fn both_inside(cycles: &mut Vec<(usize, Cycle)>) {
    for what in ["BEGIN", "SELECT 1", "COMMIT"] {
        cycles.extend([(1, query(what)), (2, query(what))]);
    }
}

#[test]
fn a_new_client_gets_the_types_of_now() {
    let insert = "insert into t(x, y) values ($1, $2)";
    let cycles = [
        (0, query("create table t(x int, y date)")),
        (1, prepared("s", insert)),
        (1, executed("s", &["1", "2020-01-01"])),
        (1, vec![close("s"), sync()]),
        (2, prepared("s", insert)),
        (2, vec![]),
        (
            0,
            query("alter table t alter x type double precision, alter y type timestamptz"),
        ),
        (3, prepared("s", insert)),
        (3, executed("s", &["1.5", "2020-01-02 03:04:05+00"])),
        (1, prepared("s", insert)),
        (1, executed("s", &["2.5", "2020-01-02 03:04:05+00"])),
        (0, query("alter table t alter x type boolean using true")),
        (4, prepared("other", insert)),
        (4, executed("other", &["false", "2020-01-03 00:00:00+00"])),
        (
            0,
            query("select x, extract(epoch from y)::bigint from t order by 2, 1"),
        ),
        // The one who prepared before keeps its types, as PostgreSQL has it.
        (1, executed("s", &["3.5", "2020-01-02 03:04:05+00"])),
    ];
    let Some(heard) = same_as_direct("a_new_client_gets_the_types_of_now", 1, &cycles) else {
        return;
    };
    assert!(heard.contains("42804"), "{heard}");
}

#[test]
fn a_type_that_was_made_anew_is_the_new_one() {
    let make = "create type mood as enum ('sad', 'ok'); create table p (m mood)";
    let insert = "insert into p values ($1) returning m";
    let mut cycles = vec![(0, query(make))];
    for client in 1..3 {
        cycles.push((client, prepared("s", insert)));
        cycles.push((client, executed("s", &["ok"])));
    }
    cycles.push((1, vec![]));
    cycles.push((0, query(&format!("drop table p; drop type mood; {make}"))));
    for client in 3..5 {
        cycles.push((client, vec![parse("s", insert), sync()]));
        cycles.push((client, executed("s", &["sad"])));
    }
    same_as_direct("a_type_that_was_made_anew", 1, &cycles);
}

#[test]
fn a_new_column_is_there_for_new_clients_and_refused_to_old_ones() {
    let all = "select * from t where a = $1";
    let mut cycles = vec![(0, query("create table t(a int); insert into t values (1)"))];
    for client in 1..3 {
        cycles.push((client, prepared("s", all)));
        cycles.push((client, executed("s", &["1"])));
    }
    both_inside(&mut cycles);
    cycles.push((0, query("alter table t add b text default 'new'")));
    for client in 3..6 {
        cycles.push((client, prepared("s", all)));
        cycles.push((client, executed("s", &["1"])));
    }
    for client in [1, 2, 1] {
        cycles.push((client, executed("s", &["1"])));
        cycles.push((client, vec![describe("s"), sync()]));
        cycles.push((client, query("select 1")));
    }
    cycles.push((1, prepared("again", all)));
    cycles.push((1, executed("again", &["1"])));
    let Some(heard) = same_as_direct("a_new_column_is_there", 2, &cycles) else {
        return;
    };
    assert!(heard.contains("0A000"), "{heard}");
}

#[test]
fn a_new_function_is_the_one_that_a_new_client_calls() {
    let make = |kind: &str| {
        query(&format!(
            "create function f({kind}) returns text language sql as $$ select '{kind}' $$"
        ))
    };
    let mut cycles = vec![(0, make("bigint"))];
    for client in 1..4 {
        cycles.push((client, prepared("s", "select f(1)")));
    }
    cycles.push((0, make("int")));
    for client in 4..7 {
        cycles.push((client, prepared("s", "select f(1)")));
        cycles.push((client, executed("s", &[])));
    }
    same_as_direct("a_new_function_is_the_one", 1, &cycles);
}

#[test]
fn names_are_the_clients_in_both_ways_and_in_errors() {
    let long = "n".repeat(63);
    let cycles = [
        (1, prepared("a", "select $1::int")),
        (1, query("execute a(7)")),
        (1, query("explain (costs off) execute a(7)")),
        (1, query("begin; execute a(1); execute a(2); commit")),
        (1, query("prepare a as select 2")),
        (1, vec![parse("a", "select 3"), sync()]),
        (1, executed("a", &["1", "2"])),
        (1, executed("none", &[])),
        (1, executed("sooner_1", &[])),
        (1, vec![describe("sooner_2"), close("sooner_3"), sync()]),
        (1, executed("", &[])),
        (1, query("execute a")),
        (1, query("execute sooner_1(1)")),
        (1, query("deallocate sooner_1")),
        (2, prepared("a", "select 'two'")),
        (2, query("execute a")),
        (1, query("execute a(8)")),
        (1, query("deallocate a")),
        (1, query("execute a(8)")),
        (1, executed("a", &["8"])),
        (1, prepared("a", "select 'anew'")),
        (1, query("deallocate prepare A; select 1")),
        (1, query("deallocate a")),
        (1, prepared("b", "select 1/$1::int")),
        (1, query("deallocate b; select 1/0")),
        (1, executed("b", &["1"])),
        (
            1,
            vec![parse("", "deallocate a"), bind("", &[]), execute(), sync()],
        ),
        (
            2,
            vec![parse("", "execute a"), bind("", &[]), execute(), sync()],
        ),
        (
            2,
            vec![parse("", "deallocate a"), bind("", &[]), execute(), sync()],
        ),
        (2, executed("a", &[])),
        (2, prepared(&format!("{long}x"), "select 63")),
        (2, prepared(&format!("{long}y"), "select 64")),
        (2, executed(&long, &[])),
        (2, prepared("\"q\"", "select 'quoted'")),
        (2, query("execute \"\"\"q\"\"\"")),
        (1, query("begin")),
        (1, prepared("c", "select 'in'")),
        (1, query("execute c; deallocate c; select broken")),
        (1, query("rollback")),
        (1, executed("c", &[])),
        // What only SQL has prepared, the protocol has too.
        (3, query("prepare q(int) as select $1 + 1")),
        (3, executed("q", &["41"])),
        (3, vec![parse("q", "select 1"), sync()]),
        (3, prepared("r", "select 'r'")),
        (3, query("execute r")),
        (3, query("deallocate all")),
        (3, executed("q", &["41"])),
        (3, executed("r", &[])),
    ];
    same_as_direct("names_are_the_clients_in_both_ways", 3, &cycles);
}

#[test]
fn a_failed_transaction_describes_what_returns_no_rows() {
    let mut cycles = vec![(0, query("create table t(a int)"))];
    for (name, text) in [
        ("i", "insert into t values ($1), ($2)"),
        ("r", "release savepoint s"),
        ("q", "select a from t"),
        ("c", "commit"),
    ] {
        cycles.push((1, prepared(name, text)));
    }
    // The other one takes the connection on which they are prepared.
    cycles.push((2, query("begin")));
    cycles.push((1, query("begin")));
    cycles.push((1, query("select broken")));
    for (name, values) in [
        ("i", &["1", "2"][..]),
        ("r", &[]),
        ("q", &[]),
        ("none", &[]),
    ] {
        cycles.push((1, vec![describe(name), sync()]));
        let all = vec![describe(name), bind(name, values), execute(), sync()];
        cycles.push((1, all));
    }
    cycles.push((1, prepared("new", "insert into t values (3)")));
    cycles.push((1, vec![describe("c"), bind("c", &[]), execute(), sync()]));
    cycles.push((1, executed("i", &["1", "2"])));
    cycles.push((2, query("commit")));
    same_as_direct("a_failed_transaction_describes", 2, &cycles);
}

#[test]
fn what_is_prepared_and_fails_leaves_the_session_as_it_would_directly() {
    let mut cycles = vec![(0, query("create table t(a int)"))];
    for client in [1, 2] {
        cycles.push((client, prepared("s", "select a from t")));
    }
    both_inside(&mut cycles);
    cycles.push((0, query("drop table t")));
    for client in [1, 2, 1, 2] {
        cycles.push((client, executed("s", &[])));
        let pipeline = vec![bind("s", &[]), execute(), parse("x", "select 1"), sync()];
        cycles.push((client, pipeline));
        cycles.push((client, query("execute s")));
        cycles.push((client, executed("x", &[])));
    }
    cycles.push((0, query("create table t(a int); insert into t values (5)")));
    for client in [1, 2] {
        cycles.push((client, executed("s", &[])));
        let failed = vec![
            parse("", "select 1/0"),
            bind("", &[]),
            execute(),
            bind("s", &[]),
            sync(),
        ];
        cycles.push((client, failed));
        cycles.push((client, query("begin")));
        cycles.push((client, executed("s", &[])));
        cycles.push((client, query("select 1/0")));
        cycles.push((client, executed("s", &[])));
        cycles.push((client, query("deallocate s")));
        cycles.push((client, query("rollback")));
        cycles.push((client, query("execute s")));
    }
    same_as_direct("what_is_prepared_and_fails", 2, &cycles);
}
