//! `expires`, `gzip` and `brotli`.

use super::{has, lines};

/// The rules: path, extensions, time and more.
fn rules(inside: &str) -> Vec<String> {
    let lines = lines(&format!("server {{ root /srv; {inside} }}"));
    let mut all = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if line == "[[site.expires]]" {
            let own = lines[at + 1..]
                .iter()
                .take_while(|own| !own.starts_with(['[', '#']));
            let own: Vec<String> = own
                .map(|own| match own.as_str() {
                    "immutable = true" => "immutable".to_owned(),
                    "proxied = true" => "proxied".to_owned(),
                    own => own
                        .split_once(" = ")
                        .unwrap()
                        .1
                        .replace(['"', '[', ']', ','], ""),
                })
                .collect();
            all.push(own.join(" "));
        }
    }
    all
}

#[test]
fn times_are_rules() {
    for (inside, expected) in [
        ("expires 1h;", &["1h"][..]),
        ("location ~* \\.(css|js)$ { expires 30d; }", &["css js 30d"]),
        ("location /a/ { expires max; }", &["/a max"]),
        ("location /a { expires -1; }", &["/a -1"]),
        ("location = /a.js { expires epoch; }", &["/a.js epoch"]),
        (
            "location /a/ { expires 1y; location ~ \\.css$ { expires 1d; } }",
            &["/a css 1d", "/a 1y"],
        ),
        (
            "expires 1h; location /a/ { expires off; }",
            &["/a off", "1h"],
        ),
        ("expires 1h; location /a/ { } location = /b { }", &["1h"]),
        ("expires 1h; location /a/ { return 404; }", &["1h"]),
        (
            "location /a/ { expires 1y; add_header Cache-Control immutable; }",
            &["/a 1y immutable"],
        ),
        (
            "location / { proxy_pass http://a; expires 1h; } location /s/ { expires 1d; }",
            &["/s 1d", "off", "1h proxied"],
        ),
        (
            "location / { proxy_pass http://a; expires 1h; }",
            &["1h proxied"],
        ),
        (
            "location / { try_files $uri @a; expires 1h; } location @a { proxy_pass http://a; }",
            &["1h"],
        ),
        (
            "expires 1h; location / { try_files $uri @a; } location @a { proxy_pass http://a; }",
            &["1h proxied"],
        ),
        (
            "index index.php; location ~ \\.php$ { fastcgi_pass p:9000; expires -1; }",
            &["off", "php -1 proxied"],
        ),
        (
            "location / { try_files $uri /index.php; } location ~ \\.php$ { fastcgi_pass p:9000; expires -1; }",
            &["off", "-1 proxied"],
        ),
        ("location /a/ { alias /x/; expires 1h; }", &["/a 1h"]),
        ("expires +1h;", &["1h"]),
    ] {
        assert_eq!(rules(inside), expected, "{inside}");
    }
}

#[test]
fn what_no_rule_says_is_a_header_or_left_out() {
    for (inside, header) in [
        (
            "location /a/ { expires 1y; add_header Cache-Control \"public, immutable\"; }",
            "headers = { Cache-Control = \"max-age=31536000, public, immutable\" }",
        ),
        (
            "location ~ /img/ { expires 1d; }",
            "headers = { Cache-Control = \"max-age=86400\" }",
        ),
        (
            "location /a { return 301 /b; expires 1d; }",
            "headers = { Cache-Control = \"max-age=86400\" }",
        ),
    ] {
        assert!(rules(inside).is_empty(), "{inside}");
        has(&format!("server {{ root /srv; {inside} }}"), &[header]);
    }
    for inside in ["expires @15h;", "expires modified +1d;", "expires $x;"] {
        assert!(rules(inside).is_empty(), "{inside}");
        has(
            &format!("server {{ root /srv; {inside} }}"),
            &["# not carried over: expires"],
        );
    }
    // The rule of the site would replace it.
    assert_eq!(
        rules("expires 1h; location /a/ { add_header Cache-Control \"public\"; }"),
        ["/a off", "1h"]
    );
}

#[test]
fn gzip_is_compress() {
    let http = "gzip on; gzip_types text/css application/json; gzip_min_length 256; gzip_comp_level 6; gzip_vary on;";
    let text = format!(
        "http {{ {http} server {{ root /srv; server_name a; }} server {{ root /t; gzip off; server_name b; }} \
         server {{ server_name c; location / {{ proxy_pass http://a; }} location /x/ {{ gzip off; proxy_pass http://a; }} }} }}"
    );
    has(
        &text,
        &[
            "compress = true",
            "compress = false",
            "[compression]",
            "types = [\"text/html\", \"text/css\", \"application/json\"]",
            "minimum_bytes = 256",
            "gzip_level = 6",
        ],
    );
    let own = lines(&text);
    let of = |wanted: &str| own.iter().filter(|line| *line == wanted).count();
    assert_eq!(
        [of("compress = true"), of("compress = false")],
        [1, 2],
        "{own:#?}"
    );
    assert!(!own.iter().any(|line| line.starts_with('#')), "{own:#?}");
    let own = lines("server { root /srv; brotli on; brotli_comp_level 6; gzip_types *; }");
    assert!(own.contains(&"compress = true".to_owned()));
    assert!(own.contains(&"br_level = 6".to_owned()));
    assert!(!own.iter().any(|line| line.starts_with("types")));
    has(
        "server { root /srv; location /a/ { gzip on; } }",
        &["# not carried over: gzip on: a site or a route is compressed"],
    );
    assert!(
        !lines("server { root /srv; gzip off; }")
            .iter()
            .any(|line| line.contains("compress"))
    );
}
