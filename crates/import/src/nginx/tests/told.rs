//! What upstreams are told of requests, and redirects to the host that a client names.

use super::*;

/// The lines of a server that passes requests on with these headers.
fn passed(head: &str, headers: &str) -> Vec<String> {
    lines(&format!(
        "server {{ {head} server_name a.org; location / {{ proxy_pass http://127.0.0.1:1; {headers} }} }}"
    ))
}

fn remarks(lines: &[String]) -> Vec<&str> {
    let remarks = lines
        .iter()
        .filter_map(|line| line.strip_prefix("# not carried over: "));
    remarks.collect()
}

const TLS: &str = "listen 443 ssl; ssl_certificate /c.pem; ssl_certificate_key /k.pem;";

#[test]
fn a_header_that_is_told_alike_needs_no_word() {
    for (head, headers) in [
        ("", "proxy_set_header X-Forwarded-Proto $scheme"),
        ("", "proxy_set_header X-Forwarded-Proto \"${scheme}\""),
        ("", "proxy_set_header X-Forwarded-Proto http"),
        (TLS, "proxy_set_header X-Forwarded-Proto https"),
        ("", "proxy_set_header X-Forwarded-Host $host"),
        (
            "",
            "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for",
        ),
        ("", "proxy_set_header X-Real-IP $remote_addr"),
        ("", "proxy_set_header Upgrade $http_upgrade"),
        (
            "set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For;",
            "proxy_set_header X-Forwarded-Proto $http_x_forwarded_proto",
        ),
    ] {
        let lines = passed(head, &format!("{headers};"));
        assert_eq!(remarks(&lines), [""; 0], "{headers}");
    }
}

/// A server, a header, and what upstreams get.
const CARRIED: &[(&str, &str, &str)] = &[
    (
        "",
        "X-Forwarded-Proto https",
        "X-Forwarded-Proto = \"https\"",
    ),
    (
        TLS,
        "X-Forwarded-Proto http",
        "X-Forwarded-Proto = \"http\"",
    ),
    (
        "",
        "X-Forwarded-Proto $http_x_forwarded_proto",
        "X-Forwarded-Proto = \"$http_x_forwarded_proto\"",
    ),
    (
        "",
        "X-Forwarded-Host public.example.com",
        "X-Forwarded-Host = \"public.example.com\"",
    ),
    (
        "",
        "X-Real-IP $http_cf_connecting_ip",
        "X-Real-IP = \"$http_cf_connecting_ip\"",
    ),
    (
        "",
        "X-Forwarded-For $http_a",
        "X-Forwarded-For = \"$http_a\"",
    ),
    ("", "X-Forwarded-Port 443", "X-Forwarded-Port = \"443\""),
    (TLS, "X-Forwarded-Port 443", "X-Forwarded-Port = \"443\""),
    (
        "",
        "X-Forwarded-Port $server_port",
        "X-Forwarded-Port = \"$server_port\"",
    ),
    ("", "X-Forwarded-Ssl on", "X-Forwarded-Ssl = \"on\""),
    (TLS, "X-Forwarded-Ssl $https", "X-Forwarded-Ssl = \"on\""),
    ("", "X-Forwarded-Ssl $https", "X-Forwarded-Ssl = \"\""),
    (
        "",
        "X-Forwarded-Scheme $scheme",
        "X-Forwarded-Scheme = \"$scheme\"",
    ),
    (
        "",
        "X-Forwarded-Server $host",
        "X-Forwarded-Server = \"$host\"",
    ),
    (
        "",
        "X-Forwarded-Server $server_name",
        "X-Forwarded-Server = \"a.org\"",
    ),
    ("", "X-Scheme https", "X-Scheme = \"https\""),
    ("", "X-Scheme ${scheme}s", "X-Scheme = \"${scheme}s\""),
    ("set $key abc;", "X-Key $key", "X-Key = \"abc\""),
    ("", "X-URI $request_uri", "X-URI = \"$request_uri\""),
    ("", "Accept-Encoding \"\"", "Accept-Encoding = \"\""),
    ("", "Authorization \"\"", "Authorization = \"\""),
    (
        "",
        "Forwarded for=$remote_addr",
        "Forwarded = \"for=$remote_addr\"",
    ),
    (
        "set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For;",
        "X-Real-IP $remote_addr",
        "X-Real-IP = \"$remote_addr\"",
    ),
];

