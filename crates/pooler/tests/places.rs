//! What keeps a client's place and its server connection, and what does not: clients in bytes, a
//! real PostgreSQL, the gate between them.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::bytes::{message, query, session_with};
use crate::support::{Database, Gate, transactions};

/// More than the gate keeps of a statement.
const LONG_BYTES: usize = 300 << 10;
/// What is not answered by then waits for a place.
const MOMENT: Duration = Duration::from_millis(300);
/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(20);

fn parse(name: &str, sql: &str) -> Vec<u8> {
    message(b'P', format!("{name}\0{sql}\0\0\0").as_bytes())
}

fn bind(name: &str) -> Vec<u8> {
    message(b'B', format!("\0{name}\0\0\0\0\0\0\0").as_bytes())
}

fn describe(name: &str) -> Vec<u8> {
    message(b'D', format!("S{name}\0").as_bytes())
}

fn close(name: &str) -> Vec<u8> {
    message(b'C', format!("S{name}\0").as_bytes())
}

fn execute() -> Vec<u8> {
    message(b'E', &[0; 5])
}

fn sync() -> Vec<u8> {
    message(b'S', b"")
}

fn executed(name: &str) -> [Vec<u8>; 3] {
    [bind(name), execute(), sync()]
}

fn long_insert() -> String {
    format!("INSERT INTO t VALUES ('{}')", "x".repeat(LONG_BYTES))
}

struct Client {
    stream: UnixStream,
    last_value: String,
}

impl Client {
    fn connect(gate: &Gate) -> Self {
        Self::connect_with(gate, "")
    }

    /// With this besides in its first packet: names and values that end with zeros.
    fn connect_with(gate: &Gate, besides: &str) -> Self {
        Self {
            stream: session_with(gate, "postgres", besides).0,
            last_value: String::new(),
        }
    }

    fn send(&mut self, messages: &[Vec<u8>]) {
        self.stream.write_all(&messages.concat()).unwrap();
    }

    /// Sends these, and hears the end of a cycle.
    fn say(&mut self, messages: &[Vec<u8>]) -> String {
        self.send(messages);
        self.hear(b'Z')
    }

    /// The types of what comes up to this type or the end, with the SQLSTATE of errors.
    fn hear(&mut self, last: u8) -> String {
        let mut types = String::new();
        let mut head = [0; 5];
        loop {
            match self.stream.read_exact(&mut head) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return types,
                read => read.unwrap(),
            }
            let length = i32::from_be_bytes(head[1..].try_into().unwrap());
            let mut body = vec![0; length as usize - 4];
            self.stream.read_exact(&mut body).unwrap();
            types.push(char::from(head[0]));
            match head[0] {
                b'D' => self.last_value = String::from_utf8(body[6..].to_vec()).unwrap(),
                b'E' => {
                    let mut fields = body.split(|byte| *byte == 0);
                    let code = fields.find_map(|field| field.strip_prefix(b"C"));
                    types += &format!("({})", String::from_utf8_lossy(code.unwrap()));
                }
                _ => {}
            }
            if head[0] == last {
                return types;
            }
        }
    }

    /// The number of its server process.
    fn process(&mut self) -> String {
        assert_eq!(self.say(&[query("SELECT pg_backend_pid()")]), "TDCZ");
        self.last_value.clone()
    }

    /// Whether a query of its waits for a place; it is to be heard later.
    fn waits(&mut self) -> bool {
        self.send(&[query("SELECT 1")]);
        self.stream.set_read_timeout(Some(MOMENT)).unwrap();
        let read = self.stream.read(&mut [0]);
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}

/// A gate with one place before a database with a table, and two clients.
fn start(test: &str, config: &str) -> Option<(Database, Gate, [Client; 2])> {
    let database = Database::start(test)?;
    database.ask("CREATE TABLE t (s text)");
    let gate = Gate::before(&database, &format!("{}{config}", transactions(1)));
    let clients = [(); 2].map(|()| Client::connect(&gate));
    Some((database, gate, clients))
}

const ANSWERED: &str = "TDCZ";

#[test]
fn a_long_statement_that_was_executed_keeps_no_place() {
    let started = start("a_long_statement_that_was_executed", "");
    let Some((database, _gate, [mut one, mut other])) = started else {
        return;
    };
    let batch = [&[parse("", &long_insert())][..], &executed("")].concat();
    assert_eq!(one.say(&batch), "12CZ");
    assert_eq!(other.say(&[query("SELECT 1")]), ANSWERED);
    assert_eq!(one.say(&batch), "12CZ");
    // It is no other client's, and not the client's own any more.
    assert_eq!(other.say(&executed("")), "E(26000)Z");
    assert_eq!(one.say(&executed("")), "E(26000)Z");
    assert_eq!(database.ask("SELECT count(*) FROM t"), "2");
    // What keeps its connection has it there, as in PostgreSQL.
    let config = format!("mode = \"session\"\n{}", transactions(1));
    let gate = Gate::before(&database, &config);
    let mut client = Client::connect(&gate);
    assert_eq!(client.say(&batch), "12CZ");
    assert_eq!(client.say(&executed("")), "2CZ");
}

