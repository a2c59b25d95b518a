//! `auth_basic`.

use super::{has, lines};

/// The tables of passwords: path, file, realm.
fn tables(text: &str) -> Vec<String> {
    let lines = lines(text);
    let mut all = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if line == "[[site.auth]]" {
            let own = lines[at + 1..]
                .iter()
                .take_while(|own| !own.starts_with(['[', '#']));
            let own: Vec<&str> = own
                .map(|own| own.split_once(" = ").unwrap().1.trim_matches('"'))
                .collect();
            all.push(own.join(" "));
        }
    }
    all
}

/// The status of the first place with these paths.
fn status(text: &str, paths: &str) -> Option<String> {
    let lines = lines(text);
    let at = lines
        .iter()
        .position(|line| *line == format!("paths = {paths}"))?;
    let own = lines[at + 1..]
        .iter()
        .take_while(|own| !own.starts_with('['));
    let own = own.filter_map(|own| own.strip_prefix("status = ")).next();
    Some(own.unwrap_or("none").to_owned())
}

#[test]
fn a_password_is_asked_for_below_a_path() {
    for (inside, expected) in [
        (
            "location /staff/ { auth_basic \"Staff only\"; auth_basic_user_file staff; }",
            "/staff/ /etc/nginx/staff Staff only",
        ),
        (
            "auth_basic x; auth_basic_user_file /u; location /open/ { auth_basic off; }",
            "/u x, /open/ off",
        ),
        (
            "auth_basic x; auth_basic_user_file /u; location /a/ { } location ~ \\.css$ { }",
            "/u x",
        ),
        (
            "location /a/ { auth_basic x; auth_basic_user_file /u; location /a/b/ { auth_basic y; } }",
            "/a/ /u x, /a/b/ /u y",
        ),
        (
            "location /a/ { auth_basic x; auth_basic_user_file /u; location ~ \\.css$ { } }",
            "/a/ /u x",
        ),
        (
            "auth_basic x; auth_basic_user_file /u; location = /health { return 200 ok; }",
            "/u x, /health off",
        ),
        (
            "auth_basic x; auth_basic_user_file /srv/.users;",
            "/srv/.users x",
        ),
        ("auth_basic \u{fc}; auth_basic_user_file /u;", "/u"),
    ] {
        let text = format!("server {{ root /srv; {inside} }}");
        assert_eq!(tables(&text).join(", "), expected, "{inside}");
    }
}

#[test]
fn a_path_that_ends_within_a_segment_is_refused_beyond_it() {
    let text = "server { root /srv; location /staff { auth_basic x; auth_basic_user_file /u; } }";
    assert_eq!(tables(text), ["/staff /u x"]);
    assert_eq!(
        status(text, r#"["/staff", "/staff/*"]"#).as_deref(),
        Some("none")
    );
    assert_eq!(status(text, r#"["/staff*"]"#).as_deref(), Some("403"));
    has(
        text,
        &["# not carried over: auth_basic x: a password is for whole segments"],
    );
    // All of the site has the same.
    let text = "server { root /srv; auth_basic x; auth_basic_user_file /u; location /staff { } }";
    assert_eq!(status(text, r#"["/staff*"]"#).unwrap_or_default(), "");
}

#[test]
fn what_is_open_takes_nothing_else_along() {
    let text = "server { root /srv; auth_basic x; auth_basic_user_file /u; \
                location /pub/ { auth_basic off; } location = /robots.txt { auth_basic off; } \
                location /free { auth_basic off; } }";
    assert_eq!(
        tables(text),
        ["/u x", "/pub/ off", "/free off", "/robots.txt off"]
    );
    assert_eq!(status(text, r#"["/pub"]"#).as_deref(), Some("403"));
    assert_eq!(status(text, r#"["/robots.txt/*"]"#).as_deref(), Some("403"));
    has(
        text,
        &["# not carried over: auth_basic off: Sooner asks for a password at more"],
    );
}

#[test]
fn what_is_not_for_a_path_is_refused() {
    for (inside, paths) in [
        (
            "location ~ \\.secret$ { auth_basic x; auth_basic_user_file /u; }",
            r#"["*.secret"]"#,
        ),
        (
            "location = / { auth_basic x; auth_basic_user_file /u; }",
            r#"["/"]"#,
        ),
        (
            "auth_basic x; auth_basic_user_file /u; location ~ \\.bak$ { auth_basic_user_file /v; }",
            r#"["*.bak"]"#,
        ),
        (
            "location /s/ { auth_basic x; auth_basic_user_file /srv/s/users; }",
            r#"["/s/*"]"#,
        ),
        (
            "location /s/ { auth_basic x; auth_basic_user_file /u; } \
             location = /s { auth_basic x; auth_basic_user_file /v; }",
            r#"["/s"]"#,
        ),
        (
            "location /\u{fc}/ { auth_basic x; auth_basic_user_file /u; }",
            "[\"/\u{fc}/*\"]",
        ),
        ("location /s/ { auth_basic x; }", r#"["/s/*"]"#),
    ] {
        let text = format!("server {{ root /srv; {inside} }}");
        assert_eq!(status(&text, paths).as_deref(), Some("403"), "{inside}");
        has(&text, &["# not carried over: auth_basic x: "]);
    }
}

#[test]
fn no_other_place_leads_to_what_needs_a_password() {
    // The page that stands for its directory, the last resort, and a named location.
    let text =
        "server { root /srv; location = /a/index.html { auth_basic x; auth_basic_user_file /u; } }";
    assert_eq!(status(text, r#"["/a/"]"#).as_deref(), Some("403"));
    let text = "server { root /srv; location / { try_files $uri /app.html; } \
                location = /app.html { auth_basic x; auth_basic_user_file /u; } }";
    assert!(!lines(text).iter().any(|line| line.starts_with("fallback")));
    has(text, &["# not carried over: try_files"]);
    let text = "server { root /srv; location / { try_files $uri @app; } \
                location @app { auth_basic x; auth_basic_user_file /u; proxy_pass http://a; } }";
    assert!(!lines(text).iter().any(|line| line == "[[route]]"));
    let text = "server { root /srv; location / { try_files $uri /index.php; } \
                location = /index.php { auth_basic x; auth_basic_user_file /u; fastcgi_pass p:9000; } }";
    assert!(!lines(text).iter().any(|line| line.contains("fallback")));
    assert_eq!(status(text, r#"["/"]"#).as_deref(), Some("403"));
}

#[test]
fn an_expression_has_the_password_around_it_but_where_it_is_off() {
    let text = "server { root /srv; auth_basic x; auth_basic_user_file /u; \
                location /open/ { auth_basic off; } location ~ \\.css$ { add_header X-A b; } }";
    assert_eq!(tables(text), ["/u x", "/open/ off"]);
    assert_eq!(status(text, r#"["/open/*.css"]"#).as_deref(), Some("403"));
    assert_eq!(status(text, r#"["*.css"]"#).as_deref(), Some("none"));
    let lines = lines(text);
    let at = |wanted: &str| lines.iter().position(|line| line.contains(wanted)).unwrap();
    assert!(at("/open/*.css") < at("[\"*.css\"]"));
}
