//! `try_files`: which files are sent, and what is tried for nothing.

use super::lines;

const APP: &str = "location @app { proxy_pass http://app; }";
const ROUTE: &str = "[[route]]";
const FIRST: &str = "files_first = true";

fn of(tried: &str) -> Vec<String> {
    lines(&format!(
        "server {{ root /srv/app; location / {{ try_files {tried}; }} {APP} }}"
    ))
}

fn has(lines: &[String], wanted: &str) -> bool {
    lines.iter().any(|line| line == wanted)
}

fn left_out(lines: &[String]) -> usize {
    let told = lines.iter();
    told.filter(|line| line.starts_with("# not carried"))
        .count()
}

#[test]
fn only_its_own_path_has_files_sent_before_an_upstream() {
    for (tried, remarks) in [
        ("/dev/null @app", 0),
        ("/nonexistent @app", 0),
        ("\"\" @app", 0),
        ("/system/maintenance.html @app", 1),
        ("$uri/index.html @app", 1),
        ("$uri/ @app", 1),
        ("/cache$uri/ @app", 1),
    ] {
        let lines = of(tried);
        assert!(
            has(&lines, ROUTE) && !has(&lines, FIRST),
            "{tried} {lines:?}"
        );
        let root = "root = \"/srv/app\"";
        assert!(!has(&lines, root), "{tried} {lines:?}");
        assert_eq!(left_out(&lines), remarks, "{tried} {lines:?}");
    }
    for (tried, remarks) in [
        ("$uri @app", 0),
        ("$uri $uri/ @app", 0),
        ("/maintenance.html $uri @app", 1),
        ("/cache$uri $uri @app", 1),
    ] {
        let lines = of(tried);
        assert!(
            has(&lines, ROUTE) && has(&lines, FIRST),
            "{tried} {lines:?}"
        );
        assert_eq!(left_out(&lines), remarks, "{tried} {lines:?}");
    }
}

#[test]
fn one_page_for_all_is_not_all_files() {
    for tried in [
        "/index.html =404",
        "/x /index.html",
        "/nonexistent @none",
        "/x =503",
    ] {
        let lines = of(tried);
        assert!(has(&lines, "status = 501"), "{tried} {lines:?}");
        assert!(!has(&lines, "root = \"/srv/app\""), "{tried} {lines:?}");
        assert!(left_out(&lines) > 0, "{tried} {lines:?}");
    }
    // There is no other file for this path.
    let lines = lines(
        "server { root /srv/app; location = / { try_files /home.html =404; } \
         location /a/ { proxy_pass http://app; } location / { proxy_pass http://app; } }",
    );
    let at = lines.iter().position(|line| line == "paths = [\"/\"]");
    let own = &lines[at.unwrap() + 1..];
    assert_eq!(own[0], "root = \"/srv/app\"", "{lines:?}");
    assert!(has(own, "fallback = \"/home.html\""), "{lines:?}");
    assert_eq!(left_out(&lines), 0, "{lines:?}");
}

#[test]
fn each_page_that_is_not_tried_is_named() {
    for (tried, remarks) in [
        ("$uri /b.html =404", 0),
        ("$uri /a.html /b.html =404", 1),
        ("$uri /a.html /b.html", 1),
        ("$uri.html $uri =404", 1),
        ("$uri /a$is_args =404", 1),
    ] {
        assert_eq!(left_out(&of(tried)), remarks, "{tried} {:?}", of(tried));
    }
}

#[test]
fn a_named_location_that_rewrites_is_not_taken_for_one_that_does_not() {
    let of = |rewrite: &str| {
        lines(&format!(
            "server {{ root /srv; location / {{ try_files $uri @app; }} \
             location @app {{ {rewrite} proxy_pass http://app; }} }}"
        ))
    };
    for rewrite in [
        "rewrite ^/(.*)$ /app.php/$1 break;",
        "rewrite ^/app/(.*)$ /$1 break;",
        "rewrite ^(.*)$ $1 last;",
    ] {
        let lines = of(rewrite);
        assert!(!has(&lines, ROUTE) && left_out(&lines) == 1, "{lines:?}");
        assert!(has(&lines, "status = 501"), "{lines:?}");
        let why = format!(
            "# not carried over: {}: its paths are rewritten; requests get 501",
            rewrite.trim_end_matches(';')
        );
        assert!(
            lines.iter().any(|line| line.starts_with(&why)),
            "{why} {lines:?}"
        );
    }
    for rewrite in ["rewrite ^(.*)$ $1 break;", "rewrite ^/(.*)$ /${1} break;"] {
        let lines = of(rewrite);
        assert!(has(&lines, FIRST) && left_out(&lines) == 0, "{lines:?}");
    }
    let lines = of("rewrite ^/old$ /new permanent;");
    assert!(has(&lines, ROUTE) && left_out(&lines) == 1, "{lines:?}");
}

