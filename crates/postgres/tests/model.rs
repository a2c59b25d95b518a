//! Clients that share server connections see what each would see on a connection of its own: a
//! model of a server, any conversations, any interleaving of what is sent and answered.
//!
//! The model knows statements, portals, transactions and how an error skips to the next Sync, as
//! PostgreSQL's documentation has them ("Extended Query"). COPY is not in it: what is special about
//! that is tried with a real server.

use bytes::{BufMut, BytesMut};
use proptest::prelude::*;
use sooner_postgres::parameters::Parameters;
use sooner_postgres::rewriter::{Forwarded, Rewriter};
use sooner_postgres::session::{ClientState, ServerState};
use sooner_postgres::statements::Statements;
use sooner_postgres::wire::{Splitter, look_at_backend, look_at_frontend};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// What a client sends.
#[derive(Clone)]
enum Message {
    Parse(&'static str, &'static str),
    Bind(&'static str, &'static str),
    DescribeStatement(&'static str),
    Execute(&'static str),
    CloseStatement(&'static str),
    ClosePortal(&'static str),
    Sync,
    Query(&'static str),
}

/// In one line, so that a conversation can be read.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parse(name, sql) => write!(f, "P:{name}={sql}"),
            Self::Bind(portal, name) => write!(f, "B:{portal}={name}"),
            Self::DescribeStatement(name) => write!(f, "D:{name}"),
            Self::Execute(portal) => write!(f, "E:{portal}"),
            Self::CloseStatement(name) => write!(f, "C:{name}"),
            Self::ClosePortal(name) => write!(f, "c:{name}"),
            Self::Sync => write!(f, "S"),
            Self::Query(sql) => write!(f, "Q:{sql}"),
        }
    }
}

impl Message {
    fn write(&self, out: &mut BytesMut) {
        let text = |out: &mut BytesMut, text: &str| {
            out.put_slice(text.as_bytes());
            out.put_u8(0);
        };
        let about = |out: &mut BytesMut, what: u8, name: &str| {
            out.put_u8(what);
            text(out, name);
        };
        match self {
            Self::Parse(name, sql) => message(out, b'P', |out| {
                text(out, name);
                text(out, sql);
                out.put_u16(0);
            }),
            Self::Bind(portal, name) => message(out, b'B', |out| {
                text(out, portal);
                text(out, name);
                out.put_slice(&[0; 6]);
            }),
            Self::DescribeStatement(name) => message(out, b'D', |out| about(out, b'S', name)),
            Self::Execute(portal) => message(out, b'E', |out| {
                text(out, portal);
                out.put_u32(0);
            }),
            Self::CloseStatement(name) => message(out, b'C', |out| about(out, b'S', name)),
            Self::ClosePortal(name) => message(out, b'C', |out| about(out, b'P', name)),
            Self::Sync => message(out, b'S', |_| {}),
            Self::Query(sql) => message(out, b'Q', |out| text(out, sql)),
        }
    }
}

fn message(out: &mut BytesMut, tag: u8, body: impl FnOnce(&mut BytesMut)) {
    let at = out.len();
    out.put_u8(tag);
    out.put_u32(0);
    body(out);
    let length = (out.len() - at - 1) as u32;
    out[at + 1..at + 5].copy_from_slice(&length.to_be_bytes());
}

/// A session of the model.
#[derive(Default)]
struct Model {
    statements: BTreeMap<Vec<u8>, Vec<u8>>,
    portals: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Whether a transaction was begun.
    is_open: bool,
    has_failed: bool,
    /// Whether everything up to the next Sync is skipped.
    skips: bool,
}

type Failed = &'static str;

impl Model {
    /// Answers one message.
    fn take(&mut self, whole: &[u8], out: &mut BytesMut) {
        let (tag, body) = (whole[0], &whole[5..]);
        let mut texts = body.split(|byte| *byte == 0);
        let mut text = || texts.next().unwrap().to_vec();
        match tag {
            b'S' => return self.end_cycle(out),
            b'H' => return,
            _ if self.skips => return,
            b'Q' => {
                let sql = text();
                self.query(&sql, out);
                return self.end_cycle(out);
            }
            _ => {}
        }
        let done = match tag {
            b'P' => self.parse(text(), text(), out),
            b'B' => self.bind(text(), text(), out),
            b'D' => self.describe(&body[1..body.len() - 1], out),
            b'E' => self.execute(&text(), out),
            b'C' => {
                let name = &body[1..body.len() - 1];
                match body[0] {
                    b'S' => self.statements.remove(name),
                    _ => self.portals.remove(name),
                };
                message(out, b'3', |_| {});
                Ok(())
            }
            other => panic!("{other}"),
        };
        if let Err(code) = done {
            self.fail(code, out);
            self.skips = true;
        }
    }

    fn fail(&mut self, code: Failed, out: &mut BytesMut) {
        self.has_failed |= self.is_open;
        message(out, b'E', |out| {
            out.put_slice(b"SERROR\0C");
            out.put_slice(code.as_bytes());
            out.put_slice(b"\0Mfailed\0\0");
        });
    }

    fn end_cycle(&mut self, out: &mut BytesMut) {
        self.skips = false;
        let status = match (self.is_open, self.has_failed) {
            (false, _) => b'I',
            (true, false) => b'T',
            (true, true) => b'E',
        };
        if status == b'I' {
            self.portals.clear();
        }
        message(out, b'Z', |out| out.put_u8(status));
    }

    fn parse(&mut self, name: Vec<u8>, sql: Vec<u8>, out: &mut BytesMut) -> Result<(), Failed> {
        if sql == b"bad" {
            return Err("42601");
        }
        self.check(&sql)?;
        if !name.is_empty() && self.statements.contains_key(&name) {
            return Err("42P05");
        }
        self.statements.insert(name, sql);
        message(out, b'1', |_| {});
        Ok(())
    }

    /// In a failed transaction only its end is taken, and what does nothing.
    fn check(&self, sql: &[u8]) -> Result<(), Failed> {
        if self.has_failed && sql != b"commit" && !sql.is_empty() {
            Err("25P02")
        } else {
            Ok(())
        }
    }

    fn bind(&mut self, portal: Vec<u8>, name: Vec<u8>, out: &mut BytesMut) -> Result<(), Failed> {
        let sql = self.statements.get(&name).ok_or("26000")?.clone();
        self.check(&sql)?;
        if !portal.is_empty() && self.portals.contains_key(&portal) {
            return Err("42P03");
        }
        self.portals.insert(portal, sql);
        message(out, b'2', |_| {});
        Ok(())
    }

    /// What returns no rows is described in a failed transaction too
    /// (`exec_describe_statement_message` in `postgres.c`).
    fn describe(&self, name: &[u8], out: &mut BytesMut) -> Result<(), Failed> {
        self.statements.get(name).ok_or("26000")?;
        message(out, b't', |out| out.put_u16(0));
        message(out, b'n', |_| {});
        Ok(())
    }

    fn execute(&mut self, portal: &[u8], out: &mut BytesMut) -> Result<(), Failed> {
        let sql = self.portals.get(portal).ok_or("34000")?.clone();
        self.run(&sql, out)
    }

    fn query(&mut self, sql: &[u8], out: &mut BytesMut) {
        self.statements.remove(&b""[..]);
        self.portals.remove(&b""[..]);
        for sql in sql.split(|byte| *byte == b';') {
            let ran = match sql {
                b"bad" => Err("42601"),
                sql => self.run(sql, out),
            };
            if let Err(code) = ran {
                return self.fail(code, out);
            }
        }
    }

    fn run(&mut self, sql: &[u8], out: &mut BytesMut) -> Result<(), Failed> {
        self.check(sql)?;
        let tag = match sql {
            b"fail" => return Err("22012"),
            b"begin" => {
                self.is_open = true;
                "BEGIN"
            }
            b"commit" => {
                let tag = if self.has_failed {
                    "ROLLBACK"
                } else {
                    "COMMIT"
                };
                (self.is_open, self.has_failed) = (false, false);
                self.portals.clear();
                tag
            }
            row => {
                message(out, b'D', |out| out.put_slice(row));
                "SELECT 1"
            }
        };
        message(out, b'C', |out| {
            out.put_slice(tag.as_bytes());
            out.put_u8(0);
        });
        Ok(())
    }
}

/// What a client sees that has a session of its own.
fn alone(script: &[Message]) -> Vec<u8> {
    let (mut model, mut seen) = (Model::default(), BytesMut::new());
    for one in script {
        let mut bytes = BytesMut::new();
        one.write(&mut bytes);
        model.take(&bytes, &mut seen);
    }
    seen.to_vec()
}

struct Client {
    state: ClientState,
    script: VecDeque<Message>,
    seen: BytesMut,
}

struct Connection {
    state: ServerState,
    model: Model,
}

impl Connection {
    fn new() -> Self {
        Self {
            state: ServerState::new(2, Parameters::new()),
            model: Model::default(),
        }
    }
}

/// Plays a turn: what the client sends next, or what the server answers next, as `choices` has it.
/// Whether the connection can be lent again.
fn turn(
    client: &mut Client,
    connection: &mut Connection,
    all: &RefCell<Statements>,
    choices: &mut impl Iterator<Item = bool>,
) -> bool {
    let mut rewriter = Rewriter::new(&mut client.state, &mut connection.state, all);
    let mut to_server = BytesMut::new();
    let (mut has_begun, mut is_held) = (false, false);
    loop {
        if has_begun && rewriter.is_over() && to_server.is_empty() {
            break;
        }
        let sends = to_server.is_empty() || (!is_held && choices.next().unwrap_or(true));
        let mut bytes = BytesMut::new();
        if let Some(next) = client.script.front() {
            next.write(&mut bytes);
        }
        let mut splitter = Splitter::new(look_at_frontend);
        let next = splitter.next(&bytes).unwrap();
        if sends
            && let Some(piece) = next.filter(|piece| !rewriter.must_wait(piece, &mut to_server))
        {
            is_held = rewriter.from_client(&piece, &mut to_server).unwrap() == Forwarded::NotYet;
            if !is_held {
                client.script.pop_front();
            }
            has_begun = true;
        } else if to_server.is_empty() {
            return false;
        } else {
            let length = 1 + u32::from_be_bytes(to_server[1..5].try_into().unwrap()) as usize;
            let asked = to_server.split_to(length);
            is_held = false;
            let mut answers = BytesMut::new();
            connection.model.take(&asked, &mut answers);

            while !answers.is_empty() {
                let piece = Splitter::new(look_at_backend)
                    .next(&answers)
                    .unwrap()
                    .unwrap();
                let length = piece.bytes.len();
                rewriter.from_server(&piece, &mut client.seen).unwrap();
                rewriter.follow_up(&mut to_server);
                let _ = answers.split_to(length);
            }
        }
    }
    !connection.state.is_tainted
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "a", "b", "c"])
}

