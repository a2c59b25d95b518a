//! Which requests are in which class.

use super::*;
use hyper::HeaderMap;
use hyper::Uri;
use hyper::header::{COOKIE, HeaderValue};
use proptest::prelude::*;

#[derive(Deserialize)]
struct Tables {
    class: Vec<ClassTable>,
}

fn build(text: &str) -> Result<Classes, Misconfigured> {
    let tables: Tables = toml::from_str(text).unwrap();
    Classes::build(&tables.class, None, &["app", "chat"])
}

fn headers(fields: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::try_from(*name).unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn uri(text: &str) -> Uri {
    text.parse().unwrap()
}

fn subject(headers: &HeaderMap) -> RequestFacts<'_> {
    static CART: std::sync::LazyLock<Uri> = std::sync::LazyLock::new(|| uri("/cart/17"));
    RequestFacts {
        upstream: "app",
        route: "/",
        host: "shop.example.org",
        uri: &CART,
        method: "GET",
        headers,
        body_bytes: None,
        address: [10, 1, 2, 3].into(),
        tls_name: "",
        body: None,
    }
}

/// Whether a class that names this has a request with these fields in its head.
fn is_in(names: &str, fields: &[(&str, &str)]) -> bool {
    let classes = build(&format!("[[class]]\nname = 'a'\n{names}")).unwrap();
    classes.number_of(subject(&headers(fields))) == Some(0)
}

#[test]
fn all_that_is_named_must_fit() {
    for (names, wanted) in [
        ("", true),
        ("path = ['/cart*']", true),
        ("path = ['/cart']", false),
        ("method = ['GET', 'HEAD']", true),
        ("method = ['POST']", false),
        ("host = ['SHOP.example.org']", true),
        ("host = ['*.example.org']", true),
        ("host = ['*.shop.example.org']", false),
        ("host = ['shop.*']", true),
        ("upstream = ['app']", true),
        ("upstream = ['chat']", false),
        ("address = ['10.0.0.0/8']", true),
        ("address = ['192.0.2.1']", false),
        ("tls_name = ['shop.example.org']", false),
        ("path = ['/cart*']\nmethod = ['POST']", false),
    ] {
        assert_eq!(is_in(names, &[]), wanted, "{names}");
    }
}

#[test]
fn heads_and_cookies_fit_where_they_say_one_thing() {
    let tier = "header = { X-Tier = ['gold*'] }";
    assert!(is_in(tier, &[("x-tier", "golden")]));
    assert!(!is_in(tier, &[("x-tier", "silver")]));
    assert!(!is_in(tier, &[]));
    assert!(
        !is_in(tier, &[("x-tier", "gold"), ("x-tier", "gold")]),
        "twice"
    );
    let plan = "cookie = { plan = ['pro'] }";
    assert!(is_in(plan, &[("cookie", "a=1; plan=pro; b")]));
    assert!(is_in(plan, &[("cookie", "a=1"), ("cookie", "plan=pro")]));
    assert!(!is_in(plan, &[("cookie", "xplan=pro")]));
    assert!(!is_in(plan, &[("cookie", "plan=pro; plan=free")]), "twice");
}

/// RFC 9110, 11.1: schemes have no case; what follows them has, and so has a key without one.
#[test]
fn the_scheme_of_a_credential_has_no_case() {
    for (pattern, value, wanted) in [
        ("Bearer*", "Bearer x", true),
        ("Bearer*", "bearer x", true),
        ("bearer*", "BEARER  x", true),
        ("Bear*", "bearer x", true),
        ("Basic*", "Bearer x", false),
        ("Bearer sk-*", "bearer sk-1", true),
        ("Bearer sk-*", "bearer SK-1", false),
        ("Bearer SK-*", "bearer SK-1", true),
        ("Bearer x", "bearer x", true),
        ("sk-A*", "sk-Ab", true),
        ("sk-A*", "sk-ab", false),
        ("sk-A", "sk-a", false),
    ] {
        for name in ["Authorization", "proxy-authorization"] {
            let names = format!("header = {{ {name} = ['{pattern}'] }}");
            assert_eq!(is_in(&names, &[(name, value)]), wanted, "{pattern} {value}");
        }
        let names = format!("header = {{ x-key = ['{pattern}'] }}");
        let with_case = match pattern.strip_suffix('*') {
            Some(beginning) => value.starts_with(beginning),
            None => value == pattern,
        };
        assert_eq!(
            is_in(&names, &[("x-key", value)]),
            with_case,
            "{pattern} {value}"
        );
    }
}