#[test]
fn a_header_that_is_told_otherwise_is_carried_over() {
    for (head, header, expected) in CARRIED {
        let lines = passed(head, &format!("proxy_set_header {header};"));
        assert_eq!(remarks(&lines), [""; 0], "{header}");
        let headers = lines.iter().find(|line| line.starts_with("headers = "));
        let expected = format!("headers = {{ {expected} }}");
        assert_eq!(headers, Some(&expected), "{header} {lines:?}");
    }
    has(
        "server { root /srv; location ~ \\.php$ { fastcgi_pass p:9000; \
         fastcgi_param HTTP_X_FORWARDED_PROTO https; fastcgi_param HTTP_X_KEY a$remote_addr; } }",
        &["headers = { X-Forwarded-Proto = \"https\", X-Key = \"a$remote_addr\" }"],
    );
}

#[test]
fn headers_are_inherited_as_nginx_does_and_upstreams_split_by_them() {
    let lines = lines(
        "server { proxy_set_header X-A 1; proxy_set_header Host $http_host; \
         location / { proxy_pass http://127.0.0.1:1; } \
         location /b/ { proxy_pass http://127.0.0.1:1; proxy_set_header X-B 2; \
         proxy_set_header Host $http_host; } \
         location /c/ { proxy_pass http://127.0.0.1:1; } }",
    );
    let of = |begin: &str| {
        let all = lines.iter().filter(|line| line.starts_with(begin));
        all.map(String::as_str).collect::<Vec<_>>()
    };
    let mut headers = of("headers = ");
    headers.sort_unstable();
    let expected = ["headers = { X-A = \"1\" }", "headers = { X-B = \"2\" }"];
    assert_eq!(headers, expected, "{lines:?}");
    assert_eq!(of("[[upstream]]").len(), 2, "{lines:?}");
    assert_eq!(of("[[route]]").len(), 3, "{lines:?}");
}

/// A server, a header, and why upstreams do not get it so.
const TOLD_OTHERWISE: &[(&str, &str, &str)] = &[
    (
        "",
        "X-Forwarded-Proto $proxy_protocol_addr",
        "upstreams get the scheme of the request",
    ),
    (
        "",
        "X-Forwarded-Host $hostname",
        "upstreams get the Host of the request",
    ),
    (
        "",
        "X-Real-IP $realip_remote_addr",
        "upstreams get the address that",
    ),
    (
        "",
        "X-Forwarded-For \"$proxy_add_x_forwarded_for, 1\"",
        "upstreams get the address that",
    ),
    (
        "",
        "X-Forwarded-Port $proxy_port",
        "upstreams get no such header",
    ),
    ("", "X-Id $request_id", "Sooner has no such variable"),
    (
        "",
        "Trailer a",
        "Sooner writes what belongs to the connection itself",
    ),
    (
        "",
        "Host $host:$server_port",
        "the client's own Host is passed on",
    ),
    (
        "",
        "Host $hostname",
        "Sooner has no variables; the client's own Host",
    ),
    ("", "Host \"\"", "this is no host; the client's own"),
];

#[test]
fn a_header_that_is_told_otherwise_is_named() {
    for (head, header, why) in TOLD_OTHERWISE {
        let lines = passed(head, &format!("proxy_set_header {header};"));
        let begin = format!("proxy_set_header {}: {why}", header);
        let remarks = remarks(&lines);
        assert!(
            remarks.iter().any(|own| own.starts_with(&begin)),
            "{begin}\n{remarks:?}"
        );
        let line = remarks
            .iter()
            .all(|own| own.ends_with("(/etc/nginx/site:1)") || own.ends_with("(site:1)"));
        assert!(line, "{remarks:?}");
    }
    let twice = passed("", "proxy_set_header X-A 1; proxy_set_header x-a 2;");
    let said = "proxy_set_header x-a 2: a header is written once";
    assert!(remarks(&twice)[0].starts_with(said), "{twice:?}");
    let odd = passed("", "proxy_set_header X-A \u{7f};");
    assert!(remarks(&odd)[0].contains("printable ASCII"), "{odd:?}");
    has(
        "server { root /srv; location ~ \\.php$ { fastcgi_pass p:9000; \
         fastcgi_param HTTP_\u{fc} 1; } }",
        &["# not carried over: fastcgi_param HTTP_\u{fc} 1: \"\u{fc}\" is not a name of a header"],
    );
    // It is never passed on.
    let proxy = passed("", "proxy_set_header Proxy \"\";");
    assert_eq!(remarks(&proxy), [""; 0]);
}

