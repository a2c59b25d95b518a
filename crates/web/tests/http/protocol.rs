//! HTTP/1.0 and 1.1 over real sockets: methods, versions, persistence, broken requests.

use super::support::Site;

#[test]
fn get_sends_the_file_and_describes_it() {
    let site = Site::start();
    site.write("page.html", "<p>hello");
    let response = site.get("/page.html?query", "");
    assert_eq!(
        (response.status, response.text(), response.version.as_str()),
        (200, "<p>hello", "HTTP/1.1")
    );
    assert_eq!(
        response.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(response.header("content-length"), Some("8"));
    assert_eq!(response.header("accept-ranges"), Some("bytes"));
    for name in ["etag", "last-modified", "date"] {
        assert!(response.header(name).is_some(), "{name}");
    }
}

#[test]
fn an_empty_file_is_an_empty_body() {
    let site = Site::start();
    site.write("empty.txt", "");
    let response = site.get("/empty.txt", "");
    assert_eq!(
        (response.status, response.header("content-length")),
        (200, Some("0"))
    );
}

#[test]
fn head_is_get_without_the_body() {
    let site = Site::start();
    site.write("a.txt", "0123456789");
    let mut client = site.connect();
    for (target, status) in [("/a.txt", 200), ("/missing", 404)] {
        client.send(&format!(
            "HEAD {target} HTTP/1.1\r\nhost: x\r\nrange: bytes=0-1\r\n\r\n"
        ));
        let response = client.response("HEAD");
        assert_eq!(response.status, status);
        assert_ne!(response.header("content-length"), Some("0"));
    }
    client.send_get("/a.txt");
    assert_eq!(client.response("GET").text(), "0123456789");
}

#[test]
fn other_methods_are_refused_and_told_which_are_not() {
    let site = Site::start();
    site.write("a.txt", "a");
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE", "BREW"] {
        let response = site.request(method, "/a.txt", "content-length: 0\r\n");
        assert_eq!(
            (response.status, response.header("allow")),
            (405, Some("GET, HEAD, OPTIONS")),
            "{method}"
        );
    }
    for target in ["*", "/a.txt"] {
        let response = site.request("OPTIONS", target, "");
        assert_eq!(
            (response.status, response.header("allow")),
            (204, Some("GET, HEAD, OPTIONS"))
        );
        assert_eq!(response.header("content-length"), None);
    }
}

#[test]
fn a_tunnel_is_refused_with_the_methods_that_there_are() {
    let site = Site::start();
    site.write("a.txt", "a");
    for target in ["example.org:443", "x:80"] {
        let response = site.request("CONNECT", target, "");
        let told = (response.status, response.header("allow"));
        assert_eq!(told, (405, Some("GET, HEAD, OPTIONS")), "{target}");
    }
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let site = Site::start();
    site.write("big", vec![b'x'; 1 << 20]);
    site.write("small", "s");
    let mut client = site.connect();
    let requests: String = ["/big", "/small", "/missing", "/small", "/big"]
        .iter()
        .map(|t| format!("GET {t} HTTP/1.1\r\nhost: x\r\n\r\n"))
        .collect();
    client.send(&requests);
    let answers: Vec<_> = (0..5)
        .map(|_| client.response("GET"))
        .map(|r| (r.status, r.body.len()))
        .collect();
    assert_eq!(answers[0], (200, 1 << 20));
    assert_eq!(answers[1], (200, 1));
    assert_eq!(answers[2].0, 404);
    assert_eq!(answers[3], (200, 1));
    assert_eq!(answers[4], (200, 1 << 20));
}

