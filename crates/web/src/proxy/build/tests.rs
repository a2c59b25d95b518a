//! Mistakes of a configuration, and what a reload takes over.

use super::*;

#[derive(serde::Deserialize)]
struct Tables {
    #[serde(default)]
    proxy: ProxyTable,
    late: Option<Spanned<LateName>>,
    #[serde(default)]
    class: Vec<ClassTable>,
    upstream: Vec<UpstreamTable>,
    route: Vec<RouteTable>,
}

fn build_after(text: &str, previous: Option<&Proxy>) -> Result<Proxy, Misconfigured> {
    let tables: Tables = toml::from_str(text).unwrap();
    let tables = ProxyTables {
        proxy: &tables.proxy,
        classes: &tables.class,
        late: tables.late.as_ref(),
        upstreams: &tables.upstream,
        routes: &tables.route,
    };
    Proxy::build(tables, previous)
}

fn build(text: &str) -> Result<Proxy, Misconfigured> {
    build_after(text, None)
}

const APP: &str = "[[upstream]]\nname = 'app'\nservers = ['http://127.0.0.1:3000']\n";

/// The key and the text a mistake points at.
fn mistake(more: &str) -> (String, String) {
    let text = format!("{APP}{more}");
    let Err(error) = build(&text) else {
        panic!("no mistake in {more}");
    };
    let span = error.span.clone().expect("it has a place");
    (error.key, text[span].to_owned())
}

fn of(key: &str, text: &str) -> (String, String) {
    (key.to_owned(), text.to_owned())
}

fn upstream(keys: &str) -> (String, String) {
    mistake(&format!(
        "[[upstream]]\nname = 'b'\n{keys}\n[[route]]\npath='/'\nupstream='b'"
    ))
}

#[test]
fn every_mistake_has_its_place() {
    let route = |keys: &str| mistake(&format!("[[route]]\n{keys}\n"));
    assert_eq!(
        route("path='/'\nupstream='ap'"),
        of("route.upstream", "'ap'")
    );
    assert_eq!(route("path='x'\nupstream='app'"), of("route.path", "'x'"));
    assert_eq!(
        route("path='/'\nupstream='app'\nclass=8"),
        of("route.class", "8")
    );
    assert_eq!(
        route("path='/'\nupstream='app'\nhosts=['a b']"),
        of("route.hosts", "'a b'")
    );
    assert_eq!(
        route("path='/'\nupstream='app'\nupgrade=['h2c']"),
        of("route.upgrade", "'h2c'")
    );
    assert_eq!(
        route("path='/x'\nupstream='app'\n[[route]]\npath=\"/%78\"\nupstream='app'"),
        of("route.path", "\"/%78\"")
    );
    assert_eq!(
        mistake(
            "[[upstream]]\nname='app'\nservers=['http://b']\n[[route]]\npath='/'\nupstream='app'"
        ),
        of("upstream.name", "'app'")
    );
    assert_eq!(
        mistake("[[route]]\npath='/'\nupstream='app'\n[proxy]\ntrusted=['10/8']"),
        of("proxy.trusted", "'10/8'")
    );
}

