//! What comes to a client of any response has one framing that agrees with the body, and nothing of
//! the upstream's connection.

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method, StatusCode, Version};
use arbitrary::Arbitrary;
use sooner_http::forwarding::response::{Framing, incoming};

#[derive(Arbitrary, Debug)]
pub struct Answered<'a> {
    is_head: bool,
    status: u16,
    is_http2: bool,
    headers: Vec<(&'a [u8], &'a [u8])>,
    body_bytes: Option<u64>,
}

/// Tries one input.
pub fn run(answered: Answered) {
    let Ok(status) = StatusCode::from_u16(answered.status) else {
        return;
    };
    let mut headers = HeaderMap::new();
    for (name, value) in answered.headers {
        let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
        else {
            return;
        };
        headers.append(name, value);
    }
    let method = if answered.is_head {
        Method::HEAD
    } else {
        Method::GET
    };
    let version = if answered.is_http2 {
        Version::HTTP_2
    } else {
        Version::HTTP_11
    };
    let Ok(framing) = incoming(&method, status, version, &mut headers, answered.body_bytes) else {
        return;
    };
    for name in [
        "connection",
        "transfer-encoding",
        "keep-alive",
        "upgrade",
        "te",
        "proxy-connection",
    ] {
        assert!(!headers.contains_key(name), "{name} was passed on");
    }
    let lengths: Vec<_> = headers.get_all("content-length").iter().collect();
    match framing {
        Framing::Exact(bytes) => {
            assert_eq!(lengths, [&HeaderValue::from(bytes)]);
            assert_eq!(answered.body_bytes, Some(bytes));
        }
        Framing::UntilEnd => assert!(lengths.is_empty() && answered.body_bytes.is_none()),
        Framing::NoBody => assert!(lengths.len() <= usize::from(answered.is_head)),
    }
    assert!(!status.is_informational());
}