#[test]
fn the_host_of_an_upstream_is_the_one_that_nginx_sends() {
    for (value, expected) in [
        ("$host", Some("$host")),
        ("${host}", Some("$host")),
        ("$http_host", None),
        ("$proxy_host", Some("127.0.0.1:1")),
        ("$server_name", Some("a.org")),
        ("b.org:8080", Some("b.org:8080")),
    ] {
        let lines = passed("", &format!("proxy_set_header Host \"{value}\";"));
        let host = lines.iter().find_map(|line| line.strip_prefix("host = "));
        let expected = expected.map(|own| format!("\"{own}\""));
        assert_eq!(host, expected.as_deref(), "{value}");
        assert_eq!(remarks(&lines), [""; 0], "{value}");
    }
}

#[test]
fn a_proxy_in_front_that_no_line_names_is_asked_for() {
    let text = |head: &str| {
        let text = format!(
            "server {{ {head} location / {{ proxy_pass http://a; \
             proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }} }}"
        );
        result(&[("site", text.as_str())]).unwrap().text
    };
    let said = "# X-Forwarded-* of clients is dropped";
    assert!(text("").contains(said));
    assert!(!text("set_real_ip_from 10.0.0.1; real_ip_header X-Forwarded-For;").contains(said));
}

#[test]
fn the_port_of_a_client_is_kept_or_named() {
    let of = |inside: &str| lines(&format!("server {{ server_name a.org b.org; {inside} }}"));
    let led = of("location = /a { return 302 http://$http_host/b; }");
    assert!(
        led.iter().any(|line| line.contains("to = \"/b\"")),
        "{led:?}"
    );
    assert_eq!(remarks(&led), [""; 0]);
    for inside in [
        "return 301 https://$http_host$request_uri;",
        "location / { return 301 https://$http_host$request_uri; }",
        "location = /a { return 301 https://$http_host/b; }",
        "rewrite ^/a/(.*)$ https://$http_host/b/$1 permanent;",
    ] {
        let led = of(inside);
        let named = remarks(&led)
            .iter()
            .any(|own| own.contains("without the port"));
        assert!(named, "{inside} {led:?}");
        let led = of(&inside.replace("$http_host", "$host"));
        assert_eq!(remarks(&led), [""; 0], "{inside}");
    }
    let other = of("location = /a { return 301 https://$hostname/b; }");
    assert!(remarks(&other)[0].contains("requests get 501"), "{other:?}");
    let first = of("if ($host = b.org) { return 301 https://$server_name$request_uri; }");
    assert!(
        first
            .iter()
            .any(|line| line.contains("to = \"https://a.org/$1\"")),
        "{first:?}"
    );
    let with_port = of("if ($http_host = b.org:8080) { return 403; } root /srv;");
    assert!(!remarks(&with_port).is_empty(), "{with_port:?}");
}

#[test]
fn what_an_expression_of_some_letters_leaves_out_is_named() {
    for inside in [
        "rewrite ^/old/(.+)$ /new/$1 permanent; root /srv;",
        "location / { rewrite ^/(.+)$ https://b.org/$1 permanent; }",
        "location ~ ^/x/(.+)$ { alias /srv/x/$1; } root /srv;",
    ] {
        let own = lines(&format!("server {{ {inside} }}"));
        let named = remarks(&own)
            .iter()
            .any(|own| own.contains("(.+) does not match"));
        assert!(named, "{inside} {own:?}");
        let own = lines(&format!("server {{ {} }}", inside.replace("(.+)", "(.*)")));
        assert_eq!(remarks(&own), [""; 0], "{inside}");
    }
}

#[test]
fn the_page_of_an_error_is_missed_at_a_place_that_is_named() {
    let of = |page: &str| {
        lines(&format!(
            "server {{ root /srv; error_page {page}; location /s/ {{ alias /other/; }} }}"
        ))
    };
    let all = of("404 /lost.html");
    assert_eq!(remarks(&all).len(), 1, "{all:?}");
    let begin = "error_page 404 /lost.html: in location /s/, a page is a file below the root";
    assert!(remarks(&all)[0].starts_with(begin), "{all:?}");
    assert!(
        all.iter()
            .any(|line| line.contains("404 = \"/lost.html\"") || line.contains("\"/lost.html\""))
    );
    // A file has no such status.
    assert_eq!(remarks(&of("500 502 503 504 /50x.html")), [""; 0]);
}

#[test]
fn a_byte_order_mark_is_named() {
    let said = "begins with a byte order mark";
    let site = "\u{feff}server { root /srv; }";
    let main = mistake(&[("site", site)]);
    assert!(main.contains("site:1: ") && main.contains(said), "{main}");
    let files = [("nginx.conf", "http { include site; }"), ("site", site)];
    let included = mistake(&files);
    assert!(
        included.contains("site:1: ") && included.contains(said),
        "{included}"
    );
}
