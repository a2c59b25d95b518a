//! A PROXY header ends where it ends, however it was cut, and is never longer than its bound.

use sooner_http::proxy_protocol::parse;

/// Tries one input.
pub fn run(bytes: &[u8]) {
    let Ok(Some(header)) = parse(bytes) else {
        return;
    };
    let end = header.length_bytes;
    assert!(end <= bytes.len() && end <= 4096);
    assert_eq!(parse(&bytes[..end]), Ok(Some(header)));
    for cut in 0..end {
        assert_eq!(parse(&bytes[..cut]), Ok(None));
    }
}
