//! What clients send, for tests.

use crate::statements::{ClientStatements, Statements};
use crate::wire::{write_parse, write_query, write_sync};
use bytes::BytesMut;

/// A message with this body.
pub(crate) fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() + 4) as u32;
    [&[tag][..], &length.to_be_bytes(), body].concat()
}

/// A command that is a text.
pub(crate) fn query(sql: &str) -> Vec<u8> {
    written(|out| write_query(out, sql.as_bytes()))
}

/// Prepares a statement.
pub(crate) fn parse(name: &str, sql: &str) -> Vec<u8> {
    written(|out| write_parse(out, name.as_bytes(), &text_without_types(sql)))
}

/// Makes a portal of a statement, with neither name nor values.
pub(crate) fn bind(statement: &str) -> Vec<u8> {
    frame(b'B', format!("\0{statement}\0\0\0\0\0\0\0").as_bytes())
}

/// Runs that portal.
pub(crate) fn execute() -> Vec<u8> {
    frame(b'E', b"\0\0\0\0\0")
}

/// The end of a cycle.
pub(crate) fn sync() -> Vec<u8> {
    written(write_sync)
}

/// A client that has prepared these: names and texts.
pub(crate) fn prepared(statements: &[(&str, &str)]) -> ClientStatements {
    let (mut all, mut own) = (Statements::default(), ClientStatements::default());
    for (name, sql) in statements {
        let statement = all.share(b"", &text_without_types(sql));
        own.prepare(name.as_bytes(), statement).unwrap();
    }
    own
}

fn text_without_types(sql: &str) -> Vec<u8> {
    format!("{sql}\0\0\0").into_bytes()
}

fn written(write: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
    let mut out = BytesMut::new();
    write(&mut out);
    out.to_vec()
}
