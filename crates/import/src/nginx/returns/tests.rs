//! Single directives, and the redirects that they become.

use super::*;

fn shown(redirects: &[Redirect]) -> String {
    let shown = redirects.iter();
    let shown = shown.map(|own| format!("{} > {} {}", own.from, own.to, own.status));
    shown.collect::<Vec<_>>().join(", ")
}

fn returned(text: &str, paths: &[&str]) -> String {
    returned_in(text, paths, None)
}

fn returned_in(text: &str, paths: &[&str], expression: Option<&str>) -> String {
    let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
    let place = Place {
        scheme: Some("http"),
        name: Some("a.org"),
        paths: &paths,
        expression,
    };
    match read_return(&Directive::of_words(text), place) {
        Ok(Return::Redirect(redirects)) => shown(&redirects),
        Ok(other) => format!("{other:?}"),
        Err(why) => format!("not: {why}"),
    }
}

#[test]
fn returns_are_redirects_or_answers() {
    for (text, paths, expected) in [
        (
            "return 301 https://$host$request_uri",
            &["/*"][..],
            "/* > https://$host/$1 301",
        ),
        (
            "return 301 https://b.org$request_uri",
            &["/x*"],
            "/* > https://b.org/$1 301",
        ),
        (
            "return 308 $scheme://www.b.org$uri$is_args$args",
            &["/*"],
            "/* > http://www.b.org/$1 308",
        ),
        (
            "return https://$server_name/",
            &["/*"],
            "/* > https://a.org/ 302",
        ),
        ("return 303 /b", &["/a"], "/a > /b 302"),
        (
            "return 301 $scheme://$host/new",
            &["/old*"],
            "/old* > http://$host/new 301",
        ),
        (
            "return 301 http://$host/older",
            &["/old*"],
            "/old > http://$host/older 301, /old/* > http://$host/older 301",
        ),
        (
            "return 302 http://$host/two?a=b",
            &["/one"],
            "/one > http://$host/two?a=b 302",
        ),
        (
            "return 301 /new$request_uri",
            &["/old/*"],
            "/old/* > /new/old/$1 301",
        ),
        (
            "return 301 /a.php$request_uri",
            &["/a*"],
            "/a > /a.php/a 301, /a/* > /a.php/a/$1 301",
        ),
        ("return 404", &["/*"], "Fixed(404, None)"),
        ("return 200 ok", &["/*"], "Fixed(200, Some(\"ok\"))"),
        ("return 444", &["/*"], "Close"),
    ] {
        assert_eq!(returned(text, paths), expected, "{text}");
    }
    for (text, paths) in [
        ("return 301 $scheme://$host/a", &["/a*"][..]),
        ("return 301 $scheme://$host/a", &["/*"]),
        ("return 301 http://$host$request_uri", &["/a*"]),
    ] {
        assert_eq!(returned(text, paths), "not: it leads to itself", "{text}");
    }
    for text in [
        "return 301 https://$x/",
        "return 999",
        "return 200 $host",
        "return 100",
    ] {
        assert!(returned(text, &["/*"]).starts_with("not: "), "{text}");
    }
}

#[test]
fn a_group_of_the_expression_is_not_the_whole_path() {
    for (text, paths, expression, expected) in [
        (
            "return 301 https://blog.b.org/$1",
            "/blog/*",
            "^/blog/(.*)$",
            "/blog/* > https://blog.b.org/$1 301",
        ),
        (
            "return 301 /new/$1",
            "/old/*",
            "^/old/(.*)$",
            "/old/* > /new/$1 301",
        ),
        (
            "return 302 /new/${1}.html?p=$1",
            "/old/*",
            "^/old/(.*)",
            "/old/* > /new/$1.html?p=$1 302",
        ),
        (
            "return 301 https://b.org$1$is_args$args",
            "*",
            "^(.*)$",
            "/* > https://b.org/$1 301",
        ),
    ] {
        let really = returned_in(text, &[paths], Some(expression));
        assert_eq!(really, expected, "{text} {expression}");
    }
    for (text, expression) in [
        ("return 301 https://b.org/$1", None),
        ("return 301 https://b.org/${1}x", None),
        ("return 301 https://$1$request_uri", None),
        ("return 301 https://b.org/$1", Some("^/(a|b)/(.*)$")),
        ("return 301 https://b.org/$2", Some("^/(.*)$")),
        ("return 301 https://b.org/$10", Some("^/(.*)$")),
        ("return 301 https://b.org/$1", Some("/a/(.*)$")),
        ("return 301 https://b.org/$1", Some("^/a$")),
        ("return 301 https://b.org$uri$1", Some("^/(.*)$")),
    ] {
        let really = returned_in(text, &["/a*"], expression);
        assert!(
            really.starts_with("not: "),
            "{text} {expression:?} {really}"
        );
    }
}

