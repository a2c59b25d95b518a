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
    let lines = of("rewrite ^/(.*)$ /app.php/$1 break;");
    assert!(!has(&lines, ROUTE) && left_out(&lines) == 1, "{lines:?}");
    let lines = of("rewrite ^/old$ /new permanent;");
    assert!(has(&lines, ROUTE) && left_out(&lines) == 1, "{lines:?}");
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