#[test]
fn an_address_in_place_of_a_host_has_many_spellings() {
    let none = headers(&[]);
    for (pattern, host, wanted) in [
        ("[2001:DB8:0::1]", "[2001:db8::1]", Some(0)),
        ("[2001:db8::1]", "[2001:0db8:0:0:0:0:0:1]", Some(0)),
        ("[2001:db8:*", "[2001:0DB8::1]", Some(0)),
        ("[2001:db8::1]", "[2001:db8::2]", Some(1)),
    ] {
        let classes = build(&format!("[[class]]\nname='a'\nhost=['{pattern}']")).unwrap();
        let of = RequestFacts {
            host,
            ..subject(&none)
        };
        assert_eq!(classes.number_of(of), wanted, "{pattern} {host}");
    }
}

#[test]
fn the_first_that_fits_counts_and_the_number_behind_the_last_is_of_none() {
    let text = "[[class]]\nname='a'\npath=['/x']\n[[class]]\nname='b'\npath=['/cart*']";
    let classes = build(text).unwrap();
    let none = headers(&[]);
    let of = |path| {
        let of = RequestFacts {
            uri: &uri(path),
            ..subject(&none)
        };
        classes.number_of(of).unwrap()
    };
    assert_eq!(["/x", "/cart/1", "/y"].map(of), [0, 1, 2]);
    assert_eq!(classes.goals().len(), 3);
    assert!(Classes::default().goals().is_empty());
}

