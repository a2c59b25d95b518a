//! What keeps clients out in other words than `deny` and `auth_basic`: conditions, redirects,
//! modules of others, headers, certificates of clients.

use super::{has, lines};

/// The lines of the place of these paths, up to the next table.
fn place(text: &str, paths: &str) -> Vec<String> {
    let all = lines(text);
    let at = all
        .iter()
        .position(|line| line == &format!("paths = [{paths}]"));
    let at = at.unwrap_or_else(|| panic!("no place {paths}\n{}", all.join("\n")));
    let own = all[at + 1..].iter();
    own.take_while(|line| !line.starts_with('['))
        .cloned()
        .collect()
}

/// That a place answers 403 to all, and that a comment says why.
fn is_shut(inside: &str, said: &str) {
    let text = format!("server {{ root /srv; location /x/ {{ {inside} }} }}");
    let own = place(&text, "\"/x/*\"");
    assert_eq!(
        own.first().map(String::as_str),
        Some("status = 403"),
        "{inside} {own:?}"
    );
    has(&text, &[&format!("# not carried over: {said}")]);
}

/// That a place does not answer the same to all.
fn is_open(inside: &str) {
    let text = format!("server {{ root /srv; location /x/ {{ {inside} }} }}");
    let all = lines(&text).join("\n");
    assert!(!all.contains("status = 403"), "{inside}\n{all}");
}

/// The part of a site, from its hosts on.
fn site(text: &str, hosts: &str, scheme: Option<&str>) -> String {
    let all = lines(text).join("\n");
    let mut sites = all.split("[[site]]\n").skip(1);
    let begin = match scheme {
        Some(scheme) => format!("{hosts}scheme = \"{scheme}\"\n"),
        None => hosts.to_owned(),
    };
    let own = sites.find(|own| own.starts_with(&begin));
    own.unwrap_or_else(|| panic!("no site {begin}\n{all}"))
        .to_owned()
}

const TLS: &str = "listen 80; listen 443 ssl; ssl_certificate /c.pem; ssl_certificate_key /k.pem;";

#[test]
fn conditions_on_the_scheme_hold_in_locations() {
    let text = format!(
        "server {{ {TLS} server_name a.org; root /srv; \
         location / {{ if ($scheme = http) {{ return 301 https://$host$request_uri; }} }} \
         location /a/ {{ if ($scheme != https) {{ return 403; }} }} \
         location /b/ {{ if ($server_port != 443) {{ return 404; }} }} }}"
    );
    let hosts = "hosts = [\"a.org\"]\n";
    let http = site(&text, hosts, Some("http"));
    assert!(http.contains("to = \"https://$host/$1\""), "{http}");
    assert!(http.contains("paths = [\"/a/*\"]\nstatus = 403"), "{http}");
    assert!(http.contains("paths = [\"/b/*\"]\nstatus = 404"), "{http}");
    let https = site(&text, hosts, Some("https"));
    assert!(!https.contains("status ="), "{https}");
    let all = lines(&text);
    assert!(!all.iter().any(|line| line.starts_with('#')), "{all:?}");
}

#[test]
fn conditions_on_the_host_hold_in_locations() {
    let text = "server { server_name a.org www.a.org; root /srv; \
        location /admin/ { if ($host != \"a.org\") { return 403; } proxy_pass http://b; } }";
    let own = site(text, "hosts = [\"a.org\"]\n", None);
    assert!(!own.contains("status = 403"), "{own}");
    let www = site(text, "hosts = [\"www.a.org\"]\n", None);
    assert!(
        www.contains("paths = [\"/admin/*\"]\nstatus = 403"),
        "{www}"
    );
    // What is decided by no name is refused.
    let text = "server { server_name *.a.org; root /srv; \
        location /admin/ { if ($host != x.a.org) { return 403; } } }";
    assert_eq!(place(text, "\"/admin/*\"")[0], "status = 403");
}

#[test]
fn hosts_that_no_site_names_are_refused_as_the_default_says() {
    for condition in [
        "$host != \"a.org\"",
        "$http_host !~* ^(a.org|www.a.org)$ ",
        "$host !~ ^(www\\.)?a\\.org$",
    ] {
        let text = format!(
            "server {{ listen 80 default_server; server_name a.org; root /srv; \
             if ({condition}) {{ return 444; }} }}"
        );
        let first = site(&text, "[[site.location]]\n", None);
        assert!(
            first.contains("paths = [\"/*\"]\nstatus = 403"),
            "{condition}: {first}"
        );
        let own = site(&text, "hosts = [\"a.org\"]\n", None);
        assert!(own.contains("root = \"/srv\""), "{own}");
        assert!(!own.contains("status = 403"), "{own}");
        has(&text, &["# not carried over: return 444"]);
    }
}