fn sql() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "one", "two", "three", "begin", "commit", "fail", "bad",
    ])
}

fn any_message() -> impl Strategy<Value = Message> {
    let query = prop::sample::select(vec![
        "one",
        "begin",
        "commit",
        "fail",
        "one;bad;two",
        "begin;two",
    ]);
    prop_oneof![
        4 => (name(), sql()).prop_map(|(name, sql)| Message::Parse(name, sql)),
        4 => (name(), name()).prop_map(|(portal, name)| Message::Bind(portal, name)),
        1 => name().prop_map(Message::DescribeStatement),
        3 => name().prop_map(Message::Execute),
        2 => name().prop_map(Message::CloseStatement),
        1 => name().prop_map(Message::ClosePortal),
        4 => Just(Message::Sync),
        1 => query.prop_map(Message::Query),
    ]
}

/// A conversation in which each cycle ends. The statement without a name is prepared
/// where it is used: which one it is after a failure is not kept track of.
fn script() -> impl Strategy<Value = Vec<Message>> {
    prop::collection::vec(any_message(), 0..60).prop_map(|messages| {
        let mut script = Vec::new();
        for message in messages {
            match message {
                Message::Bind(_, "") | Message::DescribeStatement("") => {
                    script.push(Message::Parse("", "one"));
                }
                _ => {}
            }
            script.push(message);
        }
        script.push(Message::Sync);
        script
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn whoever_shares_connections_sees_what_it_would_see_alone(
        scripts in prop::collection::vec(script(), 1..4),
        order in prop::collection::vec((0usize..4, 0usize..2), 1..200),
        choices in prop::collection::vec(any::<bool>(), 0..400),
    ) {
        let all = RefCell::new(Statements::default());
        let mut clients: Vec<Client> = scripts
            .iter()
            .map(|script| Client {
                state: ClientState::default(),
                script: script.clone().into(),
                seen: BytesMut::new(),
            })
            .collect();
        let mut connections = [Connection::new(), Connection::new()];
        let mut choices = choices.into_iter().cycle();
        // Every client comes to an end.
        let rest = (0..).map(|number: usize| (number, number / 3 % 2));
        for (client, connection) in order.into_iter().chain(rest) {
            if clients.iter().all(|client| client.script.is_empty()) {
                break;
            }
            let count = clients.len();
            let client = &mut clients[client % count];
            if client.script.is_empty() {
                // One that still has something to say.
                continue;
            }
            let connection = &mut connections[connection];
            if !turn(client, connection, &all, &mut choices) {
                *connection = Connection::new();
            }
        }
        for (client, script) in clients.iter().zip(&scripts) {
            prop_assert_eq!(shown(&client.seen), shown(&alone(script)));
        }
    }
}

/// Tags and codes: what is easily compared by eye. Where a name is taken and the transaction has
/// failed, which of the two is said first differs.
fn shown(mut bytes: &[u8]) -> String {
    let mut text = String::new();
    while !bytes.is_empty() {
        let length = 1 + u32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize;
        let (one, rest) = bytes.split_at(length);
        text += &format!(
            "{}{} ",
            char::from(one[0]),
            String::from_utf8_lossy(&one[5..])
        );
        bytes = rest;
    }
    text.replace('\0', ".")
        .replace("25P02", "42601")
        .replace("42P05", "42601")
}
