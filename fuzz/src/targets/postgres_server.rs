//! Whatever a server answers to what a client asked: passed on, or the end of the connection.

use std::cell::RefCell;

use bytes::BytesMut;
use sooner_postgres::parameters::Parameters;
use sooner_postgres::rewriter::Rewriter;
use sooner_postgres::session::{ClientState, ServerState};
use sooner_postgres::wire::{
    Splitter, look_at_backend, look_at_frontend, write_parse, write_query, write_sync,
};

/// Tries one input.
pub fn run(input: (Vec<u8>, Vec<u8>)) {
    let (asked, answered) = input;
    let (mut client, mut server) = (ClientState::default(), ServerState::new(2, Parameters::new()));
    let all = RefCell::default();
    let mut rewriter = Rewriter::new(&mut client, &mut server, &all);
    let mut questions = BytesMut::new();
    for word in asked {
        match word % 4 {
            0 => write_query(&mut questions, b"SELECT 1"),
            1 => write_parse(&mut questions, &[b'a' + word % 8], b"SELECT 1\0\0\0"),
            2 => questions.extend_from_slice(b"c\0\0\0\x04"),
            _ => write_sync(&mut questions),
        }
    }
    let (mut splitter, mut rest, mut out) = (
        Splitter::new(look_at_frontend),
        &questions[..],
        BytesMut::new(),
    );
    while let Ok(Some(piece)) = splitter.next(rest) {
        rewriter
            .from_client(&piece, &mut out)
            .expect("these are messages");
        rest = &rest[piece.bytes.len()..];
    }
    let (mut splitter, mut rest, mut out) = (
        Splitter::new(look_at_backend),
        &answered[..],
        BytesMut::new(),
    );
    while let Ok(Some(piece)) = splitter.next(rest) {
        if rewriter.from_server(&piece, &mut out).is_err() {
            return;
        }
        rest = &rest[piece.bytes.len()..];
        let _ = rewriter.is_over();
    }
}