#[test]
fn a_long_statement_keeps_its_place_until_it_is_bound() {
    let started = start("a_long_statement_keeps_its_place", "");
    let Some((database, _gate, [mut one, mut other])) = started else {
        return;
    };
    // As drivers do that ask for the types first.
    let prepares = [parse("", &long_insert()), describe(""), sync()];
    assert_eq!(one.say(&prepares), "1tnZ");
    assert!(other.waits());
    assert_eq!(one.say(&executed("")), "2CZ");
    assert_eq!(other.hear(b'Z'), ANSWERED);
    assert_eq!(database.ask("SELECT count(*) FROM t"), "1");
    // Another one takes its place.
    assert_eq!(one.say(&prepares), "1tnZ");
    assert!(other.waits());
    assert_eq!(one.say(&[parse("", "SELECT 1"), sync()]), "1Z");
    assert_eq!(other.hear(b'Z'), ANSWERED);
    // One that was refused is not there.
    let broken = parse("", &format!("broken {}", long_insert()));
    assert_eq!(one.say(&[broken, sync()]), "E(42601)Z");
    assert_eq!(other.say(&[query("SELECT 1")]), ANSWERED);
}

/// The gate's question would take the place of the statement.
#[test]
fn what_a_turn_has_changed_is_asked_when_its_long_statement_was_bound() {
    let started = start("what_a_turn_has_changed_is_asked", "");
    let Some((database, gate, [mut one, mut other])) = started else {
        return;
    };
    let prepares = [parse("", &long_insert()), describe(""), sync()];
    let sets = [parse("", "SET work_mem = '9MB'"), bind(""), execute()];
    assert_eq!(one.say(&[&sets[..], &prepares].concat()), "12C1tnZ");
    assert!(other.waits());
    assert_eq!(one.say(&executed("")), "2CZ");
    assert_eq!(other.hear(b'Z'), ANSWERED);
    for (client, is_own) in [(&mut other, false), (&mut one, true)] {
        assert_eq!(client.say(&[query("SHOW work_mem")]), ANSWERED);
        assert_eq!(client.last_value == "9MB", is_own);
    }
    // Each turn of such a client may leave a temporary table behind.
    let path = "options\0-c search_path=pg_temp,public\0";
    let mut third = Client::connect_with(&gate, path);
    assert_eq!(third.say(&prepares), "1tnZ");
    assert!(other.waits());
    assert_eq!(third.say(&executed("")), "2CZ");
    assert_eq!(other.hear(b'Z'), ANSWERED);
    assert_eq!(database.ask("SELECT count(*) FROM t"), "2");
}

#[test]
fn statements_with_names_keep_a_place_where_they_are_too_much_and_only_until_they_are_closed() {
    let started = start("statements_with_names_keep_a_place", "");
    let Some((_database, _gate, [mut one, mut other])) = started else {
        return;
    };
    let text = |number: u32| format!("SELECT {number} /* {} */", "x".repeat(10_000));
    let many = (0..250).map(|number| parse(&format!("s{number}"), &text(number)));
    let many: Vec<Vec<u8>> = many.chain([sync()]).collect();
    assert_eq!(one.say(&many), "1".repeat(250) + "Z");
    assert_eq!(other.say(&[query("SELECT 1")]), ANSWERED);
    let prepares = [parse("long", &long_insert()), sync()];
    for (closes, heard) in [
        (vec![close("long"), sync()], "3Z"),
        (vec![query("DEALLOCATE long")], "CZ"),
    ] {
        assert_eq!(one.say(&prepares), "1Z");
        assert!(other.waits());
        assert_eq!(one.say(&executed("long")), "2CZ");
        assert_eq!(one.say(&closes), heard);
        assert_eq!(other.hear(b'Z'), ANSWERED);
    }
    let broken = parse("long", &format!("broken {}", long_insert()));
    assert_eq!(one.say(&[broken, sync()]), "E(42601)Z");
    assert_eq!(other.say(&[query("SELECT 1")]), ANSWERED);
    // Those that were kept are still there.
    assert_eq!(one.say(&executed("s7")), "2DCZ");
}

#[test]
fn a_clients_own_mistake_closes_no_server_connection() {
    let started = start("a_clients_own_mistake_closes_no", "");
    let Some((_database, _gate, [mut one, _])) = started else {
        return;
    };
    assert_eq!(one.say(&[parse("a", "SELECT 1"), sync()]), "1Z");
    let process = one.process();
    for (mistake, heard) in [
        (vec![bind("none"), sync()], "E(26000)Z"),
        (vec![describe("none"), sync()], "E(26000)Z"),
        (vec![bind(""), sync()], "E(26000)Z"),
        (vec![parse("a", "SELECT 2"), sync()], "E(42P05)Z"),
        (vec![query("EXECUTE none")], "E(26000)Z"),
        (vec![query("DEALLOCATE none")], "E(26000)Z"),
        (vec![query("PREPARE a AS SELECT 2")], "E(42P05)Z"),
    ] {
        assert_eq!(one.say(&mistake), heard);
        let sent = String::from_utf8_lossy(&mistake[0]);
        assert_eq!(one.process(), process, "{sent:?}");
    }
    // The gate does not see this, and believes that the statement is there.
    let hidden = "DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$";
    assert_eq!(one.say(&[query(hidden)]), "CZ");
    assert_eq!(one.say(&[bind("a"), sync()]), "E(26000)Z");
    assert_ne!(one.process(), process);
    assert_eq!(one.say(&executed("a")), "2DCZ");
}

#[test]
fn a_batch_without_its_end_can_be_ended() {
    let started = start("a_batch_without_its_end", "idle_in_transaction = 1\n");
    let Some((_database, _gate, [mut one, mut other])) = started else {
        return;
    };
    // As drivers do that read some rows of a portal, and later perhaps more.
    let flush = message(b'H', b"");
    let rows = "SELECT generate_series(1, 9)";
    let some = message(b'E', b"\0\0\0\0\x02");
    one.send(&[parse("", rows), bind(""), some, flush]);
    assert_eq!(one.hear(b's'), "12DDs");
    // It waits for the only place, which it gets.
    assert_eq!(other.say(&[query("SELECT 1")]), ANSWERED);
    assert_eq!(one.hear(b'Z'), "E(25P03)");
}
