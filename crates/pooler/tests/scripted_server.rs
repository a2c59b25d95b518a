//! What a server says at a moment that no real one can be made to choose.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

use crate::support::{Gate, transactions};
use tempfile::TempDir;

pub(crate) const STARTUP: &[u8] = b"\0\0\0\x29\0\x03\0\0user\0postgres\0database\0postgres\0\0";
pub(crate) const QUERY: &[u8] = b"Q\0\0\0\x0dSELECT 1\0";
pub(crate) const READY: &[u8] = b"Z\0\0\0\x05I";
pub(crate) const DONE: &[u8] = b"C\0\0\0\x0dSELECT 1\0";

/// Of a new session that is ready.
pub(crate) const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\x07\0\0\0\x07Z\0\0\0\x05I";

/// FATAL, of a server session.
pub(crate) fn fatal(sqlstate: &str, words: &str) -> Vec<u8> {
    let fields = format!("SFATAL\0VFATAL\0C{sqlstate}\0M{words}\0\0");
    let length = (4 + fields.len() as i32).to_be_bytes();
    [b"E", &length[..], fields.as_bytes()].concat()
}

/// An operator has ended it.
fn ended() -> Vec<u8> {
    fatal("57P01", "terminating connection")
}

/// What a server answers to the query that is the second number's of the session that is the
/// first's, counted from 0; nothing ends the session.
type Script = fn(usize, usize) -> Vec<u8>;

fn serve(listener: &UnixListener, script: Script) {
    for (session, stream) in listener.incoming().enumerate() {
        let mut stream = stream.unwrap();
        message(&mut stream, 0).unwrap();
        stream.write_all(WELCOME).unwrap();
        // The gate may want no more of this session.
        for query in 0.. {
            if message(&mut stream, 1).is_err() {
                break;
            }
            let answer = script(session, query);
            if answer.is_empty() || stream.write_all(&answer).is_err() {
                break;
            }
        }
    }
}

/// Reads a message with its length behind so many bytes.
pub(crate) fn message(stream: &mut UnixStream, tag_bytes: usize) -> std::io::Result<()> {
    let mut header = vec![0; tag_bytes + 4];
    stream.read_exact(&mut header)?;
    let length = i32::from_be_bytes(header[tag_bytes..].try_into().unwrap());
    stream.read_exact(&mut vec![0; length as usize - 4])
}

fn gate_before(script: Script) -> (Gate, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
    thread::spawn(move || serve(&listener, script));
    // It is not asked how many connections it allows.
    let limits = format!("{}connections = 1\n", transactions(1));
    let gate = Gate::before_folder(folder.path(), &limits);
    (gate, folder)
}

pub(crate) fn session(gate: &Gate, startup: &[u8]) -> UnixStream {
    let mut client = UnixStream::connect(gate.folder().join(".s.PGSQL.6432")).unwrap();
    client.write_all(startup).unwrap();
    read_through(&mut client, READY);
    client
}

pub(crate) fn read_through(stream: &mut UnixStream, end: &[u8]) -> Vec<u8> {
    let mut heard = Vec::new();
    while !heard.ends_with(end) {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        heard.push(byte[0]);
    }
    heard
}

#[test]
fn the_end_of_a_server_session_is_no_answer_to_the_next_command() {
    // Each ends with its first answer, in the same packet.
    let (gate, _folder) = gate_before(|_, query| match query {
        0 => [DONE, READY, &ended()].concat(),
        _ => Vec::new(),
    });
    let mut client = session(&gate, STARTUP);
    for _ in 0..3 {
        client.write_all(QUERY).unwrap();
        assert_eq!(read_through(&mut client, READY), [DONE, READY].concat());
    }
}

#[test]
fn a_server_session_that_ends_before_anything_of_the_clients_was_sent_is_replaced() {
    // The first ends when the gate gives it the second client's settings.
    let (gate, _folder) = gate_before(|session, query| match (session, query) {
        (0, 1) => Vec::new(),
        _ => [DONE, READY].concat(),
    });
    let mut first = session(&gate, STARTUP);
    first.write_all(QUERY).unwrap();
    read_through(&mut first, READY);
    let startup =
        b"\0\0\0\x3c\0\x03\0\0user\0postgres\0database\0postgres\0application_name\0b\0\0";
    let mut second = session(&gate, startup);
    second.write_all(QUERY).unwrap();
    assert_eq!(read_through(&mut second, READY), [DONE, READY].concat());
}
