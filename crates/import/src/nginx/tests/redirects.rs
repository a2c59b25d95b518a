//! Redirects: from which paths, where to, and what comes before them.

use super::lines;

/// Each redirect with its paths, each answer with its own, in their order; comments at the end.
fn led(text: &str) -> Vec<String> {
    let mut told = Vec::new();
    let mut left_out = Vec::new();
    let mut paths = String::new();
    let mut from = String::new();
    for line in lines(text) {
        if let Some(why) = line.strip_prefix("# not carried over: ") {
            left_out.push(format!("# {why}"));
        } else if let Some(own) = line.strip_prefix("paths = ") {
            paths = own.to_owned();
        } else if let Some(own) = line.strip_prefix("from = ") {
            from = own.to_owned();
        } else if let Some(own) = line.strip_prefix("to = ") {
            told.push(format!("{from} > {own}").replace('"', ""));
        } else if let Some(own) = line.strip_prefix("status = ").filter(|own| own.len() == 3)
            && !own.starts_with('3')
        {
            told.push(format!("{paths} {own}").replace('"', ""));
        }
    }
    told.extend(left_out);
    told
}

/// That these are the redirects and answers, and that nothing is left out.
fn leads(text: &str, expected: &[&str]) {
    assert_eq!(led(text), expected, "{text}");
}

#[test]
fn a_group_of_a_location_is_the_rest_of_its_paths() {
    leads(
        "server { root /srv; location ~ ^/blog/(.*)$ { return 301 https://blog.example.org/$1; } }",
        &["/blog/* > https://blog.example.org/$1"],
    );
    leads(
        "server { root /srv; location ~ ^/old/(.*)$ { return 301 /new/$1; } }",
        &["/old/* > /new/$1"],
    );
    for location in [
        "~ ^/(a|b)/(.*)$ { return 301 https://b.org/$1/$2; }",
        "~* ^/old/(.*)$ { return 301 /new/$1; }",
        "~ ^/old/(.*)$ { if ($uri ~ x(.*)) { set $x 1; } return 301 /new/$1; }",
        "~ ^/old/(.*)$ { return 301 /new/$2; }",
    ] {
        let text = format!("server {{ root /srv; location {location} }}");
        let told = led(&text);
        assert!(told[0].ends_with(" 501"), "{text} {told:?}");
        assert!(
            told.iter().any(|own| own.starts_with("# return 301 ")),
            "{told:?}"
        );
        assert!(!told.iter().any(|own| own.contains(" > ")), "{told:?}");
    }
    let host =
        "server { server_name a.org; if ($host ~ ^(.*)\\.org$) { return 301 https://b.org/$1; } }";
    let told = led(host);
    assert!(told.contains(&"[/*] 501".to_owned()), "{told:?}");
    assert!(!told.iter().any(|own| own.contains(" > ")), "{told:?}");
}

#[test]
fn a_rewrite_to_the_whole_path_leads_no_other_paths() {
    let told = led(
        "server { rewrite ^/blog/ https://blog.example.org$request_uri? permanent; \
         rewrite ^/a$ /b permanent; location / { proxy_pass http://app; } }",
    );
    assert_eq!(
        told,
        ["/blog/* > https://blog.example.org/blog/$1", "/a > /b"]
    );
    let text = "server { location / { rewrite ^/old$ https://new.org$request_uri permanent; \
         proxy_pass http://app; } }";
    leads(text, &["/old > https://new.org/old"]);
    assert!(lines(text).contains(&"[[route]]".to_owned()));
    // What comes before one of all stays before it.
    leads(
        "server { rewrite ^/a$ /b permanent; rewrite ^ https://b.org$request_uri? permanent; \
         location / { root /srv; } }",
        &["/a > /b", "/* > https://b.org/$1"],
    );
}