#[test]
fn no_other_reason_is_given_where_a_named_location_rewrites() {
    let lines = lines(
        "server { root /srv; location / { try_files /dev/null @app; } \
         location @app { rewrite ^/(.*)$ /app.php/$1 break; proxy_pass http://app; } }",
    );
    assert!(has(&lines, "status = 501"), "{lines:?}");
    assert_eq!(left_out(&lines), 1, "{lines:?}");
    let of_rewrite = |line: &String| line.starts_with("# not carried over: rewrite ");
    assert!(lines.iter().any(of_rewrite), "{lines:?}");
}

/// The lines of the place of a path, and what is left out.
fn place(path: &str, text: &str) -> (Vec<String>, Vec<String>) {
    let all = lines(text);
    let paths = format!("paths = [\"{path}\"]");
    let at = all.iter().position(|line| *line == paths);
    let at = at.unwrap_or_else(|| panic!("{path} {all:?}"));
    let own = all[at + 1..]
        .iter()
        .take_while(|line| !line.starts_with('['));
    let told = all.iter().filter(|line| line.starts_with("# not carried"));
    (own.cloned().collect(), told.cloned().collect())
}

#[test]
fn a_path_without_an_ending_has_one_page() {
    let of = |path: &str, tried: &str| {
        let text = format!(
            "server {{ root /srv; location = {path} {{ try_files {tried}; }} \
             location / {{ proxy_pass http://app; }} }}"
        );
        place(path, &text)
    };
    let (own, told) = of("/login", "/login.html =404");
    for line in [
        "root = \"/srv\"",
        "index = []",
        "fallback = \"/login.html\"",
    ] {
        assert!(has(&own, line), "{own:?}");
    }
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("a file of that name would be sent instead"),
        "{told:?}"
    );
    let (own, told) = of("/a/login", "/x.html /login.html =404");
    assert!(has(&own, "fallback = \"/login.html\""), "{own:?}");
    assert_eq!(told.len(), 2, "{told:?}");
    // A file with an ending may be one that is not to be sent.
    for (path, tried) in [
        ("/users.json", "/public.html =404"),
        ("/a.php", "/a.html =404"),
        ("/.key", "/a.html =404"),
        ("/login", "=503 =404"),
    ] {
        let (own, _) = of(path, tried);
        assert!(has(&own, "status = 501"), "{path} {own:?}");
    }
    let (own, _) = of("/login", "/login.py =404");
    assert_eq!(own, ["status = 404"]);
}

#[test]
fn a_script_for_all_paths_of_a_location_has_no_files_sent() {
    let of = |location: &str, path: &str, rest: &str| {
        let text = format!(
            "server {{ root /srv; {location} location / {{ try_files $uri {rest}; }} \
             location ~ \\.php$ {{ fastcgi_pass p:9000; }} }}"
        );
        place(path, &text)
    };
    let rest = "/index.php?$query_string";
    for tried in ["\"\"", "/dev/null"] {
        let location = format!("location /api {{ try_files {tried} {rest}; }}");
        let (own, told) = of(&location, "/api*", rest);
        assert_eq!(own, ["status = 501"]);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("write $uri first"), "{told:?}");
        let location = format!("location = /api {{ try_files {tried} {rest}; }}");
        let (own, told) = of(&location, "/api", rest);
        let is_answer = |line: &String| line.starts_with("status") || line.starts_with("root");
        assert!(!own.iter().any(is_answer), "{own:?}");
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("a file of that name"), "{told:?}");
        // A script that is not run there, and no file either.
        let (own, told) = of(&location, "/api", "=404");
        assert_eq!(own, ["status = 404"], "{told:?}");
    }
    let location = format!("location = / {{ try_files \"\" {rest}; }}");
    let (own, _) = of(&location, "/", rest);
    assert_eq!(own, ["status = 501"]);
}

#[test]
fn where_only_files_are_tried_no_directory_is_listed() {
    let of = |tried: &str| {
        lines(&format!(
            "server {{ root /srv; autoindex on; location / {{ try_files {tried}; }} }}"
        ))
    };
    assert!(has(&of("$uri $uri/ =404"), "listing = \"html\""));
    assert!(!has(&of("$uri =404"), "listing = \"html\""));
}

#[test]
fn files_of_another_root_do_not_come_before_an_upstream() {
    let lines = lines(
        "server { root /srv; location /w/ { root /other; try_files $uri @app; } \
         location @app { proxy_pass http://app; } }",
    );
    assert!(has(&lines, ROUTE) && !has(&lines, FIRST), "{lines:?}");
    assert_eq!(left_out(&lines), 1, "{lines:?}");
}
