//! Backends that frame, lie, encode and break in every way.

use super::support::*;
use crate::http2::frames::{DATA, HEADERS, RST_STREAM, RawClient};
use flate2::read::GzDecoder;
use std::io::{Read, Write};

const ON: &str = "compress = true";
const HTML: &str = "content-type: text/html\r\n";

/// What curl gets of `path`, unpacked, and again as it is.
fn ask(site: &Site, path: &str) -> (Got, Got) {
    let gzip = ["-H", "accept-encoding: gzip"];
    let as_sent = curl(site.address, path, &gzip);
    (unpacked(site.address, path, "gzip", &[]), as_sent)
}

#[test]
fn a_body_framed_in_any_way_comes_whole() {
    if !has_curl() {
        return;
    }
    let site = before(ON, |head, stream| {
        let bytes: usize = if head.contains("large") {
            700_000
        } else {
            9_000
        };
        let body = text(bytes);
        if head.contains("chunked") {
            say(
                stream,
                &format!("{HTML}transfer-encoding: chunked\r\n"),
                b"",
            );
            for piece in body.chunks(1000) {
                let _ = chunk(stream, piece);
            }
            let _ = stream.write_all(b"0\r\n\r\n");
        } else if head.contains("close") {
            say(stream, HTML, &body);
        } else {
            say(stream, &format!("{HTML}content-length: {bytes}\r\n"), &body);
        }
    });
    for (path, bytes) in [
        ("/chunked", 9_000),
        ("/close", 9_000),
        ("/length", 9_000),
        ("/large-chunked", 700_000),
        ("/large-close", 700_000),
        ("/large-length", 700_000),
    ] {
        let (got, as_sent) = ask(&site, path);
        assert_eq!((got.exit, got.status), (Some(0), 200), "{path}");
        assert!(got.body == text(bytes), "{path}");
        assert_eq!(as_sent.header("content-encoding"), Some("gzip"), "{path}");
        assert!(as_sent.body.len() < bytes / 2 && as_sent.varies(), "{path}");
        if let Some(length) = as_sent.header("content-length") {
            assert_eq!(length, as_sent.body.len().to_string(), "{path}");
        }
        if path == "/length" {
            assert!(
                as_sent.header("content-length").is_some(),
                "it was here whole"
            );
        }
    }
}

#[test]
fn what_a_backend_encoded_or_forbids_to_change_stays() {
    if !has_curl() {
        return;
    }
    let site = before(ON, |head, stream| {
        let path = head.split(' ').nth(1).unwrap();
        let line = match path {
            "/encoded" => "content-encoding: x-own\r\n",
            "/transform" => "cache-control: private, no-transform\r\n",
            "/digest" => "content-digest: sha-256=:AAAA:\r\n",
            "/picture" => "",
            _ => "etag: \"v1\"\r\naccept-ranges: bytes\r\nvary: origin\r\n",
        };
        let kind = if path == "/picture" {
            "image/png"
        } else {
            "text/html"
        };
        let lines = format!("content-type: {kind}\r\n{line}content-length: 5000\r\n");
        say(stream, &lines, &text(5000));
    });
    for path in ["/encoded", "/transform", "/digest", "/picture"] {
        let got = curl(site.address, path, &["-H", "accept-encoding: gzip"]);
        assert!(got.body == text(5000), "{path}");
        assert_eq!(got.header("content-length"), Some("5000"), "{path}");
        assert!(!got.varies(), "{path}");
    }
    let (got, as_sent) = ask(&site, "/");
    assert!(got.body == text(5000));
    assert_eq!(as_sent.header("etag"), Some("W/\"v1\""));
    assert_eq!(as_sent.header("accept-ranges"), None);
    assert!(as_sent.varies());
    let plain = curl(site.address, "/", &[]);
    assert_eq!(plain.header("etag"), Some("\"v1\""));
    assert!(plain.varies() && plain.body == text(5000));
    let head = curl(
        site.address,
        "/",
        &["--head", "-H", "accept-encoding: gzip"],
    );
    assert_eq!(head.header("content-encoding"), Some("gzip"));
    assert_eq!(head.header("content-length"), None);
}

#[test]
fn statuses_without_a_whole_body_stay() {
    if !has_curl() {
        return;
    }
    let site = before(ON, |head, stream| {
        let answer = match head.split(' ').nth(1).unwrap() {
            "/204" => "204 No Content\r\n".to_owned(),
            "/304" => "304 Not Modified\r\netag: \"v1\"\r\n".to_owned(),
            "/206" => format!(
                "206 Partial Content\r\n{HTML}content-range: bytes 0-1999/5000\r\ncontent-length: 2000\r\n"
            ),
            _ => format!("404 Not Found\r\n{HTML}content-length: 2000\r\n"),
        };
        let body = if answer.contains("length") {
            text(2000)
        } else {
            Vec::new()
        };
        let head = format!("HTTP/1.1 {answer}connection: close\r\n\r\n");
        let _ = stream.write_all(&[head.as_bytes(), &body].concat());
    });
    let gzip = |path: &str, more: &[&str]| {
        let accept = ["-H", "accept-encoding: gzip"];
        curl(site.address, path, &[&accept[..], more].concat())
    };
    let part = gzip("/206", &["-H", "range: bytes=0-1999"]);
    assert_eq!((part.status, part.header("content-encoding")), (206, None));
    // RFC 9110, 15.3.7: as the whole would say.
    assert!(part.varies() && part.body == text(2000));
    assert_eq!(gzip("/204", &[]).status, 204);
    let missing = gzip("/404", &[]);
    assert_eq!(
        (missing.status, missing.header("content-encoding")),
        (404, Some("gzip"))
    );
    // Who has the compressed form knows its tag as weak.
    for (named, tag) in [("W/\"v1\"", "W/\"v1\""), ("\"v1\"", "\"v1\"")] {
        let same = gzip("/304", &["-H", &format!("if-none-match: {named}")]);
        assert_eq!((same.status, same.header("etag")), (304, Some(tag)));
        assert!(same.varies());
    }
}

