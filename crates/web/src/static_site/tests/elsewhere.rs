//! Redirects, and several sites.

use super::*;
use hyper::header::HOST;

#[test]
fn redirects_come_first_and_keep_the_query() {
    let fixture = Fixture::new(
        "redirect = [
            { from = '/old/*', to = '/new/$1', status = 308 },
            { from = '/.well-known/carddav', to = 'https://dav.example.org/' },
        ]",
    );
    fixture.write("old/a", "a");
    let got = fixture.get("/old/a?x=1", &[]);
    assert_eq!((got.status, got.header("location")), (308, "/new/a?x=1"));
    let got = fixture.ask(Method::POST, "/old/b", &[]);
    assert_eq!((got.status, got.header("location")), (308, "/new/b"));
    let got = fixture.get("/.well-known/carddav", &[]);
    let location = "https://dav.example.org/";
    assert_eq!((got.status, got.header("location")), (302, location));
    assert_eq!(fixture.get("/old", &[]).status, 301);
}

#[test]
fn a_site_without_a_root_has_only_redirects() {
    let config = "redirect = [{ from = '/*', to = 'https://example.org/$1', status = 301 }]";
    let site = StaticSite::new(&toml::from_str(config).unwrap(), CacheLimits::default(), 4);
    let request = Request::builder().uri("//evil.org/a").body(()).unwrap();
    let got = read(site.unwrap().response(&request, Moment::now()));
    let location = "https://example.org/evil.org/a";
    assert_eq!((got.status, got.header("location")), (301, location));
    let site = StaticSite::new(&StaticConfig::default(), CacheLimits::default(), 4).unwrap();
    assert_eq!(read(site.response(&request, Moment::now())).status, 404);
    let options = Request::options("*").body(()).unwrap();
    assert_eq!(read(site.response(&options, Moment::now())).status, 204);
}

#[test]
fn a_site_without_a_root_has_nothing_whatever_the_method() {
    let site = StaticSite::new(&StaticConfig::default(), CacheLimits::default(), 4).unwrap();
    for method in [Method::GET, Method::HEAD, Method::POST, Method::DELETE] {
        let request = Request::builder().method(&method).uri("/a").body(());
        let got = read(site.response(&request.unwrap(), Moment::now()));
        assert_eq!((got.status, got.header("allow")), (404, ""), "{method}");
    }
}

#[test]
fn the_host_decides_between_sites() {
    let folder = tempfile::tempdir().unwrap();
    let configs: Vec<_> = [
        ("first", "hosts = ['first.org']"),
        ("second", "hosts = ['second.org', '*.second.org']"),
        ("third", "hosts = ['www.second.org']"),
    ]
    .iter()
    .map(|(name, settings)| {
        let root = folder.path().join(name);
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("a"), name).unwrap();
        config(&root, settings)
    })
    .collect();
    let sites = Sites::new(&configs, CacheLimits::default(), 4).unwrap();
    assert_eq!(sites.all().count(), 3);
    let get = |host: &str| {
        let request = Request::builder().uri("/a").header(HOST, host);
        match sites.respond(&request.body(()).unwrap(), Scheme::Http, Moment::now()) {
            StaticReply::Now(response) | StaticReply::File(response, _) => read(response),
            StaticReply::Listing(_) => panic!("a listing"),
        }
    };
    for (host, name) in [
        ("first.org", "first"),
        ("SECOND.org.:8080", "second"),
        ("x.y.second.org", "second"),
        ("www.second.org", "third"),
        ("elsewhere.net", "first"),
        ("[::1]:80", "first"),
        ("", "first"),
    ] {
        assert_eq!(get(host).text(), name, "{host}");
    }
    assert_eq!(get("a b").status, 400);
}
