//! What may be compressed, and what is said of it.

use super::*;
use http::header::IF_NONE_MATCH;
use proptest::prelude::*;

fn types(texts: &[&str]) -> MediaTypes {
    let mut types = MediaTypes::default();
    for text in texts {
        types.add(text).unwrap();
    }
    types
}

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, value.parse().unwrap());
    }
    headers
}

fn may(status: u16, lines: &[(&'static str, &str)]) -> bool {
    let status = StatusCode::from_u16(status).unwrap();
    may_be(status, &headers(lines), &types(&DEFAULT_TYPES))
}

#[test]
fn text_is_compressed_and_what_is_compressed_already_is_not() {
    for kind in [
        "text/html; charset=utf-8",
        "TEXT/CSS",
        "text/event-stream",
        "application/json",
        "application/json;charset=utf-8",
        " application/manifest+json ",
        "image/svg+xml",
        "application/rss+xml",
        "application/wasm",
        "text/javascript",
    ] {
        assert!(may(200, &[("content-type", kind)]), "{kind}");
    }
    for kind in [
        "image/png",
        "application/octet-stream",
        "font/woff2",
        "video/mp4",
        "application/zip",
        "texts/html",
        "application/json2",
        "",
    ] {
        assert!(!may(200, &[("content-type", kind)]), "{kind}");
    }
    assert!(!may(200, &[]));
    let two = [("content-type", "text/html"), ("content-type", "text/html")];
    assert!(!may(200, &two));
}

#[test]
fn a_response_can_be_one_that_must_stay_as_it_is() {
    for status in [200, 201, 301, 403, 404, 500, 503] {
        assert!(may(status, &[("content-type", "text/html")]), "{status}");
    }
    for status in [101, 204, 205, 206, 304] {
        assert!(!may(status, &[("content-type", "text/html")]), "{status}");
    }
    for (line, is_left) in [
        (("content-encoding", "gzip"), true),
        (("content-encoding", "identity"), true),
        (("content-range", "bytes 0-1/2"), true),
        (("cache-control", "public, No-Transform"), true),
        (("cache-control", "no-store"), false),
        (("cache-control", "no-transformation"), false),
        (("content-digest", "sha-256=:x:"), true),
        (("digest", "x"), true),
        (("content-md5", "x"), true),
        (("etag", "\"a\""), false),
    ] {
        let lines = [("content-type", "text/html"), line];
        assert_eq!(may(200, &lines), !is_left, "{line:?}");
    }
}

#[test]
fn a_pattern_is_a_type_a_family_or_a_suffix() {
    let some = types(&["Text/*", "application/JSON", "*+xml"]);
    for (kind, is_one) in [
        ("text/x", true),
        ("application/json", true),
        ("a/b+xml", true),
        ("application/jsonx", false),
        ("a/xml", false),
    ] {
        assert_eq!(some.contain(kind.as_bytes()), is_one, "{kind}");
    }
    for wrong in [
        "",
        "text",
        "*",
        "*/*",
        "text/",
        "/x",
        "a b/c",
        "*+",
        "text/html;q=1",
    ] {
        let refused = MediaTypes::default().add(wrong);
        assert_eq!(refused, Err(NotAType(wrong.into())));
    }
}

#[test]
fn caches_are_told_once() {
    for (said, lines) in [
        (None, 1),
        (Some("Accept-Encoding"), 1),
        (Some("origin, accept-encoding"), 1),
        (Some("*"), 1),
        (Some("origin"), 2),
        (Some("x-accept-encoding"), 2),
    ] {
        let mut headers = HeaderMap::new();
        if let Some(said) = said {
            headers.insert(VARY, said.parse().unwrap());
        }
        vary(&mut headers);
        vary(&mut headers);
        assert_eq!(headers.get_all(VARY).iter().count(), lines, "{said:?}");
    }
}

#[test]
fn the_head_becomes_that_of_the_compressed_form() {
    let mut head = headers(&[
        ("content-length", "5"),
        ("accept-ranges", "bytes"),
        ("etag", "\"a\""),
    ]);
    assert_eq!(content_length(&head), Some(5));
    encode(&mut head, Coding::Br);
    assert_eq!(
        head,
        headers(&[("etag", "W/\"a\""), ("content-encoding", "br")])
    );
    encode(&mut head, Coding::Gzip);
    assert_eq!(head[ETAG], "W/\"a\"");
    assert_eq!(head[CONTENT_ENCODING], "gzip");
}

#[test]
fn a_client_finds_the_tag_it_named() {
    for (named, tag, is_weak) in [
        ("W/\"a\"", "\"a\"", true),
        ("\"b\", W/\"a\"", "\"a\"", true),
        ("\"a\"", "\"a\"", false),
        ("W/\"b\"", "\"a\"", false),
        ("*", "\"a\"", false),
    ] {
        let request = HeaderMap::from_iter([(IF_NONE_MATCH, named.parse().unwrap())]);
        let response = headers(&[("etag", tag)]);
        assert_eq!(answers_weak_tag(&request, &response), is_weak, "{named}");
    }
    assert!(!answers_weak_tag(&HeaderMap::new(), &HeaderMap::new()));
}

proptest! {
    #[test]
    fn is_total(kind in proptest::collection::vec(any::<u8>(), 0..20), text in "\\PC{0,12}") {
        let mut all = types(&DEFAULT_TYPES);
        let _ = all.add(&text);
        let _ = all.contain(&kind);
    }
}
