//! Sessions message by message, with PostgreSQL itself and then through the gate: both answer the
//! same.

mod contexts;
mod first_packets;
mod idle_sessions;
mod logins;
mod same_settings;
mod settings;
mod statements;
mod texts;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::message;
use crate::support::{Database, Gate, transactions};

/// A client that waits for longer waits for another that is tied.
const PATIENCE: Duration = Duration::from_secs(20);

/// A session in bytes.
struct Session(UnixStream);

/// A word of a script as a message: `Q:sql`, `P:name=sql`, `B:portal=statement`, `b:` the same with
/// a parameter too many, `E:portal`, `D:statement`, `C:statement`, `c:portal`, `S`.
fn message_of(word: &str) -> Vec<u8> {
    let (tag, rest) = word.split_once(':').unwrap_or((word, ""));
    let pair = |end: &str| {
        let (one, other) = rest.split_once('=').unwrap();
        format!("{one}\0{other}\0{end}").into_bytes()
    };
    match tag {
        "Q" => message(b'Q', format!("{rest}\0").as_bytes()),
        "P" => message(b'P', &pair("\0\0")),
        "B" => message(b'B', &pair("\0\0\0\0\0\0")),
        "b" => message(b'B', &pair("\0\0\0\x01\0\0\0\x015\0\0")),
        "E" => message(b'E', format!("{rest}\0\0\0\0\0").as_bytes()),
        "D" => message(b'D', format!("S{rest}\0").as_bytes()),
        "C" => message(b'C', format!("S{rest}\0").as_bytes()),
        "c" => message(b'C', format!("P{rest}\0").as_bytes()),
        "S" => message(b'S', b""),
        _ => panic!("{word}"),
    }
}

impl Session {
    /// One that asks for these parameters, and what it is told at its beginning.
    fn begin(folder: &Path, port: u16, parameters: &[(&str, &str)]) -> (Self, String) {
        let mut session = Self::open(folder, port, parameters);
        let told = session.hear(1);
        (session, told)
    }

    /// One that has sent its first packet.
    fn open(folder: &Path, port: u16, parameters: &[(&str, &str)]) -> Self {
        let socket = UnixStream::connect(folder.join(format!(".s.PGSQL.{port}"))).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut body = vec![0, 3, 0, 0];
        let usual = [("user", "postgres"), ("database", "postgres")];
        let is_own = |name: &str| parameters.iter().any(|(own, _)| *own == name);
        let usual = usual.iter().filter(|(name, _)| !is_own(name));
        for (name, value) in usual.chain(parameters) {
            body.extend(format!("{name}\0{value}\0").as_bytes());
        }
        body.push(0);
        let mut session = Self(socket);
        let packet = message(b' ', &body);
        session.0.write_all(&packet[1..]).unwrap();
        session
    }

    /// Sends all of them at once; what is answered up to the last ReadyForQuery, or the end.
    fn say(&mut self, words: &[&str]) -> String {
        let all: Vec<u8> = words.iter().copied().flat_map(message_of).collect();
        self.0.write_all(&all).unwrap();
        let ends = |word: &&&str| **word == "S" || word.starts_with("Q:");
        self.hear(words.iter().filter(ends).count())
    }

    fn hear(&mut self, cycles: usize) -> String {
        let (mut heard, mut ready) = (Vec::new(), 0);
        while ready < cycles {
            let mut head = [0; 5];
            if let Err(error) = self.0.read_exact(&mut head) {
                heard.push(format!("({:?})", error.kind()));
                break;
            }
            let length = i32::from_be_bytes(head[1..].try_into().unwrap());
            let mut body = vec![0; length as usize - 4];
            self.0.read_exact(&mut body).unwrap();
            ready += usize::from(head[0] == b'Z');
            heard.extend(answer(head[0], &body));
        }
        heard.join(" ")
    }
}

/// An answer as a word: rows with their values, errors with what they say.
fn answer(tag: u8, body: &[u8]) -> Option<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\0', "");
    Some(match tag {
        b'S' | b'K' | b'N' | b'A' => return None,
        b'Z' | b'C' => format!("{}:{}", char::from(tag), text(body)),
        b'D' => format!("D:{}", text(&body[2..])),
        b'E' => {
            let fields = body.split(|byte| *byte == 0).filter_map(|field| {
                let (kind, value) = field.split_first()?;
                b"VCM".contains(kind).then(|| text(value))
            });
            format!("E:{}", fields.collect::<Vec<_>>().join("/"))
        }
        _ => char::from(tag).to_string(),
    })
}

/// Plays a script, in which each step is what a client sends at once; what each step is answered.
fn play(folder: &Path, port: u16, clients: &Clients<'_>, script: &[Step<'_>]) -> Vec<String> {
    let begun = clients.iter().map(|own| Session::begin(folder, port, own));
    let (mut sessions, _): (Vec<Session>, Vec<String>) = begun.unzip();
    let steps = script.iter();
    steps
        .map(|(client, words)| sessions[*client].say(words))
        .collect()
}

