//! A client in bytes: what it sends, and what it hears.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::support::Gate;

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(20);

pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag], &(4 + body.len() as i32).to_be_bytes()[..], body].concat()
}

pub fn query(sql: &str) -> Vec<u8> {
    message(b'Q', format!("{sql}\0").as_bytes())
}

pub fn connect(gate: &Gate) -> UnixStream {
    let stream = UnixStream::connect(gate.folder().join(".s.PGSQL.6432")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A session of a user's, and by what it is cancelled.
pub fn session(gate: &Gate, user: &str) -> (UnixStream, Vec<u8>) {
    session_with(gate, user, "")
}

/// As [`session`], with this besides in its first packet: names and values that end with zeros.
pub fn session_with(gate: &Gate, user: &str, besides: &str) -> (UnixStream, Vec<u8>) {
    let mut stream = connect(gate);
    let body = format!("\0\x03\0\0user\0{user}\0database\0postgres\0{besides}\0");
    let packet = message(b' ', body.as_bytes());
    stream.write_all(&packet[1..]).unwrap();
    let mut key = Vec::new();
    loop {
        match hear(&mut stream) {
            (b'K', body) => key = body,
            (b'Z', _) => break,
            _ => {}
        }
    }
    let length = 12 + (key.len() - 4) as i32;
    let cancel = [&length.to_be_bytes()[..], b"\x04\xd2\x16\x2e", &key].concat();
    (stream, cancel)
}

/// A message and its tag.
pub fn hear(stream: &mut UnixStream) -> (u8, Vec<u8>) {
    let mut head = [0; 5];
    stream.read_exact(&mut head).unwrap();
    let length = i32::from_be_bytes(head[1..].try_into().unwrap());
    let mut body = vec![0; length as usize - 4];
    stream.read_exact(&mut body).unwrap();
    (head[0], body)
}
