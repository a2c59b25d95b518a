//! Paths of a site that are answered otherwise, and sites of one scheme.

use super::*;
use hyper::header::HOST;

/// Sites in a folder with the files `a`, `www/s/b.txt` and `other/b.txt`, `other/index.htm`.
fn sites(folder: &Path, text: &str) -> Result<Sites, crate::config::Misconfigured> {
    for (name, content) in [
        ("www/a", "a"),
        ("www/s/b.txt", "of the site"),
        ("www/secret/x", "x"),
        ("www/page.bak", "x"),
        ("www/404.html", "lost"),
        ("other/b.txt", "of the location"),
        ("other/d/index.htm", "index"),
    ] {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    #[derive(serde::Deserialize)]
    struct Tables {
        site: Vec<StaticConfig>,
    }
    let text = text.replace("FOLDER", folder.to_str().unwrap());
    let tables: Tables = toml::from_str(&text).unwrap();
    Sites::new(&tables.site, CacheLimits::default(), 4)
}

fn get(sites: &Sites, scheme: Scheme, host: &str, path: &str) -> Got {
    let request = Request::builder().uri(path).header(HOST, host);
    match sites.respond(&request.body(()).unwrap(), scheme, Moment::now()) {
        StaticReply::Now(response) | StaticReply::File(response, _) => read(response),
        StaticReply::Listing(_) => panic!("a listing"),
    }
}

const LOCATIONS: &str = r#"
[[site]]
root = "FOLDER/www"
headers = { X-A = "site" }
errors = { 404 = "/404.html" }
redirect = [{ from = "/old*", to = "/a" }]
[[site.location]]
paths = ["/health", "/old/health"]
status = 200
text = "ok"
headers = {}
[[site.location]]
paths = ["*.bak", "/secret/*"]
ignore_case = true
status = 403
[[site.location]]
paths = ["/s/*"]
root = "FOLDER/other"
strip_prefix = "/s/"
index = ["index.htm"]
headers = { X-A = "location" }
[[site.location]]
paths = ["/go/*"]
redirect = [{ from = "/go/*", to = "https://$host/$1", status = 301 }]
[[site.location]]
paths = ["/gone"]
status = 404
"#;

#[test]
fn a_location_answers_for_its_paths_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = LOCATIONS.replace("[[site]]\n", "[[site]]\nscheme = 'http'\n");
    let sites = sites(folder.path(), &text).unwrap();
    let get = |path| get(&sites, Scheme::Http, "h.org", path);
    for (path, status, text) in [
        ("/a", 200, "a"),
        ("/health", 200, "ok"),
        ("/old/health", 200, "ok"),
        ("/s/b.txt", 200, "of the location"),
        ("/s/d/", 200, "index"),
        ("/gone", 404, "lost"),
        ("/missing", 404, "lost"),
    ] {
        let got = get(path);
        assert_eq!((got.status, got.text()), (status, text), "{path}");
    }
    for path in [
        "/page.bak",
        "/page.BAK",
        "/secret/x",
        "//secret/x",
        "/%73ecret/x",
    ] {
        assert_eq!(get(path).status, 403, "{path}");
    }
    assert_eq!(get("/a").header("x-a"), "site");
    assert_eq!(get("/s/b.txt").header("x-a"), "location");
    assert_eq!(get("/health").header("x-a"), "");
    assert_eq!(get("/page.bak").header("x-a"), "site");
}

#[test]
fn what_is_sent_elsewhere_names_the_path_of_the_client() {
    let folder = tempfile::tempdir().unwrap();
    let text = LOCATIONS.replace("[[site]]\n", "[[site]]\nscheme = 'http'\n");
    let sites = sites(folder.path(), &text).unwrap();
    for (path, status, location) in [
        ("/s/d?x=1", 301, "/s/d/?x=1"),
        ("/old", 302, "/a"),
        ("/go/x?y", 301, "https://h.org/x?y"),
    ] {
        let got = get(&sites, Scheme::Http, "h.org:8080", path);
        assert_eq!(
            (got.status, got.header("location")),
            (status, location),
            "{path}"
        );
    }
    // Without a host there is no place to lead to.
    assert_eq!(get(&sites, Scheme::Http, "", "/go/x").status, 400);
    assert_eq!(get(&sites, Scheme::Https, "h.org", "/a").status, 404);
}

#[test]
fn a_site_may_be_for_one_scheme() {
    let folder = tempfile::tempdir().unwrap();
    let text = "
        [[site]]
        hosts = ['a.org']
        scheme = 'http'
        redirect = [{ from = '/*', to = 'https://$host/$1', status = 301 }]
        [[site]]
        hosts = ['a.org', 'b.org']
        scheme = 'https'
        root = 'FOLDER/www'
        [[site]]
        hosts = ['c.org']
        root = 'FOLDER/other'
    ";
    let sites = sites(folder.path(), text).unwrap();
    for (scheme, host, path, status) in [
        (Scheme::Http, "a.org", "/a", 301),
        (Scheme::Http, "b.org", "/a", 301),
        (Scheme::Https, "a.org", "/a", 200),
        (Scheme::Https, "x.org", "/a", 200),
        (Scheme::Http, "c.org", "/b.txt", 200),
        (Scheme::Https, "c.org", "/b.txt", 200),
    ] {
        let got = get(&sites, scheme, host, path);
        assert_eq!(got.status, status, "{scheme:?} {host}");
    }
}

