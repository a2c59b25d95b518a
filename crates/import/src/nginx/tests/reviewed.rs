//! What keeps clients out in part: expressions on `$request_uri` that are about queries as well,
//! and `limit_except` of files.

use super::lines;

/// The comments, and the paths of each place with its status.
fn places(text: &str) -> Vec<String> {
    let all = lines(text);
    let of = |line: &String| line.starts_with("# not carried") || line.starts_with("paths =");
    let mut told = Vec::new();
    for (at, line) in all.iter().enumerate().filter(|(_, line)| of(line)) {
        let own = all[at + 1..]
            .iter()
            .take_while(|line| !line.starts_with('['));
        let status = own
            .into_iter()
            .find_map(|line| line.strip_prefix("status = "));
        told.push(match status.filter(|_| line.starts_with("paths")) {
            Some(status) => format!("{line} {status}"),
            None => line.clone(),
        });
    }
    told
}

#[test]
fn a_part_about_the_query_leaves_the_paths_refused() {
    for (condition, expected) in [
        (
            r#"$request_uri ~* "(/backup/|%00|union=)""#,
            r#"paths = ["*/backup/*", "*union=*"] 403"#,
        ),
        (
            r#"$request_uri ~ "^/admin(\?.*)?$""#,
            r#"paths = ["/admin"] 403"#,
        ),
        (
            r#"$request_uri ~ "/users|\?author=""#,
            r#"paths = ["*/users*"] 403"#,
        ),
        ("$request_uri = /a=b", r#"paths = ["/a=b"] 403"#),
        (r#"$request_uri ~ "/a%20b""#, r#"paths = ["*/a%20b*"] 403"#),
        (
            r#"$request_uri ~ "(\bunion\b.*=|/old/)""#,
            r#"paths = ["*=*", "*/old/*"] 403"#,
        ),
    ] {
        let text = format!("server {{ root /srv; if ({condition}) {{ return 403; }} }}");
        let told = places(&text);
        assert!(
            told.iter().any(|line| line == expected),
            "{condition}: {told:?}"
        );
    }
}

#[test]
fn a_comment_has_the_parts_that_are_left_out() {
    let text = "server { root /srv; if ($request_uri ~* \"(/backup/|%00|union=)\") { return 403; } \
        location /x/ { if ($request_uri ~ \"(^/x/y|\\?id=)\") { return 404; } } \
        location /z/ { if ($request_uri ~ \"^/z/(\\?|$)\") { return 404; } } }";
    let why = "paths are compared decoded and without their queries, which leaves out";
    let mut told = places(text);
    told.retain(|line| line.starts_with('#') || line.contains("] 4"));
    let expected = [
        format!(
            "# not carried over: if ($request_uri ~* (/backup/|%00|union=) ) {{...}}: {why} %00, union= (site:1)"
        ),
        format!(
            "# not carried over: if ($request_uri ~ (^/x/y|\\?id=) ) {{...}}: {why} ?id= (site:1)"
        ),
        "paths = [\"*/backup/*\", \"*union=*\"] 403".to_owned(),
        "paths = [\"/x/y*\"] 404".to_owned(),
        "paths = [\"/z/\"] 404".to_owned(),
    ];
    told.sort();
    let mut sorted = expected.to_vec();
    sorted.sort();
    assert_eq!(told, sorted);
}

#[test]
fn what_is_about_queries_alone_is_left_out() {
    for condition in [
        "$request_uri ~ \"\\?id=1\"",
        "$request_uri = /a?b=c",
        "$request_uri ~ %2e",
    ] {
        let text = format!("server {{ root /srv; if ({condition}) {{ return 403; }} }}");
        let told = places(&text);
        let has_comment = told
            .iter()
            .any(|line| line.contains("Sooner has no conditions"));
        assert!(has_comment, "{condition}: {told:?}");
        assert!(!told.iter().any(|line| line.ends_with(" 403")), "{told:?}");
    }
    // Whether it is a path cannot be said.
    let text = "server { root /srv; if ($request_uri ~ \"(\\bx|id=)\") { return 403; } }";
    assert!(places(text).contains(&"paths = [\"/*\"] 403".to_owned()));
}

#[test]
fn methods_that_leave_out_get_shut_files() {
    for (methods, is_shut) in [
        ("POST", true),
        ("HEAD", true),
        ("PUT DELETE", true),
        ("GET", false),
        ("get", false),
        ("GET POST", false),
        ("POST GET", false),
    ] {
        for rule in ["deny all", "auth_basic x", "allow 10.0.0.1; deny all"] {
            let text = format!(
                "server {{ root /srv; location /d/ {{ limit_except {methods} {{ {rule}; }} }} }}"
            );
            let told = places(&text);
            let found = told.contains(&"paths = [\"/d/*\"] 403".to_owned());
            assert_eq!(found, is_shut, "{methods} {rule}: {told:?}");
        }
    }
    let text = "server { root /srv; location /d/ { limit_except POST { allow all; } } }";
    assert!(!lines(text).iter().any(|line| line == "status = 403"));
}