#[test]
fn paths_of_conditions_are_refused() {
    let text = "server { root /srv; \
        if ($request_uri ~* \"^/(admin|phpmyadmin)\") { return 403; } \
        if ($uri ~ \\.bak$) { return 404; } \
        if ($document_uri = /secret) { return 403; } \
        location /up/ { add_header X-A b; if ($request_filename ~* \\.(sh|py)$) { return 403; } } \
        location ~ \\.txt$ { if ($uri ~ /in/) { return 403; } } \
        location = /one { if ($uri ~ /on) { return 410; } } }";
    let admin = place(text, "\"/admin*\", \"/phpmyadmin*\"");
    assert_eq!(admin, ["ignore_case = true", "status = 403"]);
    assert_eq!(place(text, "\"*.bak\"")[0], "status = 404");
    assert_eq!(place(text, "\"/secret\"")[0], "status = 403");
    let up = place(text, "\"/up/*.sh\", \"/up/*.py\"");
    assert_eq!(up, ["ignore_case = true", "status = 403"]);
    assert_eq!(place(text, "\"*/in/*.txt\"")[0], "status = 403");
    assert_eq!(place(text, "\"/one\"")[0], "status = 410");
    let all = lines(text);
    assert!(!all.iter().any(|line| line.starts_with('#')), "{all:?}");
    // They come first.
    let at = |line: &str| all.iter().position(|own| own == line).unwrap();
    assert!(at("paths = [\"*.bak\"]") < at("paths = [\"/up/*\"]"));
    assert!(at("paths = [\"/up/*.sh\", \"/up/*.py\"]") < at("paths = [\"/up/*\"]"));
}

#[test]
fn paths_that_cannot_be_said_are_refused_with_more() {
    is_shut("if ($uri ~ \"(?<a>x)\\1\") { return 403; }", "if");
    is_shut("if ($uri ~ ^/x/\\bx) { return 403; }", "if");
    is_shut("if ($request_filename ~ ^/srv/x) { return 403; }", "if");
    let text = "server { root /srv; if ($uri ~ ^/u/[0-9]+/a$) { return 403; } }";
    assert_eq!(place(text, "\"/u/*/a\"")[0], "status = 403");
    has(
        text,
        &["# not carried over: if ($uri ~ ^/u/[0-9]+/a$) {...}: these paths cannot be told"],
    );
    // A location that is within the paths altogether, or begins like them.
    let text = "server { root /srv; location /x/ { if ($uri ~ /x) { return 403; } } }";
    assert_eq!(place(text, "\"/x/*\"")[0], "status = 403");
    let text = "server { root /srv; location /pri { if ($uri ~ /private) { return 403; } } }";
    assert_eq!(
        place(text, "\"/pri*/private*\", \"/private*\"")[0],
        "status = 403"
    );
    // A query is no path.
    let text = "server { root /srv; if ($request_uri ~ \"id=1\") { return 403; } }";
    has(text, &["# not carried over: if ($request_uri ~ id=1"]);
}

#[test]
fn modules_of_others_keep_clients_out() {
    for rule in [
        "auth_ldap \"x\"",
        "auth_pam \"x\"",
        "auth_digest x",
        "auth_gss on",
        "auth_oidc p",
        "auth_openidc on",
        "auth_jwt r",
        "auth_totp_realm x",
        "js_access m.f",
        "access_by_lua_file /a.lua",
        "access_by_lua_block { return }",
        "rewrite_by_lua_file /a",
    ] {
        let end = if rule.ends_with('}') { "" } else { ";" };
        let name = rule.split(' ').next().unwrap();
        is_shut(&format!("{rule}{end} proxy_pass http://a;"), name);
        is_shut(&format!("{rule}{end}"), name);
    }
    is_shut(
        "limit_except GET { auth_ldap x; } proxy_pass http://a;",
        "limit_except",
    );
    for rule in [
        "auth_gss off; auth_gss_keytab k",
        "auth_ldap_servers s",
        "auth_delay 1s",
    ] {
        is_open(&format!("{rule}; proxy_pass http://a;"));
    }
    let text = "server { root /srv; access_by_lua_file a; location /x/ { } }";
    assert_eq!(place(text, "\"/x/*\"")[0], "status = 403");
    for rule in [
        "js_content m",
        "perl x::y",
        "content_by_lua_file a",
        "redis_pass a:1",
    ] {
        let text = format!("server {{ root /srv; location /x/ {{ {rule}; }} }}");
        assert_eq!(place(&text, "\"/x/*\"")[0], "status = 501", "{rule}");
    }
}

