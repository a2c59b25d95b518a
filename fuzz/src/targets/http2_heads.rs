//! What the HTTP/2 library gets in place of a client's bytes is the same however they are cut.

use sooner_http::hpack::HeadFilter;

// The first byte says how long the pieces are.
/// Tries one input.
pub fn run(input: &[u8]) {
    let Some((&piece_bytes, bytes)) = input.split_first() else {
        return;
    };
    let whole = passed(&[bytes]);
    let pieces: Vec<&[u8]> = bytes.chunks(usize::from(piece_bytes).max(1)).collect();
    assert_eq!(passed(&pieces), whole);
}

fn passed(pieces: &[&[u8]]) -> Vec<u8> {
    let mut heads = HeadFilter::new(4096);
    let mut all = Vec::new();
    for piece in pieces {
        match heads.pass(piece) {
            None => all.extend_from_slice(piece),
            Some(instead) => all.extend_from_slice(&instead),
        }
    }
    all
}
