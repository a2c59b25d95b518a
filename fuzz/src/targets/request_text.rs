//! However a connection's bytes are cut, they are rewritten alike; and what was rewritten stays as
//! it is.

use sooner_http::request_text::Rewriter;

/// Tries one input.
pub fn run(bytes: &[u8]) {
    let whole = Rewriter::default().rewrite(bytes).into_owned();
    let mut rewriter = Rewriter::default();
    let mut pieces = Vec::new();
    for piece in bytes.chunks(1 + bytes.len() % 7) {
        pieces.extend_from_slice(&rewriter.rewrite(piece));
    }
    assert_eq!(pieces, whole);
    assert_eq!(Rewriter::default().rewrite(&whole), whole);
    assert!(whole.len() <= 3 * bytes.len());
}
