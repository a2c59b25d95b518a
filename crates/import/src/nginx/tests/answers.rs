//! What becomes of pages of errors, of hosts that no server names, and of what is not carried over
//! without a word.

use super::{has, lines, result};

const PAGE: &str = "location = /50x.html { root /srv/pages; }";
const TLS: &str = "ssl_certificate /c.pem; ssl_certificate_key /k.pem;";

/// The result without the names of the lines.
fn text(inside: &str) -> String {
    lines(inside).join("\n")
}

/// That nothing is left out.
fn is_whole(inside: &str) {
    let text = text(inside);
    assert!(!text.contains("not carried over"), "{inside}\n{text}");
}

#[test]
fn the_routes_of_the_default_server_are_for_all_hosts() {
    let text = text(
        "server { listen 80 default_server; server_name a.org; location / { proxy_pass http://app; } } \
         server { listen 80; server_name static.a.org; root /srv/static; } \
         server { listen 80; server_name b.org; location / { proxy_pass http://other; } }",
    );
    let routes = "[[route]]\npath = \"/\"\nupstream = \"app\"\n\
                  [[route]]\npath = \"/\"\nhosts = [\"b.org\"]\nupstream = \"other\"";
    assert!(text.ends_with(routes), "{text}");
    // The others have files of their own and do not get its route.
    let own =
        "hosts = [\"static.a.org\"]\nroot = \"/srv/static\"\n[[site.location]]\npaths = [\"/*\"]";
    assert!(text.contains(own), "{text}");
    assert!(!text.contains("not carried over"), "{text}");
}

#[test]
fn names_of_the_default_server_stay_its_own_beside_a_wildcard() {
    has(
        "server { listen 80 default_server; server_name www.a.org; location / { proxy_pass http://app; } } \
         server { listen 80; server_name *.a.org; location / { proxy_pass http://other; } }",
        &["hosts = [\"www.a.org\"]", "hosts = [\"*.a.org\"]"],
    );
    let text = text(
        "server { listen 80 default_server; server_name www.a.org; location / { proxy_pass http://app; } } \
         server { listen 80; server_name *.a.org; location / { proxy_pass http://other; } }",
    );
    assert_eq!(text.matches("[[route]]").count(), 3, "{text}");
}

#[test]
fn defaults_of_two_schemes_that_lead_elsewhere_are_told_apart() {
    let text = text(&format!(
        "server {{ listen 80 default_server; server_name a.org; location / {{ proxy_pass http://app; }} }} \
         server {{ listen 443 ssl default_server; server_name b.org; {TLS} \
         location / {{ proxy_pass http://other; }} }}"
    ));
    let refused = "[[site]]\nscheme = \"http\"\n[[site.location]]\npaths = [\"/*\"]\nstatus = 501";
    assert!(text.contains(refused), "{text}");
    let why = "# not carried over: what goes to hosts without a server of their own over http";
    assert!(text.contains(why), "{text}");
    let named = "[[route]]\npath = \"/\"\nhosts = [\"a.org\"]\nupstream = \"app\"";
    assert!(text.contains(named), "{text}");
    assert!(
        text.contains("[[route]]\npath = \"/\"\nupstream = \"other\""),
        "{text}"
    );
    // a.org over TLS is the default's, but has a route of its own.
    let other = "[[site]]\nhosts = [\"a.org\"]\nscheme = \"https\"\n[[site.location]]\npaths = [\"/*\"]\nstatus = 501";
    assert!(text.contains(other), "{text}");
}

#[test]
fn a_name_of_one_scheme_does_not_close_the_default_of_both() {
    let text = text(&format!(
        "server {{ listen 80 default_server; listen 443 ssl default_server; server_name a.org; {TLS} \
         location / {{ proxy_pass http://app; }} }} \
         server {{ listen 80; server_name b.org; location / {{ proxy_pass http://other; }} }}"
    ));
    let refused = "[[site]]\nhosts = [\"b.org\"]\nscheme = \"https\"\n[[site.location]]\npaths = [\"/*\"]\nstatus = 501";
    assert!(text.contains(refused), "{text}");
    assert_eq!(text.matches("status = 501").count(), 1, "{text}");
    assert!(
        text.contains("not carried over: what goes to b.org over https"),
        "{text}"
    );
    assert!(
        text.contains("[[route]]\npath = \"/\"\nupstream = \"app\""),
        "{text}"
    );
}