#[test]
fn a_body_that_is_cut_or_lies_about_its_length_is_no_whole_one() {
    if !has_curl() {
        return;
    }
    let site = before(ON, |head, stream| {
        let bytes: usize = if head.contains("large") {
            400_000
        } else {
            20_000
        };
        if head.contains("chunked") {
            say(
                stream,
                &format!("{HTML}transfer-encoding: chunked\r\n"),
                b"",
            );
            let _ = chunk(stream, &text(bytes));
        } else {
            let announced = bytes + 10_000;
            say(
                stream,
                &format!("{HTML}content-length: {announced}\r\n"),
                &text(bytes),
            );
        }
    });
    for path in ["/chunked", "/length", "/large-chunked", "/large-length"] {
        for version in ["--http1.1", "--http2-prior-knowledge"] {
            let got = unpacked(site.address, path, "gzip", &[version]);
            assert_ne!(got.exit, Some(0), "{path} {version}");
        }
    }
    // More than was said is not part of it.
    let site = before(ON, |_, stream| {
        say(
            stream,
            &format!("{HTML}content-length: 5000\r\n"),
            &text(9000),
        );
    });
    assert!(unpacked(site.address, "/", "gzip", &[]).body == text(5000));
}

/// Sends as many bytes as the path says, and no end.
fn break_off(head: &str, stream: &mut std::net::TcpStream) {
    let path = head.split(' ').nth(1).unwrap();
    let lines = format!("{HTML}transfer-encoding: chunked\r\n");
    say(stream, &lines, b"");
    let _ = chunk(stream, &text(path[1..].parse().unwrap()));
}

/// nginx sends the head, and what of the body it has, too. A client that gets nothing at all on a
/// kept connection sends its request again, even a POST.
#[test]
fn of_a_body_that_breaks_off_the_client_gets_what_came() {
    if !has_curl() {
        return;
    }
    let site = before(ON, break_off);
    for bytes in [15, 2000, 20_000, 200_000] {
        let path = format!("/{bytes}");
        let got = curl(site.address, &path, &["-H", "accept-encoding: gzip"]);
        assert_ne!(got.exit, Some(0), "{bytes}");
        assert_eq!(got.status, 200, "{bytes}");
        assert_eq!(got.header("content-encoding"), Some("gzip"));
        let over_http2 = cut_stream(&site, &path, &[("accept-encoding", "gzip")]);
        for body in [got.body, over_http2] {
            let mut unpacked = Vec::new();
            let cut = GzDecoder::new(&body[..]).read_to_end(&mut unpacked);
            assert!(cut.is_err() && unpacked == text(bytes), "{bytes}");
        }
    }
}

/// The body of a response over HTTP/2 that ends with a reset. curl forgets what it reads together
/// with one.
fn cut_stream(site: &Site, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    const WINDOW_BYTES: u32 = 1 << 20;
    let mut client = RawClient::connect(site.address, &[(4, WINDOW_BYTES)]);
    client.open_window(0, WINDOW_BYTES);
    client.get(1, path, fields);
    let (mut has_head, mut body) = (false, Vec::new());
    loop {
        let frame = client.read().unwrap();
        match frame.kind {
            HEADERS => has_head = true,
            DATA => body.extend_from_slice(&frame.payload),
            RST_STREAM => break,
            _ => {}
        }
    }
    assert!(has_head, "{path}");
    body
}

#[test]
fn so_it_does_over_a_slow_link() {
    if !has_curl() {
        return;
    }
    let site = before_over("[uplink]\nrate = '2mbit'\n", slow, break_off);
    let got = curl(site.address, "/50000", &[]);
    assert_ne!(got.exit, Some(0));
    assert_eq!(got.status, 200);
    for body in [got.body, cut_stream(&site, "/50000", &[])] {
        assert!(body == text(50_000), "{}", body.len());
    }
}

#[test]
fn a_route_says_it_for_itself() {
    if !has_curl() {
        return;
    }
    let answer = |_: &str, stream: &mut std::net::TcpStream| {
        say(
            stream,
            &format!("{HTML}content-length: 5000\r\n"),
            &text(5000),
        );
    };
    let site = before(
        "compress = true\n[[route]]\npath = '/secret'\nupstream = 'app'\ncompress = false",
        answer,
    );
    let coding = |path| {
        let got = curl(site.address, path, &["-H", "accept-encoding: gzip"]);
        got.header("content-encoding").map(str::to_owned)
    };
    assert_eq!(coding("/secret"), None);
    assert_eq!(coding("/page").as_deref(), Some("gzip"));
}
