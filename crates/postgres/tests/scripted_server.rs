//! What a server says at a moment that no real one can be made to choose.

#[expect(dead_code, reason = "no database is needed here, and no psql")]
mod support;

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

use support::Gate;

const STARTUP: &[u8] = b"\0\0\0\x29\0\x03\0\0user\0postgres\0database\0postgres\0\0";
const QUERY: &[u8] = b"Q\0\0\0\x0dSELECT 1\0";
const READY: &[u8] = b"Z\0\0\0\x05I";
const DONE: &[u8] = b"C\0\0\0\x0dSELECT 1\0";

/// FATAL, of a server session that an operator has ended.
fn ended() -> Vec<u8> {
    let fields = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0";
    [b"E", &(4 + fields.len() as i32).to_be_bytes()[..], fields].concat()
}

/// A server each of whose sessions ends with its first answer, in the same packet.
fn serve(listener: &UnixListener) {
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut startup = [0; STARTUP.len()];
        stream.read_exact(&mut startup).unwrap();
        let greeting = [b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\x07\0\0\0\x07", READY].concat();
        stream.write_all(&greeting).unwrap();
        let mut query = [0; QUERY.len()];
        // The gate may want no more of this session.
        if stream.read_exact(&mut query).is_ok() {
            let _ = stream.write_all(&[DONE, READY, &ended()].concat());
        }
    }
}

fn read_through(stream: &mut UnixStream, end: &[u8]) -> Vec<u8> {
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
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
    thread::spawn(move || serve(&listener));
    let gate = Gate::before_folder(folder.path(), |settings| settings.limit = 1);
    let mut client = UnixStream::connect(gate.folder().join(".s.PGSQL.6432")).unwrap();
    client.write_all(STARTUP).unwrap();
    read_through(&mut client, READY);
    for _ in 0..3 {
        client.write_all(QUERY).unwrap();
        assert_eq!(read_through(&mut client, READY), [DONE, READY].concat());
    }
}
