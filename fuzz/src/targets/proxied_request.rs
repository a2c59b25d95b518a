//! What goes to an upstream for any request has one framing, one host, and nothing of the client's
//! connection.

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Request, Version};
use arbitrary::Arbitrary;
use sooner_http::forwarding::request::{Client, Rules, Protocol, outgoing};

#[derive(Arbitrary, Debug)]
pub struct Asked<'a> {
    method: &'a [u8],
    uri: &'a [u8],
    version: u8,
    headers: Vec<(&'a [u8], &'a [u8])>,
    body_bytes: Option<u64>,
    is_trusted: bool,
    strips: bool,
}

/// Names of one connection, whatever it says.
const NOT_TO_PASS: [&str; 6] = [
    "keep-alive",
    "proxy-connection",
    "http2-settings",
    "proxy",
    "transfer_encoding",
    "x_forwarded_for",
];

/// Tries one input.
pub fn run(asked: Asked) {
    let mut builder = Request::builder().method(asked.method).uri(asked.uri);
    builder = builder.version(match asked.version % 3 {
        0 => Version::HTTP_10,
        1 => Version::HTTP_11,
        _ => Version::HTTP_2,
    });
    for (name, value) in asked.headers {
        let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
        else {
            return;
        };
        builder = builder.header(name, value);
    }
    let Ok(request) = builder.body(()) else {
        return;
    };
    let (parts, ()) = request.into_parts();
    let client = Client {
        address: [192, 0, 2, 7].into(),
        scheme: "https",
        is_trusted: asked.is_trusted,
        subject: None,
    };
    let upgrades = ["websocket".to_owned()];
    let rules = Rules {
        strip_prefix: asked.strips.then_some("/api"),
        upgrades: &upgrades,
        keeps_host: true,
    };
    let Ok(out) = outgoing(&parts, asked.body_bytes, &client, rules) else {
        return;
    };
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let head = out.head(protocol, "app:3000", false, asked.body_bytes);
        check(protocol, head.headers());
        if protocol == Protocol::Http1 {
            assert!(head.uri().authority().is_none(), "an absolute form");
            assert!(head.uri().path().starts_with('/'));
        }
    }
}

fn check(protocol: Protocol, headers: &HeaderMap) {
    let count = |name: &str| headers.get_all(name).iter().count();
    assert!(
        count("content-length") + count("transfer-encoding") <= 1,
        "two framings"
    );
    assert_eq!(count("host"), usize::from(protocol == Protocol::Http1));
    assert_eq!(count("x-forwarded-for"), 1);
    assert_eq!(count("forwarded"), 1);
    for name in NOT_TO_PASS {
        assert_eq!(count(name), 0, "{name}");
    }
    if let Some(upgrade) = headers.get("upgrade") {
        assert!(upgrade.as_bytes().eq_ignore_ascii_case(b"websocket"));
    }
}
