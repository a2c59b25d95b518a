//! What of a configuration cannot work is said with its place.

use super::*;

fn mistake(settings: &str) -> (String, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    let text = settings.replace("ROOT", &format!("{root:?}"));
    let config: StaticConfig = toml::from_str(&text).unwrap();
    let error = StaticSite::new(&config, CacheLimits::default(), 4).unwrap_err();
    let place = error.span.map_or("", |span| &text[span]).to_owned();
    (place, error.key, error.message)
}

fn assert_mistakes(cases: &[(&str, &str, &str, &str)]) {
    for (settings, place, key, part) in cases {
        let (got_place, got_key, message) = mistake(settings);
        assert_eq!((got_place.as_str(), got_key.as_str()), (*place, *key));
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_mistake_has_a_place_a_key_and_a_remedy() {
    assert_mistakes(&[
        (
            "root = '/nowhere/at/all'",
            "'/nowhere/at/all'",
            "site.root",
            "name an existing one",
        ),
        (
            "root = '/dev/null'",
            "'/dev/null'",
            "site.root",
            "not a directory",
        ),
        (
            "root = ROOT\nindex = ['a', 'b/c']",
            "'b/c'",
            "site.index",
            "without a slash",
        ),
        (
            "root = ROOT\nfallback = 'a.html'",
            "'a.html'",
            "site.fallback",
            "start with a slash",
        ),
        (
            "root = ROOT\nfallback = '/a/'",
            "'/a/'",
            "site.fallback",
            "name a file",
        ),
        ("fallback = '/a'", "'/a'", "site.fallback", "needs a root"),
        ("listing = 'html'", "", "site.listing", "needs a root"),
        (
            "root = ROOT\nprecompressed = ['br', 'gzip', 'br']",
            "'br'",
            "site.precompressed",
            "twice",
        ),
        (
            "root = ROOT\nheaders = { Content-Length = '5' }",
            "'5'",
            "site.headers.Content-Length",
            "leave it out",
        ),
        (
            "root = ROOT\nerrors = { 200 = '/a' }",
            "'/a'",
            "site.errors.200",
            "from 400 to 599",
        ),
        (
            "root = ROOT\nerrors = { 404 = '../a' }",
            "'../a'",
            "site.errors.404",
            "start with a slash",
        ),
    ]);
}

#[test]
fn so_has_a_mistake_in_a_redirect() {
    assert_mistakes(&[
        (
            "redirect = [{ from = '/a/*', to = '/b' }, { from = '/a/b', to = '/c' }]",
            "'/a/b'",
            "site.redirect.from",
            "the redirect from \"/a/*\" comes first",
        ),
        (
            "redirect = [{ from = 'a', to = '/b' }]",
            "'a'",
            "site.redirect.from",
            "starts with a slash",
        ),
        (
            "redirect = [{ from = '/a', to = '/b/$1' }]",
            "'/b/$1'",
            "site.redirect.to",
            "star",
        ),
        (
            "redirect = [{ from = '/a', to = '/b', status = 200 }]",
            "200",
            "site.redirect.status",
            "301",
        ),
    ]);
}

#[test]
fn a_host_leads_to_one_site() {
    let configs = |first: &str, second: &str| {
        let read = |text| toml::from_str::<StaticConfig>(text).unwrap();
        Sites::new(&[read(first), read(second)], CacheLimits::default(), 4)
    };
    for (first, second, part) in [
        ("hosts = ['a.org']", "hosts = ['A.org.']", "named before"),
        ("hosts = ['a.org']", "", "needs hosts"),
        ("hosts = ['a.org:80']", "hosts = ['b']", "no port"),
        ("hosts = ['a.*']", "hosts = ['b']", "first labels"),
    ] {
        let error = configs(first, second).unwrap_err();
        assert_eq!(error.key, "site.hosts");
        assert!(error.message.contains(part), "{error}");
    }
    configs("", "hosts = ['b.org', '*.b.org']").unwrap();
}
