//! What is said once for all sites: addresses, proxies in front, bounds, the log, versions of TLS.

use super::{has, lines, mistake};

const PASS: &str = "location / { proxy_pass http://app; }";
const TLS: &str = "listen 443 ssl; ssl_certificate /c.pem; ssl_certificate_key /k.pem;";

/// The line of a key.
fn line(text: &str, key: &str) -> Option<String> {
    let begin = format!("{key} = ");
    let lines = lines(text);
    lines.into_iter().find(|line| line.starts_with(&begin))
}

fn value(text: &str, key: &str) -> Option<String> {
    Some(line(text, key)?.split_once(" = ")?.1.to_owned())
}

#[test]
fn a_small_bound_of_one_place_is_not_that_of_all() {
    for (text, key, expected) in [
        (
            "server { location = /contact { client_max_body_size 16k; proxy_pass http://app; } \
             location / { proxy_pass http://app; } }",
            "body_bytes",
            Some("1048576"),
        ),
        (
            "server { root /srv; location = /contact { client_max_body_size 16k; proxy_pass http://app; } }",
            "body_bytes",
            Some("16384"),
        ),
        (
            "client_max_body_size 2m; server { server_name a; location / { proxy_pass http://app; } } \
             server { server_name b; client_max_body_size 1k; location / { proxy_pass http://app; } }",
            "body_bytes",
            Some("2097152"),
        ),
        (
            "server { location / { try_files $uri @a; client_max_body_size 1k; } location @a { proxy_pass http://app; } }",
            "body_bytes",
            Some("1048576"),
        ),
        (
            "server { location /a { send_timeout 2s; proxy_pass http://app; } root /srv; }",
            "stall_seconds",
            Some("60"),
        ),
        (
            "server { location /a { keepalive_timeout 5; } root /srv; }",
            "idle_seconds",
            Some("75"),
        ),
        (
            "server { server_name a; client_header_timeout 5; root /a; } server { server_name b; root /b; }",
            "head_seconds",
            Some("60"),
        ),
        (
            "keepalive_timeout 5; server { root /srv; }",
            "idle_seconds",
            Some("5"),
        ),
        // These are about connections to servers.
        (
            "upstream app { server a:1; keepalive 2; keepalive_timeout 300s; } server { location / { proxy_pass http://app; } }",
            "idle_seconds",
            None,
        ),
        // It is left out.
        (
            "server { listen 80; root /a; } server { listen 127.0.0.1:81; keepalive_timeout 500; root /b; }",
            "idle_seconds",
            None,
        ),
    ] {
        assert_eq!(value(text, key).as_deref(), expected, "{text}");
    }
}

#[test]
fn a_proxy_header_is_taken_of_named_proxies_alone() {
    let text = format!("server {{ listen 80; listen 8080 proxy_protocol; {PASS} }}");
    has(
        &text,
        &[
            "listen = [\"0.0.0.0:80\"]",
            "# not carried over: listen 8080 proxy_protocol: no set_real_ip_from names the proxies",
        ],
    );
    let text = format!(
        "server {{ listen 80; server_name a.org; {PASS} }} \
         server {{ listen 80; {TLS} server_name b.org; {PASS} }}"
    );
    let text = text.replace("443 ssl", "443 ssl proxy_protocol");
    let own = lines(&text);
    assert!(
        !own.iter().any(|line| line.starts_with("[[tls]]")),
        "{own:?}"
    );
    let named = text.replace("listen 443", "set_real_ip_from 10.0.0.0/8; listen 443");
    let named = format!("real_ip_header proxy_protocol; {named}");
    has(&named, &["[proxy_protocol]", "from = [\"10.0.0.0/8\"]"]);
    // Nothing would be left.
    let all = format!("\nserver {{ listen 80 proxy_protocol; {PASS} }}");
    let said = mistake(&[("a", &all)]);
    let begin = "a:2: listen 80 proxy_protocol: no set_real_ip_from names the proxies";
    assert!(said.starts_with(begin), "{said}");
}

#[test]
fn the_header_of_a_proxy_that_nginx_reads_by_default_is_named() {
    let of = |header: &str| {
        let own = lines(&format!(
            "server {{ set_real_ip_from 10.0.0.1; {header} {PASS} }}"
        ));
        let is_told = |line: &String| line.starts_with("# not carried over: ");
        own.into_iter().filter(is_told).collect::<Vec<_>>()
    };
    let told = of("");
    assert!(told.len() == 1 && told[0].contains("X-Real-IP"), "{told:?}");
    assert_eq!(of("real_ip_header X-Real-IP;").len(), 1);
    assert_eq!(of("real_ip_header X-Forwarded-For;").len(), 0);
}

#[test]
fn all_addresses_of_both_kinds_are_two() {
    for (listen, expected) in [
        (
            "listen [::]:80 ipv6only=off;",
            "[\"[::]:80\", \"0.0.0.0:80\"]",
        ),
        ("listen [::]:80;", "[\"[::]:80\"]"),
        ("listen [::]:80 ipv6only=on;", "[\"[::]:80\"]"),
        ("listen [::1]:80 ipv6only=off;", "[\"[::1]:80\"]"),
    ] {
        let text = format!("server {{ {listen} root /srv; }}");
        assert_eq!(
            value(&text, "listen").as_deref(),
            Some(expected),
            "{listen}"
        );
    }
    let text = "server { listen 80; server_name a; root /a; } \
         server { listen [::]:80 ipv6only=off; server_name b; root /b; }";
    let both = "[\"0.0.0.0:80\", \"[::]:80\"]";
    assert_eq!(value(text, "listen").as_deref(), Some(both));
}

#[test]
fn a_relative_log_is_below_another_folder() {
    let text = "server { root /srv; access_log logs/access.log; }";
    has(
        text,
        &["# not carried over: access_log logs/access.log: it is below the --prefix"],
    );
    assert_eq!(value(text, "access"), None);
    let text = "access_log logs/all.log; server { root /srv; access_log /var/log/a.log; }";
    assert_eq!(value(text, "access").as_deref(), Some("\"/var/log/a.log\""));
    has(text, &["# not carried over: access_log logs/all.log: "]);
}

#[test]
fn versions_of_one_server_are_not_those_of_all() {
    let servers = |one: &str, other: &str| {
        format!(
            "server {{ {TLS} server_name a; {one} root /a; }} server {{ {TLS} server_name b; {other} root /b; }}"
        )
    };
    let only = "ssl_protocols TLSv1.3;";
    let text = servers(only, "");
    assert_eq!(value(&text, "versions"), None);
    has(&text, &["# not carried over: ssl_protocols TLSv1.3: "]);
    let text = servers(only, "ssl_protocols tlsv1.3;");
    assert_eq!(value(&text, "versions").as_deref(), Some("[\"1.3\"]"));
    assert!(!lines(&text).iter().any(|line| line.starts_with('#')));
    // It speaks no TLS.
    let text = format!(
        "{only} server {{ {TLS} root /a; }} server {{ listen 80; server_name b; ssl_protocols TLSv1.2; root /b; }}"
    );
    let text = text.replace(TLS, &format!("listen 80; {TLS}"));
    assert_eq!(value(&text, "versions").as_deref(), Some("[\"1.3\"]"));
}
