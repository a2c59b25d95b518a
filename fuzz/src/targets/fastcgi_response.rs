//! Whatever a FastCGI server sends: it is read alike however it is cut into pieces, and a head is
//! never longer than it may be.

use bytes::BytesMut;
use sooner_http::fastcgi::{Decoder, Event, HEAD_BYTES_MAX, RecordError, head};

/// What comes of records.
#[derive(Debug, Default, PartialEq)]
struct Decoded {
    output: Vec<u8>,
    words: Vec<u8>,
    ends: Vec<u32>,
    failure: Option<RecordError>,
}

/// Tries one input: what is sent, and how long its pieces are.
pub fn run(input: (&[u8], Vec<u8>)) {
    let (bytes, lengths) = input;
    let whole = decoded(&[bytes]);
    let mut pieces = Vec::new();
    let mut rest = bytes;
    for length in lengths {
        let (piece, behind) = rest.split_at(rest.len().min(length.into()));
        pieces.push(piece);
        rest = behind;
    }
    pieces.push(rest);
    assert_eq!(decoded(&pieces), whole);
    if let Ok(Some((read, length))) = head(&whole.output) {
        assert!(length <= HEAD_BYTES_MAX && (200..600).contains(&read.status.as_u16()));
        assert_eq!(head(&whole.output[..length]), Ok(Some((read, length))));
    }
}

fn decoded(pieces: &[&[u8]]) -> Decoded {
    let (mut decoder, mut buffer) = (Decoder::default(), BytesMut::new());
    let mut all = Decoded::default();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            match decoder.next(&mut buffer) {
                Ok(None) => break,
                Ok(Some(Event::Output(bytes))) => all.output.extend_from_slice(&bytes),
                Ok(Some(Event::Error(bytes))) => all.words.extend_from_slice(&bytes),
                Ok(Some(Event::End { status })) => all.ends.push(status),
                Err(error) => {
                    all.failure = Some(error);
                    return all;
                }
            }
        }
    }
    all
}