#[test]
fn a_body_is_needed_where_it_decides() {
    let text = "[[class]]\nname='vip'\nheader={x-vip=['1']}\n\
                [[class]]\nname='small'\npath=['/v1/*']\nbody={model='small*', stream=[true]}\n\
                [[class]]\nname='chat'\nupstream=['chat']\nbody={'meta.tier'=1}\n\
                [[class]]\nname='v1'\npath=['/v1/*']";
    let classes = build(text).unwrap();
    let of = |path, fields: &[(&str, &str)], body: Option<&[(&str, &str)]>| {
        let body = body.map(BodyFields::of);
        classes.number_of(RequestFacts {
            uri: &uri(path),
            body: body.as_ref(),
            ..subject(&headers(fields))
        })
    };
    assert_eq!(of("/v1/x", &[("x-vip", "1")], None), Some(0), "the first");
    assert_eq!(of("/v1/x", &[], None), None, "the second may fit");
    assert_eq!(of("/v2", &[], None), Some(4), "only the head decides");
    let both = [("model", "small-3"), ("stream", "true")];
    assert_eq!(of("/v1/x", &[], Some(&both)), Some(1));
    assert_eq!(of("/v1/x", &[], Some(&both[..1])), Some(3));
    assert_eq!(of("/v1/x", &[], Some(&[])), Some(3));
    let names = |upstream| {
        let fields = classes.fields_at(upstream).into_iter();
        fields.map(|path| path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names("app"), ["model", "stream"]);
    assert_eq!(names("chat"), ["meta.tier", "model", "stream"]);
}

#[test]
fn mistakes_say_where_and_what_would_be_right() {
    for (text, key, said) in [
        (
            "name='a'\nupstream=['ap']",
            "class.upstream",
            "there are: app, chat",
        ),
        ("name='a'\npriority=0", "class.priority", "1 (first) to 200"),
        (
            "name='a'\ntarget={mean='30'}",
            "class.target.mean",
            "no unit",
        ),
        (
            "name='a'\ntarget={p95='30ms', p50='40ms'}",
            "class.target.p95",
            "less than p50, which is never above it; write \"40ms\" or more",
        ),
        ("name='a'\nbody={}", "class.body", "leave body out"),
        ("name='a'\nheader={}", "class.header", "leave header out"),
        ("name='a'\ncookie={}", "class.cookie", "leave cookie out"),
        (
            "name='a'\nweight=2\ntarget={mean='1s'}",
            "class.weight",
            "not both",
        ),
        (
            "name='a'\nheader={'a b'=['x']}",
            "class.header",
            "not a name of a header",
        ),
        ("name='a'\nmethod=['get']", "class.method", "in capitals"),
        (
            "name='a'\nbody={'a..b'='x'}",
            "class.body",
            "`a..b` is not a field",
        ),
        (
            "name='a'\nbody={model=[]}",
            "class.body.model",
            "leave body.model out",
        ),
        (
            "name='a'\nbody={model=['x*']}\n[[class]]\nname='b'\nbody={model='xy'}",
            "class.name",
            "takes all that fit",
        ),
        ("name='a'\nhost=['*.a.*']", "class.host", "two stars"),
        ("name='a'\npath=[]", "class.path", "leave path out"),
        (
            "name='a'\n[[class]]\nname='b'\npath=['/x']",
            "class.name",
            "takes all that fit",
        ),
        (
            "name='a'\npath=['/x']\n[[class]]\nname='a'",
            "class.name",
            "twice",
        ),
        (
            "name='a'\nheader={X-A=['1*']}\n[[class]]\nname='b'\nheader={x-a=['12']}",
            "class.name",
            "takes all that fit",
        ),
    ] {
        let error = build(&format!("[[class]]\n{text}")).unwrap_err();
        assert_eq!(error.key, key, "{text}: {}", error.message);
        assert!(error.message.contains(said), "{text}: {}", error.message);
    }
}

/// That classes which name these are refused for that, at the value or the name of its key.
fn refused(cases: &[(&str, &str, &str)]) {
    for (names, key, said) in cases {
        let text = format!("[[class]]\nname='a'\n{names}");
        let error = build(&text).unwrap_err();
        assert_eq!(error.key, format!("class.{key}"), "{names}");
        assert!(error.message.contains(said), "{names}: {}", error.message);
        let at = error.span.unwrap().start;
        assert!(at >= text.len() - names.len(), "{names}");
    }
}

#[test]
fn paths_and_methods_that_no_request_has_are_mistakes() {
    refused(&[
        (
            "path=['*.php']",
            "path",
            "name their upstream in class.upstream",
        ),
        (
            "path=['api']",
            "path",
            "a path begins with /; write \"/api\"",
        ),
        ("path=['']", "path", "a path begins with /"),
        ("path=['/a*z']", "path", "only at the end; write \"/a*\""),
        ("path=['/a?b=1']", "path", "no ? and no #; write \"/a\""),
        ("path=['/a b']", "path", "%20"),
        (
            "path=['/\u{fc}bersicht*']",
            "path",
            "percent-encoded; write \"/%C3%BCbersicht*\"",
        ),
        ("path=['/<a>']", "path", "write \"/%3Ca%3E\""),
        ("path=['/`']", "path", "write \"/%60\""),
        ("method=['get']", "method", "write \"GET\""),
        ("method=['']", "method", "is not a method"),
        ("method=['G T']", "method", "is not a method"),
        ("method=['P*T']", "method", "only at the end"),
    ]);
}

#[test]
fn hosts_that_no_request_has_are_mistakes() {
    refused(&[
        (
            "host=['a.example:8030']",
            "host",
            "a host has no port here; write \"a.example\"",
        ),
        (
            "host=['https://a.example/']",
            "host",
            "not a URL; write \"a.example\"",
        ),
        (
            "host=['a.example.']",
            "host",
            "no dot at its end; write \"a.example\"",
        ),
        (
            "host=['*a.example']",
            "host",
            "whole labels; write \"*.a.example\"",
        ),
        ("host=['*.']", "host", "a name behind it"),
        ("host=['a.*.example']", "host", "only at the end"),
        ("host=['\u{fc}.example']", "host", "xn--"),
        ("host=['a/b']", "host", "is not a host"),
        ("host=['::1']", "host", "is not a host"),
        ("host=['[foo]']", "host", "is not a host"),
        (
            "host=['[2001:0db8:000:*']",
            "host",
            "shortest form; write \"[2001:db8:0:*\"",
        ),
        ("host=['[::1]:80']", "host", "no port here; write \"[::1]\""),
        (
            "tls_name=['a.example:443']",
            "tls_name",
            "a host has no port here",
        ),
        ("tls_name=['*.a.*']", "tls_name", "two stars"),
        ("tls_name=['192.0.2.1']", "tls_name", "not for addresses"),
        ("tls_name=['[::1]']", "tls_name", "not for addresses"),
    ]);
}

#[test]
fn values_that_no_request_has_are_mistakes() {
    refused(&[
        (
            "header={k=['a*z']}",
            "header.k",
            "only at the end; write \"a*\"",
        ),
        (
            "header={k=['*z']}",
            "header.k",
            "only at the end; list the values",
        ),
        ("header={k=['\u{fc}']}", "header.k", "beyond ASCII"),
        ("header={k=[' a']}", "header.k", "write \"a\""),
        ("cookie={k=['a*z']}", "cookie.k", "only at the end"),
        (
            "cookie={k=['a;b']}",
            "cookie.k",
            "ends a cookie; write \"a\"",
        ),
        ("cookie={'a b'=['x']}", "cookie", "not a name of a cookie"),
        ("cookie={''=['x']}", "cookie", "not a name of a cookie"),
        ("body={k='gpt-*-mini'}", "body.k", "write \"gpt-*\""),
    ]);
}

#[test]
fn what_requests_may_have_is_none() {
    for names in [
        "path=['*', '/', '/a*', '/a%20b', '/a\"b', '/%C3%BC*', '/a^|']",
        "host=['', '*', '*.a.example', 'a.*', 'a_b', '192.0.2.1', '192.0.*', '[::1]', '[2001:*']",
        "host=['[2001:0*', '[2001:0:*', '[::*', '[*', '[2001:0DB8::1]']",
        "tls_name=['', 'A.example', '*.a.example']",
        "method=['GET', 'M-SEARCH', 'PROP*', '*']",
        "header={Accept=['*/*', 'text/html, */*;q=0.8'], k=['', '*', 'a b *']}",
        "cookie={plan=['', 'pro*']}",
        "body={k=['*', 1, true]}",
    ] {
        let built = build(&format!("[[class]]\nname='a'\n{names}"));
        assert!(built.is_ok(), "{names}: {}", built.unwrap_err().message);
    }
}

proptest! {
    #[test]
    fn a_cookie_is_found_among_any_others(
        others in prop::collection::vec(prop::collection::vec(
            any::<u8>().prop_filter("a field's, of no name", |byte| *byte >= 0x20 && *byte != 0x7f
                && !b"=;".contains(byte)), 0..8), 0..4),
        at in 0_usize..4,
        value in "[a-z]{0,6}",
    ) {
        let mut pairs = others;
        pairs.insert(at.min(pairs.len()), format!("plan={value}").into_bytes());
        let mut fields = HeaderMap::new();
        fields.insert(COOKIE, HeaderValue::from_bytes(&pairs.join(&b"; "[..])).unwrap());
        prop_assert_eq!(only_cookie(&fields, "plan"), Some(value.as_str()));
        prop_assert_eq!(only_cookie(&fields, "pla"), None);
    }
}
