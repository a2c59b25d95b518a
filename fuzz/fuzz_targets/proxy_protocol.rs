//! A PROXY header ends where it ends, however it was cut, and is never longer than its bound.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sooner_http::proxy_protocol::parse;

fuzz_target!(|bytes: &[u8]| {
    let Ok(Some(header)) = parse(bytes) else {
        return;
    };
    let end = header.length_bytes;
    assert!(end <= bytes.len() && end <= 4096);
    assert_eq!(parse(&bytes[..end]), Ok(Some(header)));
    for cut in 0..end {
        assert_eq!(parse(&bytes[..cut]), Ok(None));
    }
});