#[test]
fn http_1_1_keeps_the_connection_until_told_otherwise() {
    let site = Site::start();
    site.write("a", "a");
    let mut client = site.connect();
    client.send_get("/a");
    assert_eq!(client.response("GET").status, 200);
    client.send("GET /a HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert_eq!(client.response("GET").header("connection"), Some("close"));
    assert!(client.is_closed());
}

#[test]
fn http_1_0_closes_the_connection_unless_asked_to_keep_it() {
    let site = Site::start();
    site.write("a", "a");
    let mut client = site.connect();
    client.send("GET /a HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
    let kept = client.response("GET");
    assert_eq!(
        (kept.version.as_str(), kept.header("connection")),
        ("HTTP/1.0", Some("keep-alive"))
    );
    client.send("GET /a HTTP/1.0\r\n\r\n");
    assert_eq!(client.response("GET").text(), "a");
    assert!(client.is_closed());
}

#[test]
fn broken_requests_are_refused() {
    let site = Site::start();
    site.write("a", "a");
    for request in [
        "nonsense\r\n\r\n",
        "GET\r\n\r\n",
        "GET /a HTTP/1.1\r\n\r\n",
        "GET /a HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n",
        "GET /a HTTP/1.1\r\nhost: x\r\nno colon\r\n\r\n",
        "GET /a b HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET /a HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    ] {
        let mut client = site.connect();
        client.send(request);
        assert_eq!(client.response("GET").status, 400, "{request:?}");
    }
    assert_eq!(
        site.get("/a", &format!("x: {}\r\n", "y".repeat(20_000)))
            .status,
        431
    );
}

#[test]
fn an_absolute_target_names_the_path_in_it() {
    let site = Site::start();
    site.write("a", "a");
    assert_eq!(site.get("http://elsewhere/a", "").text(), "a");
    assert_eq!(site.get("http://elsewhere", "").status, 404);
}

#[test]
fn a_request_with_a_body_does_not_confuse_the_next() {
    let site = Site::start();
    site.write("a", "a");
    let mut client = site.connect();
    client.send(
        "GET /a HTTP/1.1\r\nhost: x\r\ncontent-length: 26\r\n\r\nGET /evil HTTP/1.1\r\nhost:\r\n",
    );
    assert_eq!(client.response("GET").text(), "a");
    client.send_get("/missing");
    assert_eq!(client.response("GET").status, 404);
}

#[test]
fn many_header_fields_are_taken_and_too_many_refused() {
    let site = Site::start();
    site.write("a.txt", "a");
    let fields = |count: usize| -> String { (0..count).map(|n| format!("x-{n}: 1\r\n")).collect() };
    assert_eq!(site.get("/a.txt", &fields(300)).status, 200);
    assert_eq!(site.get("/a.txt", &fields(500)).status, 431);
}

#[test]
fn raw_bytes_in_a_target_are_taken() {
    use std::io::Write;
    let site = Site::start();
    site.write("<\u{e9}`>.txt", "found");
    assert_eq!(site.get("/<\u{e9}`>.txt", "").text(), "found");
    for byte in 0x21..=0xff_u8 {
        let mut client = site.connect();
        let request = [
            b"GET /%3C%C3%A9%60%3E.txt?a=",
            &[byte][..],
            b" HTTP/1.1\r\nhost: x\r\n\r\n",
        ]
        .concat();
        client.stream().write_all(&request).unwrap();
        let response = client.response("GET");
        match byte {
            0x7f => assert_eq!(response.status, 400),
            _ => assert_eq!(response.text(), "found", "{byte:x}"),
        }
    }
}

#[test]
fn raw_bytes_are_taken_behind_a_request_that_asks_for_another_protocol() {
    let site = Site::start();
    site.write("gr\u{fc}n.txt", "found");
    let mut client = site.connect();
    for _ in 0..2 {
        client.send(
            "GET /gr\u{fc}n.txt HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
        );
        assert_eq!(client.response("GET").text(), "found");
    }
    client.send("COPY /a HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(client.response("COPY").status, 405);
    client.send_get("/gr\u{fc}n.txt");
    assert_eq!(client.response("GET").text(), "found");
}

#[test]
fn a_head_may_be_as_long_as_the_settings_say() {
    let config = "[limits]\nhead_bytes = 262144";
    // So little is read at once on slow links.
    let site = Site::start_with_chunks(config, 2048);
    site.write("a", "a");
    let head = |bytes: usize| {
        let field = format!("x: {}\r\n", "y".repeat(60_000));
        let fields = field.repeat(bytes / field.len());
        let rest = bytes - fields.len() - "GET /a HTTP/1.1\r\nhost: x\r\nx: \r\n\r\n".len();
        format!("{fields}x: {}\r\n", "y".repeat(rest))
    };
    for bytes in [40 << 10, 262_144] {
        assert_eq!(site.get("/a", &head(bytes)).text(), "a", "{bytes}");
    }
    assert_eq!(site.get("/a", &head(262_145)).status, 431);
}
