//! How long clients may keep what a site answers.

use super::*;

const RULES: &str = "
    headers = { cache-control = 'no-store' }
    errors = { 404 = '/404.html' }
    fallback = '/app.html'
    expires = [
        { path = '/assets/%6eew', after = 'off' },
        { path = '/assets', after = '1y', immutable = true },
        { extensions = ['CSS', 'js'], types = ['image/*', 'font/woff2'], after = '30d' },
        { types = ['text/html'], after = 'epoch' },
    ]";

fn site() -> Fixture {
    let fixture = Fixture::new(RULES);
    for name in [
        "a.css",
        "b.JS",
        "c.png",
        "d.woff2",
        "e.txt",
        "app.html",
        "404.html",
        "index.html",
        "assets/x.html",
        "assets/new/y.css",
        "assetsx.txt",
        "css",
        ".css",
    ] {
        fixture.write(name, name);
    }
    fixture
}

#[test]
fn the_first_rule_that_fits_counts() {
    let fixture = site();
    for (target, cache_control) in [
        ("/a.css", "max-age=2592000"),
        ("/b.JS", "max-age=2592000"),
        ("/c.png", "max-age=2592000"),
        ("/d.woff2", "max-age=2592000"),
        ("/e.txt", "no-store"),
        ("/css", "no-store"),
        ("/assetsx.txt", "no-store"),
        ("/", "no-cache"),
        ("/assets/x.html", "max-age=31536000, immutable"),
        ("/%61ssets//x.html", "max-age=31536000, immutable"),
        ("/assets/new/y.css", "no-store"),
        ("/users/7", "no-cache"),
        // The application's page, not a file of this folder.
        ("/assets/missing", "no-cache"),
        ("/missing.css", "no-store"),
        ("/assets", "no-store"),
    ] {
        let got = fixture.get(target, &[]);
        assert_eq!(got.header("cache-control"), cache_control, "{target}");
        let has_date = !matches!(cache_control, "no-store");
        assert_eq!(got.headers.contains_key("expires"), has_date, "{target}");
    }
}

#[test]
fn it_is_said_with_parts_and_with_what_the_client_has_and_not_with_errors() {
    let fixture = site();
    let etag = fixture.get("/a.css", &[]).header("etag").to_owned();
    for (headers, status, cache_control) in [
        (("if-none-match", etag.as_str()), 304, "max-age=2592000"),
        (("range", "bytes=1-2"), 206, "max-age=2592000"),
        (("range", "bytes=9-"), 416, "no-store"),
        (("if-match", "\"x\""), 412, "no-store"),
    ] {
        let got = fixture.get("/a.css", &[headers]);
        assert_eq!(
            (got.status, got.header("cache-control")),
            (status, cache_control)
        );
    }
    let refused = fixture.ask(Method::POST, "/a.css", &[]);
    assert_eq!((refused.status, refused.header("expires")), (405, ""));
}

#[test]
fn the_date_follows_the_clock() {
    let fixture = site();
    let at = |seconds| Moment {
        date: std::time::UNIX_EPOCH + Duration::from_secs(seconds),
        ..Moment::now()
    };
    for (seconds, date) in [
        (784_111_777, "Tue, 06 Dec 1994 08:49:37 GMT"),
        (784_111_778, "Tue, 06 Dec 1994 08:49:38 GMT"),
    ] {
        let request = Request::builder().uri("/a.css").body(()).unwrap();
        let got = read(fixture.site.response(&request, at(seconds)));
        assert_eq!(got.header("expires"), date);
    }
}

#[test]
fn every_mistake_in_a_rule_has_its_place() {
    let folder = tempfile::tempdir().unwrap();
    for (rules, key) in [
        ("{ after = '30 d' }", "after"),
        ("{ after = 'epoch', immutable = true }", "immutable"),
        ("{ after = '1d', path = 'assets' }", "path"),
        ("{ after = '1d', path = '/a/*' }", "path"),
        ("{ after = '1d', path = '/%2f' }", "path"),
        ("{ after = '1d', extensions = ['.css'] }", "extensions"),
        ("{ after = '1d', types = ['css'] }", "types"),
        ("{ after = '1d', types = ['*/*'] }", "types"),
        (
            "{ after = '1d' }, { after = '2d', types = ['text/css'] }",
            "after",
        ),
        (
            "{ after = '1d', path = '/a', types = ['text/css', 'a/b'] }, \
             { after = '2d', path = '/a/b', types = ['a/b'] }",
            "after",
        ),
    ] {
        let config = config(folder.path(), &format!("expires = [{rules}]"));
        let error = StaticSite::new(&config, CacheLimits::default(), 1).unwrap_err();
        assert_eq!(error.key, format!("site.expires.{key}"), "{rules}");
        assert!(error.span.is_some(), "{rules}");
    }
    for rules in [
        "{ after = '1d' }, { after = '2d', proxied = true }",
        "{ after = '1d', types = ['text/css'] }, { after = '2d' }",
        "{ after = '1d', path = '/a' }, { after = '2d', path = '/ab' }",
    ] {
        let config = config(folder.path(), &format!("expires = [{rules}]"));
        assert!(
            StaticSite::new(&config, CacheLimits::default(), 1).is_ok(),
            "{rules}"
        );
    }
}