/// What is known of requests in clear text.
const CLEAR_TEXT: Place<'_> = Place {
    scheme: Some("http"),
    name: None,
    paths: &[],
    expression: None,
};

#[test]
fn a_rewrite_to_the_whole_path_is_about_its_own_paths() {
    for (text, expected) in [
        (
            "rewrite ^/blog/ https://b.org$request_uri? permanent",
            "/blog/* > https://b.org/blog/$1 301",
        ),
        (
            "rewrite ^/old$ https://b.org$request_uri permanent",
            "/old > https://b.org/old 301",
        ),
        (
            "rewrite ^/a/?$ https://b.org/x$uri permanent",
            "/a > https://b.org/x/a 301, /a/ > https://b.org/x/a/ 301",
        ),
        (
            "rewrite ^/a(.*)$ https://b.org$document_uri redirect",
            "/a* > https://b.org/a$1 302",
        ),
        (
            "rewrite ^/$ https://b.org$request_uri permanent",
            "/ > https://b.org/ 301",
        ),
        (
            "rewrite ^/(.*)$ https://b.org$request_uri permanent",
            "/* > https://b.org/$1 301",
        ),
    ] {
        assert_eq!(rewritten(text), expected, "{text}");
    }
}

#[test]
fn what_follows_a_group_is_the_query_or_no_variable() {
    for query in [
        "?$args",
        "?$query_string",
        "$is_args$args",
        "$is_args$query_string",
    ] {
        let text = format!("rewrite ^/old/(.*)$ /new/$1{query} permanent");
        assert_eq!(rewritten(&text), "/old/* > /new/$1 301", "{text}");
    }
    for to in [
        "/new/$1?id=$arg_id",
        "/new/$1$scheme",
        "https://b.org/$1?$args&x=y",
        "/new/$1/$2",
        "$scheme://b.org$uri$1",
        "/new/$request_uri/x",
    ] {
        let text = format!("rewrite ^/old/(.*)$ {to} permanent");
        assert!(rewritten(&text).starts_with("not: "), "{text}");
    }
    assert!(Redirect::new("/a", "/b$args", 301).is_err());
    assert!(Redirect::new("/*", "https://$host/$1", 301).is_ok());
}

fn rewritten(text: &str) -> String {
    match read_rewrite(&Directive::of_words(text), CLEAR_TEXT) {
        Ok(Rewrite::Redirect(redirects)) => shown(&redirects),
        Ok(other) => format!("{other:?}"),
        Err(why) => format!("not: {why}"),
    }
}

#[test]
fn the_simple_rewrites_are_redirects() {
    for (text, expected) in [
        (
            "rewrite ^/old/(.*)$ /new/$1 permanent",
            "/old/* > /new/$1 301",
        ),
        ("rewrite ^/a$ /b redirect", "/a > /b 302"),
        ("rewrite ^/a/?$ /b redirect", "/a > /b 302, /a/ > /b 302"),
        (
            "rewrite ^(.*)$ https://b.org$1 permanent",
            "/* > https://b.org/$1 301",
        ),
        (
            "rewrite ^ https://$host$request_uri? permanent",
            "/* > https://$host/$1 301",
        ),
        (
            "rewrite ^/feed\\.xml$ https://b.org/rss",
            "/feed.xml > https://b.org/rss 302",
        ),
    ] {
        assert_eq!(rewritten(text), expected, "{text}");
    }
    let strip = Directive::of_words("rewrite ^/api/(.*)$ /$1 break");
    let strip = read_rewrite(&strip, CLEAR_TEXT);
    assert_eq!(strip, Ok(Rewrite::Strip("/api/".into())));
    for text in [
        "rewrite ^/a/(.*)/b /c/$1 permanent",
        "rewrite ^ /index.php last",
    ] {
        assert!(rewritten(text).starts_with("not: "), "{text}");
    }
}