/// As in nginx, which redirects within itself to an index and to a page of last resort.
#[test]
fn what_a_path_leads_to_is_looked_up_for_itself() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
[[site]]
root = "FOLDER/other"
index = ["index.htm"]
fallback = "/b.txt"
headers = { X-A = "site" }
redirect = [{ from = "/d/index.htm", to = "/d/" }, { from = "/b.txt", to = "/" }]
[[site.location]]
paths = ["/d/index.htm"]
headers = { X-A = "index" }
[[site.location]]
paths = ["/b.txt"]
headers = { X-A = "last resort" }
[[site.location]]
paths = ["/users/*"]
headers = { X-A = "users" }
[[site.location]]
paths = ["/refused/*.htm"]
status = 403
[[site.location]]
paths = ["/elsewhere/*"]
root = "FOLDER/www"
fallback = "/a"
[[site.location]]
paths = ["/a"]
status = 404
[[site.location]]
paths = ["/s/*"]
root = "FOLDER/other"
strip_prefix = "/s/"
"#;
    let sites = sites(folder.path(), text).unwrap();
    std::fs::create_dir(folder.path().join("other/refused")).unwrap();
    std::fs::write(folder.path().join("other/refused/index.htm"), "secret").unwrap();
    let text = text.replace("[\"/users/*\"]", "[\"/users/*\", \"/s/d/index.htm\"]");
    let others = super::locations::sites(folder.path(), &text).unwrap();
    let get = |path| get(&sites, Scheme::Http, "h.org", path);
    for (path, status, text, header) in [
        ("/d/", 200, "index", "index"),
        ("/d", 301, "", "site"),
        ("/users/7", 200, "of the location", "last resort"),
        ("/refused/", 403, "", "site"),
        // The owner names it, and a location keeps clients from it.
        ("/elsewhere/x", 200, "a", "site"),
        ("/a", 404, "", "site"),
        ("/s/d/", 200, "index", "site"),
    ] {
        let got = get(path);
        assert_eq!((got.status, got.header("x-a")), (status, header), "{path}");
        assert!(text.is_empty() || got.text() == text, "{path}");
    }
    let below = super::locations::get(&others, Scheme::Http, "h.org", "/s/d/");
    assert_eq!(
        below.header("x-a"),
        "users",
        "by the path that clients ask for"
    );
}

#[test]
fn what_no_location_can_be_is_said() {
    for (keys, key) in [
        ("paths = ['a']", "site.location.paths"),
        ("paths = []", "site.location.paths"),
        ("paths = ['/a']\nstatus = 301", "site.location.status"),
        ("paths = ['/a']\ntext = 'x'", "site.location.text"),
        (
            "paths = ['/a']\nstatus = 403\nroot = '/'",
            "site.location.root",
        ),
        (
            "paths = ['/a']\nstrip_prefix = '/a'",
            "site.location.strip_prefix",
        ),
        (
            "paths = ['/a']\nroot = '/nowhere/at/all'",
            "site.location.root",
        ),
        (
            "paths = ['/a']\nheaders = { Date = 'x' }",
            "site.location.headers.Date",
        ),
        (
            "paths = ['/a']\nredirect = [{ from = '/*', to = 'https://$host/$1' }]",
            "site.location.redirect.to",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("[[site]]\nroot = 'FOLDER/www'\n[[site.location]]\n{keys}\n");
        let error = sites(folder.path(), &text).unwrap_err();
        assert_eq!(error.key, key, "{keys}");
        assert!(error.span.is_some(), "{keys}");
    }
    let folder = tempfile::tempdir().unwrap();
    let twice = "[[site]]\nhosts = ['a']\n[[site]]\nhosts = ['a']\nscheme = 'http'\n";
    assert_eq!(sites(folder.path(), twice).unwrap_err().key, "site.hosts");
}

/// RFC 9110, 15.5.6: a 405 names the methods that there are, here none.
#[test]
fn a_location_without_methods_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
[[site]]
root = "FOLDER/www"
[[site.location]]
paths = ["/none"]
status = 405
[[site.location]]
paths = ["/post"]
status = 405
headers = { Allow = "POST" }
[[site.location]]
paths = ["/gone"]
status = 410
"#;
    let sites = sites(folder.path(), text).unwrap();
    for (path, status, allow) in [
        ("/none", 405, Some("")),
        ("/post", 405, Some("POST")),
        ("/gone", 410, None),
    ] {
        let got = get(&sites, Scheme::Http, "a", path);
        let allowed = got
            .headers
            .get("allow")
            .map(|value| value.to_str().unwrap());
        assert_eq!((got.status, allowed), (status, allow), "{path}");
    }
}

#[test]
fn how_long_is_said_of_the_path_that_clients_ask_for() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
[[site]]
root = "FOLDER/www"
expires = [{ path = "/s", after = "1h" }, { path = "/b.txt", after = "1d" }]
[[site.location]]
paths = ["/s/*"]
root = "FOLDER/other"
strip_prefix = "/s/"
"#;
    let sites = sites(folder.path(), text).unwrap();
    let got = get(&sites, Scheme::Http, "a", "/s/b.txt");
    assert_eq!(got.body, b"of the location");
    assert_eq!(got.header("cache-control"), "max-age=3600");
}