#[test]
fn variables_are_not_sent_to_clients() {
    leads(
        "server { root /srv; rewrite ^/old/(.*)$ /new/$1?$args permanent; }",
        &["/old/* > /new/$1"],
    );
    leads(
        "server { rewrite ^(.*)$ https://b.org$1$is_args$args permanent; \
         location / { root /srv; } }",
        &["/* > https://b.org/$1"],
    );
    for to in [
        "/new/$1?id=$arg_id",
        "/new/$1$scheme",
        "https://b.org/$1/$remote_addr",
    ] {
        let told = led(&format!(
            "server {{ root /srv; rewrite ^/old/(.*)$ {to} permanent; }}"
        ));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("# rewrite ^/old/(.*)$ "), "{told:?}");
    }
}

#[test]
fn what_stands_before_a_return_comes_before_it() {
    let all = "return 301 https://new.org$request_uri;";
    let before =
        "rewrite ^/shop$ https://shop.org/ permanent; if ($uri = /healthz) { return 200 ok; }";
    let first = ["/shop > https://shop.org/", "[/healthz] 200"];
    let last = "/* > https://new.org/$1";
    let told = led(&format!("server {{ server_name old.org; {before} {all} }}"));
    // The redirects of the site are written before its locations, and looked at behind them.
    assert_eq!(told, [last, first[0], first[1]]);
    let told = led(&format!("server {{ server_name old.org; {all} {before} }}"));
    assert_eq!(told, [last]);
    let told = led(&format!(
        "server {{ server_name old.org; {before} return 410; }}"
    ));
    assert_eq!(told, [first[0], first[1], "[/*] 410"]);
    let by_scheme = format!(
        "server {{ server_name a.org; {before} if ($scheme = http) {{ \
         return 301 https://$host$request_uri; }} root /srv; }}"
    );
    assert_eq!(
        led(&by_scheme),
        ["/* > https://$host/$1", first[0], first[1]]
    );
    let by_host = format!(
        "server {{ listen 80 default_server; return 404; }} \
         server {{ server_name a.org; {before} if ($host = a.org) {{ {all} }} }}"
    );
    assert_eq!(led(&by_host), ["[/*] 404", last, first[0], first[1]]);
}

#[test]
fn what_cannot_be_said_before_a_return_is_named() {
    for (before, expected) in [
        ("if ($uri ~ ^/a) { return 403; }", "[/a*] 403"),
        (
            "if ($uri ~ ^/a/) { return 302 https://a.org/; }",
            "/* > https://a.org/",
        ),
        ("if ($uri = /a) { return 302 /b; }", "/a > /b"),
    ] {
        let text = format!("server {{ server_name x.org; {before} return 301 https://b.org/; }}");
        leads(&text, &["/* > https://b.org/", expected]);
    }
    for before in [
        "rewrite ^/a/(.*)$ /b/$1 last;",
        "if ($uri ~ \\.[a-f]x$) { return 200 ok; }",
        "if ($request_uri = /a) { return 200 ok; }",
        "if ($http_user_agent ~ bot) { return 403; }",
        "if ($request_method = OPTIONS) { return 204; }",
        "if ($uri ~ ^/a) { rewrite ^ /b permanent; }",
    ] {
        let text = format!("server {{ server_name x.org; {before} return 301 https://b.org/; }}");
        let told = led(&text);
        assert_eq!(told.len(), 2, "{text} {told:?}");
        assert_eq!(told[0], "/* > https://b.org/");
        let name = before.split(' ').next().unwrap();
        assert!(told[1].starts_with(&format!("# {name} ")), "{told:?}");
    }
}

#[test]
fn a_redirect_whatever_the_capitals_is_for_those_that_are_written() {
    let told = led("server { root /srv; location ~* ^/old { return 301 /new; } }");
    assert_eq!(told[..2], ["/old* > /new", "[/old*] 501"], "{told:?}");
    assert!(
        told[2].contains("redirects tell capitals apart"),
        "{told:?}"
    );
    leads(
        "server { root /srv; location ~* ^/old { return 301 https://b.org/; } }",
        &["/* > https://b.org/"],
    );
}
