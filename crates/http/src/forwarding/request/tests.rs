//! Requests as they come in and as they go out.

use super::*;
use http::Request;

const CLIENT: Client = Client {
    address: IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7)),
    scheme: "https",
    is_trusted: false,
    subject: None,
};

fn rules(upgrades: &[String]) -> Rules<'_> {
    Rules {
        strip_prefix: None,
        upgrades,
        keeps_host: true,
    }
}

fn parts(version: Version, uri: &str, lines: &[(&str, &str)]) -> Parts {
    let mut builder = Request::builder().version(version).uri(uri);
    for (name, value) in lines {
        builder = builder.header(*name, *value);
    }
    builder.body(()).unwrap().into_parts().0
}

fn out(lines: &[(&str, &str)], body_bytes: Option<u64>) -> Result<Outgoing, Refusal> {
    let websocket = ["websocket".to_owned()];
    let parts = parts(Version::HTTP_11, "/a?b", lines);
    outgoing(&parts, body_bytes, &CLIENT, rules(&websocket))
}

/// The head as it would be written, `name: value` lines sorted.
fn written(outgoing: &Outgoing, protocol: Protocol, body_bytes: Option<u64>) -> String {
    let head = outgoing.head(protocol, "app:3000", false, body_bytes);
    let mut lines: Vec<String> = head
        .headers()
        .iter()
        .filter(|(name, _)| !forwarded::describes_client(name))
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    lines.sort();
    format!("{} {} | {}", head.method(), head.uri(), lines.join(" | "))
}

#[test]
fn the_framing_is_ours() {
    let sized = out(&[("host", "h"), ("content-length", "5")], Some(5)).unwrap();
    assert_eq!(
        written(&sized, Protocol::Http1, Some(5)),
        "GET /a?b | content-length: 5 | host: h | via: 1.1 sooner"
    );
    let chunked = out(&[("host", "h"), ("transfer-encoding", "chunked")], None).unwrap();
    assert_eq!(
        written(&chunked, Protocol::Http1, None),
        "GET /a?b | host: h | transfer-encoding: chunked | via: 1.1 sooner"
    );
    assert_eq!(
        written(&chunked, Protocol::Http2, None),
        "GET http://h/a?b | via: 1.1 sooner"
    );
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    let refusals = [
        (vec![], Refusal::Host),
        (vec![("host", "a"), ("host", "a")], Refusal::Host),
        (vec![("host", "a b")], Refusal::Host),
        (vec![("host", "u@a")], Refusal::Host),
        (vec![("host", "a/b")], Refusal::Host),
        (
            vec![
                ("host", "a"),
                ("content-length", "1"),
                ("content-length", "2"),
            ],
            Refusal::ContentLength,
        ),
        (
            vec![("host", "a"), ("content-length", "7")],
            Refusal::ContentLength,
        ),
        (
            vec![("host", "a"), ("transfer-encoding", "gzip, chunked")],
            Refusal::TransferCoding,
        ),
        (
            vec![
                ("host", "a"),
                ("transfer-encoding", "chunked"),
                ("transfer-encoding", "identity"),
            ],
            Refusal::TransferCoding,
        ),
    ];
    for (lines, refusal) in refusals {
        assert_eq!(out(&lines, Some(0)).unwrap_err(), refusal, "{lines:?}");
    }
    let dots = parts(Version::HTTP_11, "/a/%2e%2e/b", &[("host", "h")]);
    let dots = outgoing(&dots, Some(0), &CLIENT, rules(&[]));
    assert_eq!(dots.unwrap_err(), Refusal::DotSegment);
}

#[test]
fn the_host_of_the_target_counts() {
    let absolute = parts(Version::HTTP_11, "http://real/a", &[("host", "other")]);
    assert_eq!(requested_authority(&absolute), Ok(Some("real")));
    let two = parts(Version::HTTP_2, "http://real/a", &[("host", "other")]);
    assert_eq!(requested_authority(&two), Err(Refusal::Host));
    let old = parts(Version::HTTP_10, "/a", &[]);
    assert_eq!(requested_authority(&old), Ok(None));
    // No part of the absolute form goes further.
    let out = outgoing(&absolute, Some(0), &CLIENT, rules(&[])).unwrap();
    assert_eq!(
        written(&out, Protocol::Http1, Some(0)),
        "GET /a | host: real | via: 1.1 sooner"
    );
}