#[test]
fn headers_that_say_who_a_client_is_are_not_the_clients_own() {
    for value in [
        "$remote_user",
        "\"u=${remote_user}\"",
        "$ssl_client_s_dn",
        "$jwt_claim_sub",
        "$own",
    ] {
        is_shut(
            &format!(
                "set $own $ssl_client_verify; proxy_pass http://a; proxy_set_header X-User {value};"
            ),
            "proxy_set_header X-User",
        );
    }
    is_shut(
        "grpc_pass grpc://a:1; grpc_set_header X-User $remote_user;",
        "grpc_set_header X-User",
    );
    let text = "server { root /srv; location / { try_files $uri @a; } \
        location @a { proxy_pass http://a; proxy_set_header X-User $remote_user; } }";
    assert_eq!(place(text, "\"/*\"")[0], "status = 403");
    let text = "server { root /srv; location / { proxy_pass http://a; \
        proxy_set_header X-Admin \"\"; proxy_pass_request_headers off; } }";
    let all = lines(text);
    let taken = "headers = { X-Admin = \"\" }";
    assert!(all.iter().any(|line| line == taken), "{all:?}");
    let name = "proxy_pass_request_headers off";
    let line = all.iter().find(|line| line.contains(name));
    assert!(
        line.is_some_and(|line| line.contains("the client's own")),
        "{all:?}"
    );
    let text = "server { root /srv; location ~ \\.php$ { fastcgi_pass a:9000; \
        fastcgi_param HTTP_X_USER $remote_user; fastcgi_param REMOTE_USER $remote_user; } }";
    assert_eq!(place(text, "\"*.php\"")[0], "status = 403");
}

#[test]
fn leading_elsewhere_keeps_clients_out_too() {
    for inside in [
        "if ($remote_addr != 10.0.0.1) { rewrite ^ /soon.html last; }",
        "if ($remote_addr !~ ^10) { return 302 https://soon.org; }",
        "if ($remote_addr !~ ^10) { return 200 soon; }",
        "if ($remote_addr !~ ^10) { root /srv/soon; }",
        "if ($remote_addr !~ ^10) { proxy_pass http://b; }",
        "if ($cookie_sid = \"\") { return 302 /login; }",
        "if ($remote_addr = 10.0.0.1) { set $a 1; } if ($a = 1) { rewrite ^ /soon last; }",
        "set $a 1; if ($a) { rewrite ^ /soon last; }",
        "if ($http_x_key != k) { return 302 /login; }",
        "if ($remote_addr != 10.0.0.1) { return 403; } return 200 secret;",
    ] {
        is_shut(inside, "if");
    }
    for inside in [
        "if ($cookie_lang = de) { return 302 /de/; }",
        "if ($arg_page) { rewrite ^ /p redirect; }",
        "if ($new) { return 301 $new; }",
        "set $a 1; if ($request_method = POST) { set $a \"${a}0\"; } if ($a = 1) { rewrite ^ /c last; }",
        "if ($http_user_agent ~ Mobile) { return 302 https://m.org; }",
        "if ($http_accept_language ~ ^de) { return 302 /de/; }",
        "if ($request_method = POST) { proxy_pass http://b; }",
        "if ($uri !~ ^/open) { return 301 https://b.org$request_uri; }",
    ] {
        is_open(inside);
    }
    let text =
        "server { root /srv; if ($remote_addr != 10.0.0.1) { return 403; } return 200 own; }";
    has(
        text,
        &["paths = [\"/*\"]", "status = 403", "# not carried over: if"],
    );
    let text = "server { root /srv; if ($remote_addr != 10.0.0.1) { return 403; } \
        location /x/ { return 200 own; } }";
    assert_eq!(place(text, "\"/x/*\"")[0], "status = 403");
}

