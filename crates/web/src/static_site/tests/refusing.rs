//! Methods, hidden names, links, error pages.

use super::*;

#[test]
fn methods_of_files() {
    let fixture = Fixture::new("headers = { access-control-allow-origin = '*' }");
    fixture.write("a", "a");
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "BREW"] {
        let got = fixture.ask(Method::from_bytes(method.as_bytes()).unwrap(), "/a", &[]);
        assert_eq!(got.status, 405, "{method}");
        assert_eq!(got.header("allow"), "GET, HEAD, OPTIONS");
    }
    for target in ["/a", "/none", "*"] {
        let got = fixture.ask(Method::OPTIONS, target, &[]);
        assert_eq!(
            (got.status, got.header("allow")),
            (204, "GET, HEAD, OPTIONS")
        );
        assert_eq!(got.header("access-control-allow-origin"), "*");
    }
}

#[test]
fn hidden_names_only_when_told_so() {
    let (hidden, shown) = (Fixture::plain(), Fixture::new("dot_files = true"));
    for fixture in [&hidden, &shown] {
        fixture.write(".git/config", "secret");
        fixture.write(".well-known/security.txt", "public");
        let got = fixture.get("/.well-known/security.txt", &[]);
        assert_eq!(got.text(), "public");
        assert_eq!(fixture.get("/../a", &[]).status, 400);
        assert_eq!(fixture.get("/a%00", &[]).status, 400);
    }
    assert_eq!(hidden.get("/.git/config", &[]).status, 403);
    assert_eq!(shown.get("/.git/config", &[]).text(), "secret");
}

#[test]
fn links_as_the_owner_wants_them() {
    let (inside, none) = (Fixture::plain(), Fixture::new("symlinks = 'none'"));
    for fixture in [&inside, &none] {
        fixture.write("a", "a");
        std::fs::write(fixture.folder.path().join("secret"), "s").unwrap();
        symlink("a", fixture.path("in")).unwrap();
        symlink("../secret", fixture.path("out")).unwrap();
        assert_eq!(fixture.get("/out", &[]).status, 403);
    }
    assert_eq!(inside.get("/in", &[]).text(), "a");
    assert_eq!(none.get("/in", &[]).status, 403);
}

#[test]
fn errors_have_the_pages_of_the_site() {
    let fixture = Fixture::new(
        "errors = { 404 = '/errors/404.html', 502 = '/errors/large.html', 403 = '/none.html' }
        headers = { x-a = 'b' }",
    );
    fixture.write("errors/404.html", "<p>not here");
    fixture.write("errors/large.html", vec![b'x'; 5000]);
    let got = fixture.get("/missing", &[]);
    assert_eq!((got.status, got.text()), (404, "<p>not here"));
    assert_eq!(got.header("content-type"), "text/html; charset=utf-8");
    assert_eq!((got.header("etag"), got.header("x-a")), ("", "b"));
    let got = fixture.get("/.hidden", &[]);
    assert_eq!(got.text(), "403 Forbidden: hidden files are not served\n");
    assert_eq!((got.status, got.header("x-a")), (403, "b"));
    let page = |status| {
        let response = fixture.site.error_page(status, "because", Moment::now());
        read(response)
    };
    let got = page(StatusCode::BAD_GATEWAY);
    assert_eq!((got.status, got.body.len()), (502, 5000));
    assert_eq!(got.header("content-length"), "5000");
    let got = page(StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(
        (got.status, got.text()),
        (504, "504 Gateway Timeout: because\n")
    );
    assert_eq!(got.header("x-a"), "b");
}