#[test]
fn a_target_without_a_path_gets_one() {
    for (uri, line) in [
        ("http://real", "GET / |"),
        ("http://real?b", "GET /?b |"),
        ("http://real#c", "GET / |"),
    ] {
        let absolute = parts(Version::HTTP_11, uri, &[("host", "real")]);
        let out = outgoing(&absolute, Some(0), &CLIENT, rules(&[])).unwrap();
        let written = written(&out, Protocol::Http1, Some(0));
        assert!(written.starts_with(line), "{uri}: {written}");
    }
}

#[test]
fn headers_of_the_connection_and_about_the_client_stay_here() {
    let out = out(
        &[
            ("host", "h"),
            ("connection", "close, x-secret"),
            ("x-secret", "1"),
            ("x-kept", "1"),
            ("x_forwarded_for", "1.2.3.4"),
            ("x-real-ip", "1.2.3.4"),
            ("content_length", "9"),
            ("http2-settings", "AAA"),
            ("upgrade", "h2c"),
        ],
        Some(0),
    )
    .unwrap();
    assert_eq!(
        written(&out, Protocol::Http1, Some(0)),
        "GET /a?b | host: h | via: 1.1 sooner | x-kept: 1"
    );
    assert_eq!(out.headers["x-forwarded-for"], "192.0.2.7");
}

#[test]
fn only_protocols_the_route_names_are_switched_to() {
    let asked = |protocol| {
        let lines = [
            ("host", "h"),
            ("connection", "Upgrade"),
            ("upgrade", protocol),
        ];
        out(&lines, Some(0)).unwrap().upgrade
    };
    assert_eq!(asked("WebSocket").unwrap(), "WebSocket");
    assert_eq!(asked("h2c, websocket").unwrap(), "websocket");
    assert_eq!(asked("h2c"), None);
    let out = out(
        &[
            ("host", "h"),
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
        ],
        Some(0),
    )
    .unwrap();
    assert_eq!(
        written(&out, Protocol::Http1, Some(0)),
        "GET /a?b | connection: upgrade | host: h | upgrade: websocket | via: 1.1 sooner"
    );
}

#[test]
fn pieces_of_a_cookie_become_one() {
    let parts = parts(
        Version::HTTP_2,
        "https://h/",
        &[("cookie", "a=1"), ("cookie", "b=2")],
    );
    let out = outgoing(&parts, Some(0), &CLIENT, rules(&[])).unwrap();
    assert_eq!(out.headers["cookie"], "a=1; b=2");
    assert_eq!(out.headers.get_all("cookie").iter().count(), 1);
}

#[test]
fn a_loop_ends() {
    let once = ("via", "1.1 sooner");
    let lines: Vec<_> = [("host", "h")]
        .into_iter()
        .chain([once; HOPS_MAX])
        .collect();
    assert_eq!(out(&lines, Some(0)).unwrap_err(), Refusal::Loop);
    assert!(out(&[("host", "h"), once, ("via", "1.1 soonerish")], Some(0)).is_ok());
}

#[test]
fn trailers_and_expectations_go_through() {
    let out = out(
        &[
            ("host", "h"),
            ("te", "trailers"),
            ("expect", "100-Continue"),
            ("trailer", "x-sum"),
        ],
        None,
    )
    .unwrap();
    assert_eq!(
        written(&out, Protocol::Http1, None),
        "GET /a?b | connection: te | expect: 100-continue | host: h | te: trailers | trailer: x-sum | transfer-encoding: chunked | via: 1.1 sooner"
    );
}

#[test]
fn what_parameters_say_is_not_said_twice() {
    let lines = [("host", "h"), ("x-a", "1"), ("te", "trailers")];
    let mut scripted = out(&lines, Some(5)).unwrap();
    scripted.parameters = Some(Vec::new());
    assert_eq!(
        written(&scripted, Protocol::Http1, Some(5)),
        "GET / | connection: te | content-length: 5 | host: h | te: trailers"
    );
    let head = scripted.head(Protocol::Http1, "app:3000", false, Some(5));
    let parameters: &std::sync::Arc<crate::fastcgi::Parameters> = head.extensions().get().unwrap();
    let named = |wanted: &[u8]| parameters.iter().any(|(name, _)| name == wanted);
    assert!(named(b"HTTP_X_A") && named(b"HTTP_VIA"));
}
