//! Whatever a client says it accepts: no form is chosen that is not offered, and none that is
//! excluded by name.

use sooner_http::negotiation::{AcceptEncoding, Coding, prefers_json};

/// Tries one input.
pub fn run(headers: Vec<&[u8]>) {
    let wanted = AcceptEncoding::parse(headers.iter().copied());
    for offered in [&Coding::ALL[..], &[Coding::Gzip], &[]] {
        if let Some(coding) = wanted.choose(offered.iter().copied()) {
            assert!(offered.contains(&coding));
        }
    }
    prefers_json(headers.iter().copied());
    let excluded = [b"br;q=0".as_slice()];
    let wanted = AcceptEncoding::parse(headers.into_iter().chain(excluded));
    assert_eq!(wanted.choose([Coding::Br].into_iter()), None);
}
