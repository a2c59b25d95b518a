//! Which form of a file, and which file for a path that leads to none.

use super::*;

const FORMS: &str = "precompressed = ['br', 'gzip']";

fn compressed() -> Fixture {
    let fixture = Fixture::new(FORMS);
    fixture.write("app.js", "plain");
    fixture.write("app.js.br", "brotli!");
    fixture.write("app.js.gz", "gzipped content");
    fixture
}

#[test]
fn the_form_the_client_wants() {
    let fixture = compressed();
    for (accept, coding, body) in [
        ("", "", "plain"),
        ("gzip, deflate, br, zstd", "br", "brotli!"),
        ("gzip", "gzip", "gzipped content"),
        ("br;q=0.5, gzip", "gzip", "gzipped content"),
        ("identity", "", "plain"),
        ("br;q=0, gzip;q=0", "", "plain"),
        ("*", "br", "brotli!"),
    ] {
        let got = fixture.get("/app.js", &[("accept-encoding", accept)]);
        assert_eq!((got.status, got.text()), (200, body), "{accept}");
        assert_eq!(got.header("content-encoding"), coding, "{accept}");
        assert_eq!(got.header("vary"), "accept-encoding");
        let kind = "text/javascript; charset=utf-8";
        assert_eq!(got.header("content-type"), kind);
    }
    let itself = fixture.get("/app.js.gz", &[("accept-encoding", "gzip")]);
    assert_eq!(itself.header("content-type"), "application/gzip");
    assert_eq!(itself.header("content-encoding"), "");
}

#[test]
fn each_form_is_validated_by_itself() {
    let fixture = compressed();
    let of = |accept| {
        let got = fixture.get("/app.js", &[("accept-encoding", accept)]);
        got.header("etag").to_owned()
    };
    let (plain, br, gzip) = (of(""), of("br"), of("gzip"));
    assert!(plain != br && br != gzip && plain != gzip);
    let accept = ("accept-encoding", "br");
    let got = fixture.get("/app.js", &[accept, ("if-none-match", &br)]);
    assert_eq!((got.status, got.header("etag")), (304, br.as_str()));
    assert_eq!(got.header("vary"), "accept-encoding");
    assert_eq!(got.header("content-encoding"), "");
    let got = fixture.get("/app.js", &[accept, ("if-none-match", &plain)]);
    assert_eq!((got.status, got.text()), (200, "brotli!"));
}

#[test]
fn ranges_are_of_the_compressed_bytes() {
    let fixture = compressed();
    let accept = ("accept-encoding", "gzip");
    let got = fixture.get("/app.js", &[accept, ("range", "bytes=8-")]);
    assert_eq!((got.status, got.text()), (206, "content"));
    assert_eq!(got.header("content-range"), "bytes 8-14/15");
    assert_eq!(got.header("content-encoding"), "gzip");
    let plain = fixture.get("/app.js", &[]).header("etag").to_owned();
    let ranged = [accept, ("range", "bytes=8-"), ("if-range", &plain)];
    let got = fixture.get("/app.js", &ranged);
    assert_eq!((got.status, got.text()), (200, "gzipped content"));
}

#[test]
fn several_ranges_of_a_compressed_form_are_the_whole_of_it() {
    let fixture = Fixture::new(FORMS);
    fixture.write("a.txt", "plain");
    fixture.write("a.txt.br", vec![b'x'; 5000]);
    let several = [("accept-encoding", "br"), ("range", "bytes=0-0,9-9")];
    let got = fixture.get("/a.txt", &several);
    assert_eq!((got.status, got.body.len()), (200, 5000));
}

#[test]
fn a_stale_form_is_not_sent() {
    let fixture = compressed();
    fixture.date("app.js", 784_111_778);
    let accept = [("accept-encoding", "br, gzip")];
    assert_eq!(fixture.get("/app.js", &accept).text(), "plain");
    fixture.date("app.js.gz", 784_111_778);
    assert_eq!(fixture.get("/app.js", &accept).text(), "gzipped content");
}

#[test]
fn forms_are_only_looked_for_when_told_so() {
    let fixture = Fixture::plain();
    fixture.write("app.js", "plain");
    fixture.write("app.js.br", "brotli!");
    let got = fixture.get("/app.js", &[("accept-encoding", "br")]);
    assert_eq!((got.text(), got.header("vary")), ("plain", ""));
}

#[test]
fn an_index_has_forms_too() {
    let fixture = compressed();
    fixture.write("index.html", "plain");
    fixture.write("index.html.br", "brotli!");
    let got = fixture.get("/", &[("accept-encoding", "br")]);
    assert_eq!(got.text(), "brotli!");
    assert_eq!(got.header("content-type"), "text/html; charset=utf-8");
}

#[test]
fn the_page_of_an_application_answers_for_its_paths() {
    let fixture = Fixture::new("fallback = '/app.html'\nerrors = { 404 = '/404.html' }");
    fixture.write("app.html", "app");
    fixture.write("404.html", "none");
    fixture.write("assets/a.js", "script");
    for target in [
        "/",
        "/users/7",
        "/users/",
        "/john.doe",
        "/users/anna@example.com",
        "/sites/example.org",
        "/users/anna@example.me",
        "/v1.2",
        "/assets/",
    ] {
        let got = fixture.get(target, &[]);
        assert_eq!((got.status, got.text()), (200, "app"), "{target}");
    }
    for target in ["/assets/b.js", "/favicon.ico", "/page.html"] {
        let got = fixture.get(target, &[]);
        assert_eq!((got.status, got.text()), (404, "none"), "{target}");
    }
    assert_eq!(fixture.get("/assets/a.js", &[]).text(), "script");
    assert_eq!(fixture.get("/.env", &[]).status, 403);
    assert_eq!(fixture.ask(Method::POST, "/users/7", &[]).status, 405);
    let etag = fixture.get("/app.html", &[]).header("etag").to_owned();
    let known = [("if-none-match", etag.as_str())];
    assert_eq!(fixture.get("/users/7", &known).status, 304);
    std::fs::remove_file(fixture.path("app.html")).unwrap();
    assert_eq!(fixture.get("/users/7", &[]).status, 404);
}
