//! A server that says nothing any more, or takes no more sessions, at a moment that no real one can
//! be made to choose.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::scripted_server::{
    DONE, QUERY, READY, STARTUP, WELCOME, fatal, message, read_through, session,
};
use crate::support::{Gate, until};
use tempfile::TempDir;

/// How long a command of the gate's own may take.
const COMMAND_PATIENCE: Duration = Duration::from_secs(10);

/// What it does.
#[derive(Clone, Copy, PartialEq)]
enum Doing {
    /// It answers.
    Everything,
    /// It answers in the sessions that it has, and takes no others (53300).
    Old,
    /// It says nothing.
    Nothing,
}

/// It answers no query while a test has the second lock; the third counts them.
#[derive(Clone)]
struct Server {
    doing: Arc<Mutex<Doing>>,
    answers: Arc<Mutex<()>>,
    queries: Arc<Mutex<usize>>,
}

impl Server {
    fn start(limits: &str) -> (Server, Gate, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        let server = Server {
            doing: Arc::new(Mutex::new(Doing::Everything)),
            answers: Arc::default(),
            queries: Arc::default(),
        };
        let own = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (own, stream) = (own.clone(), stream.unwrap());
                thread::spawn(move || own.serve(stream));
            }
        });
        let gate = Gate::before_folder(folder.path(), &format!("[limits]\n{limits}"));
        (server, gate, folder)
    }

    /// The gate may want no more of this session.
    fn serve(&self, mut stream: UnixStream) -> Option<()> {
        message(&mut stream, 0).ok()?;
        let doing = *self.doing.lock().unwrap();
        match doing {
            Doing::Everything => stream.write_all(WELCOME).ok()?,
            Doing::Old => return stream.write_all(&fatal("53300", "too many clients")).ok(),
            Doing::Nothing => {}
        }
        loop {
            message(&mut stream, 1).ok()?;
            *self.queries.lock().unwrap() += 1;
            drop(self.answers.lock().unwrap());
            if *self.doing.lock().unwrap() != Doing::Nothing {
                stream.write_all(&[DONE, READY].concat()).ok()?;
            }
        }
    }

    fn does(&self, doing: Doing) {
        *self.doing.lock().unwrap() = doing;
    }

    /// Whether it was asked so many queries.
    fn has_heard(&self, queries: usize) -> bool {
        *self.queries.lock().unwrap() == queries
    }
}

#[test]
fn a_client_waits_once_for_a_server_that_falls_silent_however_many_connections_are_idle() {
    let limits = "transactions = 3\nconnections = 3\npatience_seconds = 1\n\
                  server_check_seconds = 1\n";
    let (server, gate, _folder) = Server::start(limits);
    let mut clients = [0, 1, 2].map(|_| session(&gate, STARTUP));
    let before = *server.queries.lock().unwrap();
    let unanswered = server.answers.lock().unwrap();
    for client in &mut clients {
        client.write_all(QUERY).unwrap();
    }
    until("each has a connection", || server.has_heard(before + 3));
    drop(unanswered);
    for client in &mut clients {
        assert_eq!(read_through(client, READY), [DONE, READY].concat());
    }
    // Until they are asked whether they work.
    thread::sleep(Duration::from_millis(1100));
    server.does(Doing::Nothing);
    let begin = Instant::now();
    let [client, ..] = &mut clients;
    client.write_all(QUERY).unwrap();
    let mut told = Vec::new();
    client.read_to_end(&mut told).unwrap();
    assert!(begin.elapsed() < COMMAND_PATIENCE, "{:?}", begin.elapsed());
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains("C08001"), "{told}");
}

#[test]
fn who_waits_for_a_full_server_has_waited_since_it_came() {
    const WAIT: Duration = Duration::from_secs(4);
    let limits = "transactions = 1\nconnections = 2\nquery_wait_seconds = 4\n";
    let (server, gate, _folder) = Server::start(limits);
    let mut holder = session(&gate, STARTUP);
    let unanswered = server.answers.lock().unwrap();
    holder.write_all(QUERY).unwrap();
    until("it has the place", || server.has_heard(1));
    server.does(Doing::Old);
    let begin = Instant::now();
    let mut other = UnixStream::connect(gate.folder().join(".s.PGSQL.6432")).unwrap();
    let startup = b"\0\0\0\x26\0\x03\0\0user\0other\0database\0postgres\0\0";
    other.write_all(startup).unwrap();
    thread::sleep(Duration::from_secs(3));
    let outside = begin.elapsed();
    drop(unanswered);
    let mut told = Vec::new();
    other.read_to_end(&mut told).unwrap();
    let waited = begin.elapsed();
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains("waited 4 s for a turn"), "{told}");
    assert!(
        waited < outside + WAIT,
        "{waited:?} of which {outside:?} outside"
    );
}
