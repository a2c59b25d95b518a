//! Sessions in bytes, with PostgreSQL itself and then through the gate: both answer the same,
//! whatever the encoding.

mod encodings;
mod positions;
mod startup_packets;

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::bytes::message;
use crate::support::{Database, GATE_PORT, Gate, transactions};
use sooner_testbed::postgres::DATABASE_PORT;

const PATIENCE: Duration = Duration::from_secs(20);

/// A parameter of a startup packet.
type Parameter<'a> = (&'a str, &'a [u8]);
/// What a client sends at once, by its number.
type Step = (usize, Vec<Vec<u8>>);

/// A client's session.
struct Session(UnixStream);

fn query(sql: impl AsRef<[u8]>) -> Vec<u8> {
    message(b'Q', &[sql.as_ref(), b"\0"].concat())
}

fn parse(name: &[u8], sql: impl AsRef<[u8]>) -> Vec<u8> {
    message(b'P', &[name, b"\0", sql.as_ref(), b"\0\0\0"].concat())
}

fn bind(name: &[u8]) -> Vec<u8> {
    message(b'B', &[b"\0", name, b"\0\0\0\0\0\0\0"].concat())
}

fn execute() -> Vec<u8> {
    message(b'E', b"\0\0\0\0\0")
}

fn sync() -> Vec<u8> {
    message(b'S', b"")
}

/// A statement that is bound and executed, in a cycle of its own.
fn run(name: &[u8]) -> Vec<Vec<u8>> {
    vec![bind(name), execute(), sync()]
}

impl Session {
    /// One that asks for these parameters, and what it is told at its beginning.
    fn begin(folder: &Path, port: u16, parameters: &[Parameter<'_>]) -> (Self, String) {
        let mut session = Self::open(folder, port, parameters);
        let told = session.hear(1);
        (session, told)
    }

    /// One that has sent its startup packet.
    fn open(folder: &Path, port: u16, parameters: &[Parameter<'_>]) -> Self {
        let socket = UnixStream::connect(folder.join(format!(".s.PGSQL.{port}"))).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut body = vec![0, 3, 0, 0];
        let usual: [Parameter<'_>; 2] = [("user", b"postgres"), ("database", b"postgres")];
        let is_own = |name: &str| parameters.iter().any(|(own, _)| *own == name);
        let usual = usual.iter().filter(|(name, _)| !is_own(name));
        for (name, value) in usual.chain(parameters) {
            body.extend([name.as_bytes(), b"\0", value, b"\0"].concat());
        }
        body.push(0);
        let mut session = Self(socket);
        session.send(&[message(b' ', &body)[1..].to_vec()]);
        session
    }

    fn send(&mut self, messages: &[Vec<u8>]) {
        self.0.write_all(&messages.concat()).unwrap();
    }

    /// Sends all of them at once; what is answered up to the last ReadyForQuery, or the end.
    fn say(&mut self, messages: &[Vec<u8>]) -> String {
        self.send(messages);
        let ends = |message: &&Vec<u8>| matches!(message[0], b'S' | b'Q');
        self.hear(messages.iter().filter(ends).count())
    }

    fn hear(&mut self, cycles: usize) -> String {
        let (mut heard, mut ready) = (Vec::new(), 0);
        while ready < cycles {
            let Some((tag, body)) = self.next() else {
                heard.push("(end)".into());
                break;
            };
            ready += usize::from(tag == b'Z');
            heard.extend(answer(tag, &body));
        }
        heard.join(" ")
    }

    fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.0.read_exact(&mut head).ok()?;
        let length = i32::from_be_bytes(head[1..].try_into().unwrap());
        let mut body = vec![0; length as usize - 4];
        self.0.read_exact(&mut body).unwrap();
        Some((head[0], body))
    }
}

/// Bytes beyond ASCII as `<e9>`, and no zeros.
fn text(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes.iter().filter(|byte| **byte != 0) {
        match byte {
            b' '..=b'~' => text.push(char::from(*byte)),
            byte => write!(text, "<{byte:02x}>").unwrap(),
        }
    }
    text
}

/// An answer as a word: rows with their values, errors with what they say and where.
fn answer(tag: u8, body: &[u8]) -> Option<String> {
    Some(match tag {
        b'S' | b'K' | b'N' | b'A' => return None,
        b'Z' | b'C' => format!("{}:{}", char::from(tag), text(body)),
        b'D' => format!("D:{}", text(&body[2..])),
        b'E' => {
            let fields = body.split(|byte| *byte == 0).filter_map(|field| {
                let (kind, value) = field.split_first()?;
                let place = if *kind == b'P' { "@" } else { "" };
                b"VCMP"
                    .contains(kind)
                    .then(|| format!("{place}{}", text(value)))
            });
            format!("E:{}", fields.collect::<Vec<_>>().join("/"))
        }
        _ => char::from(tag).to_string(),
    })
}

/// A database, and a gate with a place for two transactions.
struct Both {
    database: Database,
    gate: Gate,
}

impl Both {
    fn start(name: &str) -> Option<Self> {
        let database = Database::start(name)?;
        let gate = Gate::before(&database, &transactions(2));
        Some(Self { database, gate })
    }

    fn places(&self) -> [(&Path, u16); 2] {
        [
            (self.database.folder(), DATABASE_PORT),
            (self.gate.folder(), GATE_PORT),
        ]
    }

    /// What a client with these parameters is told at its beginning, and then answered: by the
    /// database, then by the gate.
    fn tell(&self, parameters: &[Parameter<'_>], messages: &[Vec<u8>]) -> [String; 2] {
        self.places().map(|(folder, port)| {
            let (mut session, told) = Session::begin(folder, port, parameters);
            if told.contains("E:") {
                return told;
            }
            format!("{told} {}", session.say(messages))
        })
    }

    /// Two clients get the same answers from both; what these are.
    fn compare(&self, steps: &[Step]) -> Vec<String> {
        let [straight, through] = self.places().map(|(folder, port)| {
            let mut sessions = [(); 2].map(|()| Session::begin(folder, port, &[]).0);
            let steps = steps.iter();
            let answers = steps.map(|(client, messages)| sessions[*client].say(messages));
            answers.collect::<Vec<_>>()
        });
        for ((step, expected), found) in steps.iter().zip(&straight).zip(&through) {
            let sent: Vec<String> = step.1.iter().map(|message| text(message)).collect();
            assert_eq!(found, expected, "client {} sends {sent:?}", step.0);
        }
        straight
    }
}