/// The parameters of each client's first packet.
type Clients<'a> = [&'a [(&'a str, &'a str)]];
type Step<'a> = (usize, &'a [&'a str]);

const TWO: &Clients<'_> = &[&[], &[]];

/// A database that every script leaves as it was, and a gate with one more place than tied clients.
struct Both {
    database: Database,
    gate: Gate,
}

impl Both {
    fn start(name: &str) -> Option<Self> {
        Self::start_with(name, "CREATE ROLE ann")
    }

    /// The database begins with this command.
    fn start_with(name: &str, command: &str) -> Option<Self> {
        let database = Database::start(name)?;
        database.ask(command);
        let gate = Gate::before(&database, &transactions(2));
        Some(Self { database, gate })
    }

    fn compare(&self, clients: &Clients<'_>, script: &[Step<'_>]) {
        let straight = play(self.database.folder(), 5432, clients, script);
        let through = play(self.gate.folder(), 6432, clients, script);
        for ((step, expected), found) in script.iter().zip(&straight).zip(&through) {
            assert_eq!(found, expected, "{step:?} of {script:?}");
        }
    }
}

#[test]
fn what_execute_runs_is_followed() {
    let Some(both) = Both::start("what_execute_runs_is_followed") else {
        return;
    };
    let run_by: [&[&str]; 4] = [
        &["Q:execute l"],
        &["P:=execute l", "B:=", "E:", "S"],
        &["P:k=execute l", "B:=k", "E:", "c:", "S"],
        &["Q:select 1; execute l; deallocate l"],
    ];
    for (prepared, look) in [
        ("set role ann", "Q:select current_user"),
        ("set search_path='s2'", "Q:show search_path"),
        (
            "select set_config('work_mem','11MB',false)",
            "Q:show work_mem",
        ),
        ("listen zz", "Q:select pg_listening_channels()"),
        (
            "create temp table leak as select 1 as secret",
            "Q:select * from leak",
        ),
        (
            "select pg_advisory_lock(78)",
            "Q:select pg_try_advisory_lock(78), pg_advisory_unlock_all()",
        ),
    ] {
        let prepare = format!("P:l={prepared}");
        for run in run_by {
            both.compare(
                TWO,
                &[
                    (0, &[&prepare, "S"]),
                    (0, run),
                    (1, &[look]),
                    (0, &[look]),
                    (0, &["Q:select pg_advisory_unlock_all()"]),
                ],
            );
        }
    }
    let memory = "P:l=select set_config('work_mem','13MB',false)";
    let show = "Q:show work_mem";
    for run in [
        "Q:explain (analyze, costs off, timing off, summary off) execute l",
        "Q:begin; create temp table t on commit drop as execute l; commit",
    ] {
        both.compare(
            TWO,
            &[
                (0, &[memory, "S"]),
                (0, &[run]),
                (1, &[show]),
                (1, &["Q:set work_mem = '2MB'"]),
                (0, &[show]),
            ],
        );
    }
}

#[test]
fn what_execute_runs_of_sqls_own_statements_is_followed() {
    let Some(both) = Both::start("what_execute_runs_of_sqls_own") else {
        return;
    };
    let show = "Q:show work_mem";
    for (prepare, run) in [
        (
            "prepare st as select set_config('work_mem','11MB',false)",
            "execute st",
        ),
        (
            "prepare \"S t\"(text) as select set_config('work_mem',$1,false)",
            "execute \"S t\"('11MB')",
        ),
    ] {
        let name = run.split(' ').skip(1).collect::<Vec<_>>().join(" ");
        let name = name.split('(').next().unwrap();
        let [simple, run, gone] = [
            format!("Q:{prepare}"),
            format!("Q:{run}"),
            format!("Q:deallocate {name}"),
        ];
        let extended = format!("P:={prepare}");
        for prepare in [&[&simple[..]][..], &[&extended, "B:=", "E:", "S"]] {
            both.compare(
                TWO,
                &[
                    (0, prepare),
                    (0, &[&run]),
                    (0, &[&gone]),
                    (1, &[show]),
                    (0, &[show]),
                    (1, &["Q:set work_mem = '3MB'"]),
                    (0, &[show]),
                ],
            );
        }
    }
    // What the protocol prepares beside them has its own name on the server, too.
    both.compare(
        TWO,
        &[
            (0, &["Q:prepare st as select 1"]),
            (0, &["P:l=set role ann", "S"]),
            (0, &["B:=l", "E:", "S"]),
            (0, &["Q:deallocate st"]),
            (0, &["C:l", "S"]),
            (0, &["Q:deallocate all"]),
            (1, &["Q:select current_user"]),
            (0, &["Q:select current_user"]),
        ],
    );
}