#[test]
fn certificates_of_clients_are_asked_for_as_strictly() {
    let server = |more: &str| format!("server {{ {TLS} server_name a.org; root /srv; {more} }}");
    for (more, said) in [
        (
            "ssl_client_certificate /ca; ssl_verify_client on; ssl_crl /crl;",
            "ssl_crl /crl: ",
        ),
        (
            "ssl_client_certificate /ca; ssl_verify_client on; ssl_ocsp on;",
            "ssl_ocsp on: ",
        ),
        (
            "ssl_trusted_certificate /ca; ssl_verify_client on;",
            "ssl_verify_client on: ",
        ),
    ] {
        let text = server(more);
        let https = site(&text, "hosts = [\"a.org\"]\n", Some("https"));
        assert!(https.contains("paths = [\"/*\"]\nstatus = 403"), "{https}");
        let http = site(&text, "hosts = [\"a.org\"]\n", Some("http"));
        assert!(!http.contains("status"), "{http}");
        has(&text, &[&format!("# not carried over: {said}")]);
        assert!(!lines(&text).join("\n").contains("what both sides prefer"));
    }
    let all = lines(&server("ssl_crl /crl; ssl_ocsp off;")).join("\n");
    assert!(!all.contains("status"), "{all}");
    // Of two servers the stricter counts, and the authorities of the first.
    let two = |one: &str, other: &str| {
        format!(
            "server {{ {TLS} server_name a.org; root /a; {one} }}\n\
             server {{ {TLS} server_name b.org; root /b; {other} }}"
        )
    };
    let ca = |verify: &str| format!("ssl_client_certificate /ca; ssl_verify_client {verify};");
    has(
        &two(&ca("optional"), &ca("on")),
        &["client_required = true"],
    );
    let text = two(
        &ca("on"),
        "ssl_client_certificate /other; ssl_verify_client on;",
    );
    let b = site(&text, "hosts = [\"b.org\"]\n", Some("https"));
    assert!(b.contains("paths = [\"/*\"]\nstatus = 403"), "{b}");
}

#[test]
fn refused_handshakes_are_refused_requests() {
    let text = format!(
        "server {{ listen 443 ssl default_server; ssl_reject_handshake on; root /srv/d; }}\n\
         server {{ {TLS} server_name a.org; root /srv/a; }}"
    );
    has(&text, &["# not carried over: ssl_reject_handshake on: "]);
    let first = lines(&text).join("\n");
    let first = first.split("[[site]]\n").nth(1).unwrap().to_owned();
    assert!(first.contains("paths = [\"/*\"]\nstatus = 403"), "{first}");
    assert!(!first.contains("/srv/d"), "{first}");
}

#[test]
fn links_are_followed_no_further_than_before() {
    let has_line = |text: &str| lines(text).iter().any(|line| line == "symlinks = \"none\"");
    assert!(has_line("server { root /srv; disable_symlinks on; }"));
    assert!(has_line(
        "server { root /srv; location /u/ { disable_symlinks if_not_owner; } }"
    ));
    assert!(!has_line("server { root /srv; disable_symlinks off; }"));
    has(
        "server { root /srv; location /u/ { disable_symlinks on; } }",
        &["# not carried over: disable_symlinks on: "],
    );
    let own = lines("server { root /srv; disable_symlinks on from=$document_root; }");
    assert!(!own.iter().any(|line| line.starts_with('#')), "{own:?}");
}

#[test]
fn the_page_of_last_resort_has_its_own_headers() {
    let spa = "location / { try_files $uri $uri/ /index.html; }";
    let text = format!(
        "server {{ root /srv; {spa} location = /index.html {{ add_header Cache-Control no-cache; }} }}"
    );
    let own = place(&text, "\"/index.html\"");
    assert_eq!(own, ["headers = { Cache-Control = \"no-cache\" }"]);
    let text = format!("server {{ root /srv; {spa} location ~ \\.html$ {{ add_header X-A b; }} }}");
    assert_eq!(
        place(&text, "\"/index.html\""),
        ["headers = { X-A = \"b\" }"]
    );
    assert_eq!(place(&text, "\"*.html\"")[0], "root = \"/srv\"");
    // Files of another directory stay where they are.
    let text = format!(
        "server {{ root /srv; {spa} location = /index.html {{ root /b; add_header X-A b; }} }}"
    );
    assert_eq!(place(&text, "\"/index.html\"")[0], "root = \"/b\"");
}

#[test]
fn types_are_named_where_they_are_not_as_files_have_them() {
    for (inside, said) in [
        (
            "location /j { default_type application/json; return 200 '{}'; }",
            "default_type application/json: a text is sent as text/plain",
        ),
        (
            "default_type text/html; location /j { return 200 x; }",
            "default_type text/html: ",
        ),
        (
            "location /u/ { types { } default_type text/plain; }",
            "types {...}: ",
        ),
        (
            "location /u/ { types { } default_type text/plain; }",
            "default_type text/plain: ",
        ),
    ] {
        let text = format!("server {{ root /srv; {inside} }}");
        has(&text, &[&format!("# not carried over: {said}")]);
    }
    let all = "http { default_type application/octet-stream; types { text/html html; } \
        server { root /srv; location /j { return 200 x; } \
        location /k { default_type text/plain; return 200 x; } } }";
    let own = lines(all);
    assert!(!own.iter().any(|line| line.starts_with('#')), "{own:?}");
}
