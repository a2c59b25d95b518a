//! Whatever a client sends: first packets, messages and proofs are read or refused, and the server
//! never gets what is no message.

use std::cell::RefCell;

use bytes::BytesMut;
use sooner_postgres::auth::scram::{ServerExchange, Verifier};
use sooner_postgres::parameters::Parameters;
use sooner_postgres::rewriter::{Forwarded, Rewriter};
use sooner_postgres::session::{ClientState, ServerState};
use sooner_postgres::parameters::{RequestedParameters, commands_to_apply};
use sooner_postgres::wire::{FirstPacket, Splitter, look_at_frontend};

/// Tries one input.
pub fn run(bytes: &[u8]) {
    if let Ok(Some((FirstPacket::Startup(startup), taken_bytes))) = FirstPacket::read(bytes) {
        assert!(taken_bytes <= bytes.len());
        if let Ok(wanted) = RequestedParameters::read(&startup) {
            let _ = commands_to_apply(
                &wanted,
                &ClientState::default(),
                &ServerState::new(1, Parameters::new()),
            );
        }
    }
    let nobody = Verifier::of_nobody(&[0; 32], "x", 4096);
    if let Ok((exchange, _)) = ServerExchange::begin(bytes, nobody, "nonce") {
        assert!(exchange.end(bytes).is_err());
    }
    let (mut client, mut server) = (ClientState::default(), ServerState::new(2, Parameters::new()));
    let all = RefCell::default();
    let mut rewriter = Rewriter::new(&mut client, &mut server, &all);
    let (mut splitter, mut rest, mut out) =
        (Splitter::new(look_at_frontend), bytes, BytesMut::new());
    while let Ok(Some(piece)) = splitter.next(rest) {
        // Nothing answers here, so it is sent although it would have to wait.
        let _ = rewriter.must_wait(&piece, &mut out);
        match rewriter.from_client(&piece, &mut out) {
            Ok(Forwarded::Yes) => {}
            // It would be shown again with what the server answers.
            Ok(Forwarded::NotYet) => break,
            Err(_) => return,
        }
        rest = &rest[piece.bytes.len()..];
    }
    // What the server gets are messages, but for the last, which may not have come to its end.
    let (mut splitter, mut passed) = (Splitter::new(look_at_frontend), &out[..]);
    while let Some(piece) = splitter
        .next(passed)
        .expect("the server gets what is no message")
    {
        passed = &passed[piece.bytes.len()..];
    }
}