#[test]
fn so_has_every_mistake_of_an_upstream() {
    assert_eq!(
        upstream("servers=['app:80']"),
        of("upstream.servers", "'app:80'")
    );
    assert_eq!(
        upstream("servers=['http://a', 'http://a/']"),
        of("upstream.servers", "'http://a/'")
    );
    assert_eq!(upstream("servers=[]"), of("upstream.servers", "'b'"));
    assert_eq!(
        upstream("servers=['http://a']\norder='fifo'\n[[class]]\nname='a'\nweight=2"),
        of("upstream.order", "'fifo'")
    );
    assert_eq!(
        upstream("servers=['http://a']\n[[class]]\nname='a'\nupstream=['c']"),
        of("class.upstream", "'c'")
    );
    assert_eq!(
        upstream("servers=['http://a']\nlimit='auto'\nthroughput_loss=5"),
        of("upstream.throughput_loss", "5")
    );
    assert_eq!(
        upstream("servers=['http://a']\nlimit=8\nthroughput_loss=0.1"),
        of("upstream.throughput_loss", "0.1")
    );
    assert_eq!(
        upstream("servers=['http://a']\nlimit_max=9"),
        of("upstream.limit_max", "9")
    );
    assert_eq!(
        upstream("servers=['http://a']\nshare_by='cookie:a b'"),
        of("upstream.share_by", "'cookie:a b'")
    );
    assert_eq!(
        upstream("servers=['http://a']\n[[class]]\nname=' '"),
        of("class.name", "' '")
    );
    assert_eq!(
        upstream("servers=['http://a']\nkind=['path', 'verb']"),
        of("upstream.kind", "'verb'")
    );
    assert_eq!(
        upstream("servers=['http://a']\nkind=['header:a b']"),
        of("upstream.kind", "'header:a b'")
    );
    assert_eq!(
        upstream("servers=['http://a']\nkind=['header:x', 'path', 'header:X']"),
        of("upstream.kind", "'header:X'")
    );
    assert_eq!(
        upstream("servers=['http://a']\nhealth={path='x'}"),
        of("upstream.health.path", "'x'")
    );
    assert_eq!(
        upstream("servers=['https://a']\nca='/nowhere.pem'"),
        of("upstream.ca", "'/nowhere.pem'")
    );
}

#[test]
fn a_route_knows_its_upstream() {
    let proxy = build(&format!(
        "{APP}[[route]]\npath='/api'\nupstream='app'\nclass=1\nhosts=['a', '*.b']"
    ))
    .unwrap();
    let route = proxy.route(Some("x.b"), "/api/y").unwrap();
    assert_eq!((route.upstream(), route.class()), ("app", Some(1)));
    assert!(proxy.route(Some("c"), "/api").is_none());
    assert!(proxy.route(Some("a"), "/").is_none());
}

/// Whether the server of the one upstream is the same in both once the later one is in force.
fn has_the_same_server(before: &Proxy, after: &Proxy) -> bool {
    assert!(Rc::ptr_eq(&before.upstreams[0], &after.upstreams[0]));
    let server = before.upstreams[0].settings().servers[0].clone();
    after.take_over();
    Arc::ptr_eq(&server, &after.upstreams[0].settings().servers[0])
}

#[test]
fn an_upstream_outlives_a_reload_and_so_does_a_server_that_is_still_named() {
    let text = format!("{APP}[[route]]\npath='/'\nupstream='app'");
    let before = build(&text).unwrap();
    for (changed, is_same) in [
        (format!("# moved\n{text}"), true),
        (text.replace("servers", "limit = 3\nservers"), true),
        (text.replace("3000", "3001"), false),
    ] {
        let after = build_after(&changed, Some(&before)).unwrap();
        assert_eq!(has_the_same_server(&before, &after), is_same, "{changed}");
    }
}

#[test]
fn a_server_with_tls_does_too_unless_its_certificates_have_changed() {
    let certificate = || {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        made.cert.pem()
    };
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, certificate()).unwrap();
    let text = format!(
        "[[upstream]]\nname = 'app'\nservers = ['https://localhost:3000']\nca = '{}'\n[[route]]\npath='/'\nupstream='app'",
        ca.display()
    );
    let again = |before: &Proxy| build_after(&text, Some(before));
    let before = build(&text).unwrap();
    let same = again(&before).unwrap();
    assert!(has_the_same_server(&before, &same));
    std::fs::write(&ca, certificate()).unwrap();
    let changed = again(&same).unwrap();
    assert!(!has_the_same_server(&same, &changed));
    std::fs::write(&ca, "").unwrap();
    assert!(again(&changed).is_err());
}
