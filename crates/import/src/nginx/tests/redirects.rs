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
fn behind_what_keeps_clients_out_an_answer_is_no_answer() {
    let of = |before: &str, last: &str| {
        led(&format!(
            "server {{ listen 80; server_name x.org; {before} {last} }}"
        ))
    };
    let guard = "if ($remote_addr !~ ^10\\.) { return 403; }";
    let told = "if ($uri = /status) { return 200 \"build 7\"; }";
    let why = "# if ($uri = /status) {...}: these paths get 403, as an if before it may";
    for (last, all) in [
        ("return 200 ok;", "[/*] 403"),
        ("return 404;", "[/*] 404"),
        ("return 301 https://b.org/;", "/* > https://b.org/"),
    ] {
        let own = of(&format!("{guard} {told}"), last);
        assert!(own.contains(&"[/status] 403".to_owned()), "{own:?}");
        assert!(own.contains(&all.to_owned()), "{own:?}");
        assert!(!own.iter().any(|own| own.ends_with(" 200")), "{own:?}");
        assert!(own.iter().any(|own| own.starts_with(why)), "{own:?}");
        assert!(
            own.iter().any(|own| own.starts_with("# if ($remote_addr ")),
            "{own:?}"
        );
        // nginx does not get to the guard.
        let own = of(&format!("{told} {guard}"), last);
        assert!(own.contains(&"[/status] 200".to_owned()), "{own:?}");
        assert!(!own.iter().any(|own| own.starts_with(why)), "{own:?}");
    }
    for guard in [
        "if ($uri !~ ^/s) { return 403; }",
        "if ($http_x_key != secret) { return 403; }",
        "if ($remote_addr = 10.0.0.1) { return 301 https://c.org/; }",
    ] {
        let own = of(&format!("{guard} {told}"), "return 404;");
        assert!(own.contains(&"[/status] 403".to_owned()), "{guard} {own:?}");
    }
    for other in [
        "if ($uri = /x) { return 403; }",
        "if ($http_user_agent ~ bot) { return 403; }",
        "if ($scheme = https) { return 403; }",
    ] {
        let own = of(&format!("{other} {told}"), "return 404;");
        assert!(own.contains(&"[/status] 200".to_owned()), "{other} {own:?}");
    }
    // A refusal and a redirect give nothing away.
    let others = "if ($uri = /old) { return 410; } if ($uri = /a) { return 302 /b; }";
    let own = of(&format!("{guard} {others}"), "return 404;");
    for expected in ["[/old] 410", "/a > /b", "[/*] 404"] {
        assert!(own.contains(&expected.to_owned()), "{own:?}");
    }
}

#[test]
fn a_group_of_a_location_leads_not_to_itself() {
    let of = |server: &str, to: &str| {
        led(&format!(
            "server {{ {server} server_name a.org; location ~ ^/app/ {{ proxy_pass http://a; }} \
             location ~ ^/(.*)$ {{ return 301 {to}; }} }}"
        ))
    };
    let tls = "listen 443 ssl; ssl_certificate /c; ssl_certificate_key /k;";
    for (server, to) in [
        (tls, "https://$host/app/$1"),
        (tls, "$scheme://$host/app/$1"),
        ("listen 80;", "http://$host/app/$1"),
        ("listen 80;", "$scheme://$host/$1"),
    ] {
        let told = of(server, to);
        assert!(!told.iter().any(|own| own.contains(" > ")), "{to} {told:?}");
        assert!(
            told.iter().any(|own| own.ends_with(" 501")),
            "{to} {told:?}"
        );
        let why = format!("# return 301 {to}: it leads to itself");
        assert!(
            told.iter().any(|own| own.starts_with(&why)),
            "{to} {told:?}"
        );
    }
    for (server, to) in [
        ("listen 80;", "https://$host/app/$1"),
        (tls, "https://b.org/app/$1"),
    ] {
        let told = of(server, to);
        assert!(told.contains(&format!("/* > {to}")), "{to} {told:?}");
    }
    // A site for each scheme: one leads to the other.
    let told = of(&format!("listen 80; {tls}"), "https://$host/app/$1");
    let led = told.iter().filter(|own| own.contains(" > "));
    assert_eq!(led.count(), 1, "{told:?}");
    assert!(told.iter().any(|own| own.ends_with(" 501")), "{told:?}");
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