#[test]
fn pages_of_errors_are_those_of_their_location() {
    has(
        "server { root /srv; location /a/ { error_page 502 504 /50x.html; proxy_pass http://app; } }",
        &["errors = { 502 = \"/50x.html\", 503 = \"/50x.html\", 504 = \"/50x.html\" }"],
    );
    for server in [
        format!("location / {{ error_page 502 503 /50x.html; proxy_pass http://app; }} {PAGE}"),
        format!(
            "location / {{ proxy_pass http://app; }} {PAGE} \
             location /b/ {{ error_page 502 503 /50x.html; proxy_pass http://other; }}"
        ),
        format!("location / {{ error_page 502 503 /50x.html; return 503; }} {PAGE}"),
    ] {
        let server = format!("server {{ {server} }}");
        has(
            &server,
            &[
                "root = \"/srv/pages\"",
                "errors = { 502 = \"/50x.html\", 503 = \"/50x.html\" }",
            ],
        );
        is_whole(&server);
    }
    for page in [
        "502 =200 /50x.html",
        "404 http://b.org/lost",
        "502 /other.html",
    ] {
        let text = format!(
            "server {{ root /srv; location /a/ {{ error_page {page}; proxy_pass http://app; }} \
             location = /other.html {{ root /elsewhere; }} }}"
        );
        has(
            &text,
            &[&format!("# not carried over: error_page {page}: ")],
        );
    }
    has(
        "server { root /srv; location ~ \\.php$ { error_page 404 /lost.html; fastcgi_pass p:9000; } }",
        &["errors = { 404 = \"/lost.html\" }"],
    );
    has(
        "server { root /srv; location /a/ { error_page 403 /no.html; deny all; } }",
        &["errors = { 403 = \"/no.html\" }"],
    );
    has(
        "server { location /a/ { error_page 403 /no.html; deny all; } }",
        &["# not carried over: error_page 403 /no.html: "],
    );
}

#[test]
fn what_gets_503_has_the_page_of_502() {
    let server = |pages: &str| {
        format!(
            "server {{ root /srv; error_page {pages}; location /a/ {{ proxy_pass http://app; }} }}"
        )
    };
    let said = |text: &str| {
        let text = result(&[("site", text)]).unwrap().text;
        text.contains("# The page for 502 is one for 503 too")
    };
    let lacking = server("502 504 /50x.html");
    has(
        &lacking,
        &["errors = { 502 = \"/50x.html\", 503 = \"/50x.html\", 504 = \"/50x.html\" }"],
    );
    assert!(said(&lacking));
    assert!(!said(&server("500 502 503 504 /50x.html")));
    let own = server("502 /a.html; error_page 503 /b.html");
    has(&own, &["errors = { 502 = \"/a.html\", 503 = \"/b.html\" }"]);
    assert!(!said("server { root /srv; error_page 502 /50x.html; }"));
}

#[test]
fn types_are_also_those_by_which_files_are_sent() {
    let types = |list: &str| {
        let text = format!("gzip on; gzip_types {list}; server {{ root /srv; }}");
        let lines = lines(&text);
        let own = lines.into_iter().find(|line| line.starts_with("types = "));
        own.unwrap()
    };
    assert_eq!(
        types("application/javascript text/xml"),
        "types = [\"text/html\", \"application/javascript\", \"text/xml\", \"text/javascript\", \"application/xml\"]"
    );
    assert_eq!(
        types("text/javascript text/css"),
        "types = [\"text/html\", \"text/javascript\", \"text/css\"]"
    );
}

#[test]
fn what_changes_answers_is_not_left_out_without_a_word() {
    for (inside, said) in [
        ("etag off;", "etag off"),
        ("if_modified_since off;", "if_modified_since off"),
        ("max_ranges 0;", "max_ranges 0"),
        ("merge_slashes off;", "merge_slashes off"),
        ("charset koi8-r;", "charset koi8-r"),
        ("underscores_in_headers off;", "underscores_in_headers off"),
        ("add_header Last-Modified \"\";", "add_header Last-Modified"),
        ("return 303 /x;", "return 303 /x"),
        ("location /a { return 303 /x; }", "return 303 /x"),
        ("if ($host = a.org) { return 303 /x; }", "return 303 /x"),
        (
            "location /a/ { internal; } location /b/ { proxy_pass http://app; }",
            "internal",
        ),
        (
            "location / { try_files $uri/index.html $uri @app; } location @app { proxy_pass http://app; }",
            "try_files $uri/index.html $uri @app",
        ),
    ] {
        let server = format!("server {{ server_name a.org; root /srv; {inside} }}");
        has(&server, &[&format!("# not carried over: {said}")]);
    }
    for inside in [
        "etag on; if_modified_since exact; max_ranges 5; merge_slashes on; charset UTF-8; underscores_in_headers on;",
        "add_header X-Kind \"\";",
        "error_page 404 /404.html; location = /404.html { internal; } location /b/ { proxy_pass http://app; }",
        "location /a/ { internal; }",
    ] {
        is_whole(&format!("server {{ root /srv; {inside} }}"));
    }
}

#[test]
fn root_is_no_user() {
    let text = |user: &str| format!("user {user}; http {{ server {{ root /srv; }} }}");
    for user in ["root", "root root"] {
        has(
            &text(user),
            &[&format!("# not carried over: user {user}: ")],
        );
        assert!(
            !lines(&text(user))
                .iter()
                .any(|line| line.starts_with("user"))
        );
    }
    has(&text("www-data"), &["user = \"www-data\""]);
}

#[test]
fn only_folders_with_what_is_denied_as_their_index_are_closed() {
    let text = text(
        "server { root /srv; index index.php; location ~* wp-config.php { deny all; } \
         location / { try_files $uri $uri/ /index.php?$args; } \
         location ~ \\.php$ { fastcgi_pass p:9000; } }",
    );
    assert!(!text.contains("paths = [\"*/\"]"), "{text}");
    assert!(
        text.contains("paths = [\"*wp-config*php*\"]\nignore_case = true\nstatus = 403"),
        "{text}"
    );
}
