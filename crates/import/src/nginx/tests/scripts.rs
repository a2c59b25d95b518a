//! `fastcgi_pass`.

use super::{has, lines};

/// What is said of places: paths with their status, `run` where requests go on to a route.
fn places(text: &str) -> Vec<String> {
    let lines = lines(text);
    let mut all = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(paths) = line.strip_prefix("paths = ") else {
            continue;
        };
        let own = lines[at + 1..]
            .iter()
            .take_while(|own| !own.starts_with('['));
        let what = own.clone().find_map(|own| {
            let status = own.strip_prefix("status = ").map(str::to_owned);
            status.or_else(|| own.starts_with("root = ").then(|| "files".to_owned()))
        });
        let paths = paths.replace(['[', ']', '"', ','], "");
        let mut paths: Vec<&str> = paths.split(' ').collect();
        paths.sort_unstable();
        let paths = paths.join(" ");
        all.push(format!("{paths} {}", what.unwrap_or_else(|| "run".into())));
    }
    all
}

fn line(text: &str, key: &str) -> String {
    let lines = lines(text);
    let mut found = lines.iter().filter(|line| line.starts_with(key));
    found.next().cloned().unwrap_or_default()
}

const PHP: &str = "location ~ \\.php$ { fastcgi_pass unix:/run/php.sock; }";

#[test]
fn scripts_have_a_route() {
    let text = format!(
        "server {{ root /srv; index index.php index.html; \
         location / {{ try_files $uri $uri/ /index.php?$args; }} {PHP} }}"
    );
    has(
        &text,
        &[
            "root = \"/srv\"",
            "servers = [\"fastcgi+unix:/run/php.sock\"]",
            "fastcgi = { root = \"/srv\", index = \"index.php\", fallback = \"/index.php\" }",
            "[[route]]",
            "path = \"/\"",
            "name = \"php\"",
        ],
    );
    assert_eq!(
        places(&text),
        ["*.php/*.php 404", "*.php run", "/*.php /*.php/* 404",]
    );
    assert!(!lines(&text).iter().any(|line| line.starts_with('#')));
}

#[test]
fn servers_and_times_are_those_of_nginx() {
    has(
        "upstream pool { server 10.0.0.1:9000 max_conns=5; server 10.0.0.2; } \
         server { root /srv; location ~ \\.php$ { fastcgi_pass pool; fastcgi_read_timeout 5m; \
         fastcgi_connect_timeout 2; fastcgi_param HTTPS on; fastcgi_param APP_ENV prod; \
         fastcgi_param HTTP_PROXY ''; fastcgi_param QUERY_STRING $query_string; } }",
        &[
            "name = \"pool\"",
            "servers = [\"fastcgi://10.0.0.1:9000\", \"fastcgi://10.0.0.2:80\"]",
            "connect_seconds = 2",
            "response_seconds = 300",
            "# not carried over: fastcgi_param HTTPS on: scripts are told HTTPS",
            "# not carried over: fastcgi_param APP_ENV prod: ",
        ],
    );
}

#[test]
fn one_script_stays_the_only_one() {
    let front = "root /srv; location / { try_files $uri /index.php$is_args$args; }";
    let text = format!(
        "server {{ {front} location ~ ^/index\\.php(/|$) {{ fastcgi_pass p:9000; internal; }} \
         location ~ \\.php$ {{ return 404; }} }}"
    );
    assert_eq!(
        line(&text, "fastcgi = "),
        "fastcgi = { root = \"/srv\", index = \"off\", fallback = \"/index.php\" }"
    );
    assert_eq!(
        places(&text),
        [
            "/index.php /index.php/* 404",
            "*.php 404",
            "/*.php /*.php/* 404",
        ]
    );
    // Without the second location as well.
    let text = format!(
        "server {{ {front} index index.php; location = /index.php {{ fastcgi_pass p:9000; }} }}"
    );
    assert_eq!(places(&text), ["/index.php run", "/*.php /*.php/* 404"]);
    assert!(line(&text, "fastcgi = ").contains("index = \"off\""));
    let text =
        "server { root /srv; index index.php; location = /index.php { fastcgi_pass p:9000; } }";
    assert_eq!(
        places(text),
        ["/index.php run", "/*.php /*.php/* 404", "/*/ files"]
    );
}

#[test]
fn what_is_denied_stays_denied() {
    for (denied, expected) in [
        (
            "location ~* /uploads/.*\\.php$ { deny all; }",
            &["*/uploads/*.php 403", "*/uploads/ */uploads/*/ 403"][..],
        ),
        (
            "location = /x/index.php { deny all; }",
            &["/x/index.php 403", "/x/ 403"],
        ),
        ("location = /xmlrpc.php { deny all; }", &["/xmlrpc.php 403"]),
        ("location ~ /\\.ht { deny all; }", &["*/.ht* 403"]),
        ("location ^~ /static/ { }", &["/static/* files"]),
        ("location ^~ /none/ { deny all; }", &["/none/* 403"]),
        (
            "location ~ \\..*/.*\\.php$ { return 403; }",
            &["*.*/*.php 403", "*.*/ *.*/*/ 403"],
        ),
    ] {
        let text = format!("server {{ root /srv; index index.php; {denied} {PHP} }}");
        let own = places(&text);
        let mut expected: Vec<String> = expected.iter().map(|own| (*own).to_owned()).collect();
        expected.extend([
            "*.php/*.php 404".into(),
            "*.php run".into(),
            "/*.php /*.php/* 404".into(),
        ]);
        assert_eq!(own, expected, "{denied}");
    }
    // The last resort too.
    let text = format!(
        "server {{ root /srv; location / {{ try_files $uri /index.php; }} \
         location = /index.php {{ deny all; }} {PHP} }}"
    );
    assert!(!line(&text, "fastcgi = ").contains("fallback"), "{text}");
    has(&text, &["# not carried over: try_files $uri /index.php: "]);
}

#[test]
fn scripts_within_other_places_are_not_run() {
    let text = format!(
        "server {{ root /srv; index index.php; location / {{ try_files $uri $uri/ /index.php?$args; }} \
         location ~ \\.css$ {{ try_files $uri /index.php?$args; }} \
         location /api/ {{ proxy_pass http://a; }} {PHP} }}"
    );
    let own = places(&text);
    for expected in [
        "*.php/*.css 404",
        "*.css run",
        "/api/*.php /api/*.php/* 501",
        "/api/* run",
    ] {
        assert!(
            own.iter().any(|own| own == expected),
            "{expected}\n{own:#?}"
        );
    }
    let at = |wanted: &str| own.iter().position(|own| own == wanted).unwrap();
    assert!(at("*.php/*.css 404") < at("*.css run") && at("*.css run") < at("*.php run"));
}

#[test]
fn a_folder_may_have_an_application_of_its_own() {
    let text = "server { root /srv; index index.php; \
        location /blog { try_files $uri $uri/ /blog/index.php?$args; } \
        location /pma { root /usr/share; index index.php; \
          location ~ ^/pma/(.+\\.php)$ { root /usr/share; fastcgi_pass unix:/q; } } \
        location ~ [^/]\\.php(/|$) { fastcgi_split_path_info ^(.+?\\.php)(/.*)$; fastcgi_pass unix:/p; } }";
    has(
        text,
        &[
            "path = \"/blog\"",
            "path = \"/pma/\"",
            "fastcgi = { root = \"/srv\", index = \"index.php\", fallback = \"/blog/index.php\" }",
            "fastcgi = { root = \"/usr/share\", index = \"index.php\" }",
            "fastcgi = { root = \"/srv\", index = \"index.php\" }",
        ],
    );
    let own = places(text);
    for expected in [
        "/pma/*.php run",
        "/pma/ run",
        "/pma* files",
        "/blog* run",
        "*.php *.php/* run",
    ] {
        assert!(
            own.iter().any(|own| own == expected),
            "{expected}\n{own:#?}"
        );
    }
}

#[test]
fn what_cannot_be_said_of_scripts_is_not_run() {
    for inside in [
        "location ~ \\.php$ { root /other; fastcgi_pass p:9000; }",
        "location ~ \\.php$ { fastcgi_pass $pool; }",
        "location ~ \\.php$ { fastcgi_pass p:9000; rewrite ^/a/(.*)$ /b/$1 break; }",
        "location ~ \\.php$ { fastcgi_pass p:9000; fastcgi_param SCRIPT_FILENAME $dir/x.php; }",
        "location ~ ^/v[0-9]+\\.php$ { fastcgi_pass p:9000; }",
        "location /cgi/ { fastcgi_pass p:9000; }",
        "location ~ \\.pl$ { fastcgi_pass p:9000; }",
    ] {
        let text = format!("server {{ root /srv; {inside} }}");
        let own = places(&text);
        assert!(
            own.iter().any(|own| own.ends_with("501")),
            "{inside} {own:?}"
        );
        assert!(
            !own.iter().any(|own| own.ends_with("run")),
            "{inside} {own:?}"
        );
        has(&text, &["# not carried over: fastcgi_pass"]);
    }
}

#[test]
fn rewrites_to_one_script_are_its_last_resort() {
    for rest in [
        "location / { if (!-e $request_filename) { rewrite ^/(.*)$ /index.php last; } }",
        "location / { try_files $uri $uri/ @front; } location @front { rewrite ^ /index.php; }",
        "location / { try_files $uri $uri/ /index.php$is_args$args; }",
    ] {
        let text = format!("server {{ root /srv; index index.php; {rest} {PHP} }}");
        assert!(
            line(&text, "fastcgi = ").contains("fallback = \"/index.php\""),
            "{rest}"
        );
        assert!(
            !lines(&text).iter().any(|line| line.starts_with('#')),
            "{rest}"
        );
    }
    let text = format!(
        "server {{ root /srv; location / {{ try_files $uri /index.php?q=$uri&$args; }} {PHP} }}"
    );
    has(
        &text,
        &["# not carried over: try_files $uri /index.php?q=$uri&$args: fastcgi.fallback gets"],
    );
}

#[test]
fn several_sites_have_scripts_of_their_own() {
    let one = |name: &str, root: &str| {
        format!(
            "server {{ listen 80; server_name {name}; root {root}; index index.php; location / {{ try_files $uri /index.php; }} {PHP} }}"
        )
    };
    let text = format!(
        "{} {} {}",
        one("_", "/d"),
        one("a.org", "/a"),
        one("*.b.org", "/b")
    );
    let lines = lines(&text);
    assert!(
        !lines.iter().any(|line| line == "status = 501"),
        "{lines:#?}"
    );
    let routes = lines.iter().filter(|line| *line == "[[route]]").count();
    assert_eq!(routes, 3);
    for root in ["/d", "/a", "/b"] {
        let wanted = format!("fastcgi = {{ root = \"{root}\", ");
        assert!(lines.iter().any(|line| line.starts_with(&wanted)), "{root}");
    }
    // One host has one route for a path, whatever the scheme.
    let tls = "server { listen 443 ssl; server_name a.org; ssl_certificate /c; ssl_certificate_key /k; root /t; \
               location ~ \\.php$ { fastcgi_pass other:9000; } }";
    let text = format!("{} {tls}", one("a.org", "/a"));
    has(
        &text,
        &["status = 501", "# not carried over: what goes to php at /"],
    );
}

#[test]
fn scripts_that_are_rewritten_are_not_run() {
    let text = "server { root /srv; index index.php; location ~ \\.php(?:$|/) { \
        rewrite ^/(?!index|core\\/ajax\\/update|ocs\\/v[12]|updater\\/.+) /index.php$request_uri; \
        fastcgi_split_path_info ^(.+?\\.php)(/.*)$; fastcgi_pass p:9000; } \
        location / { try_files $uri $uri/ /index.php$is_args$args; } }";
    let own = places(text);
    let words: Vec<&str> = own[0].split(' ').collect();
    for expected in [
        "/index*.php",
        "/core/ajax/update*.php/*",
        "/ocs/v2*.php",
        "/updater/*.php",
        "run",
    ] {
        assert!(words.contains(&expected), "{expected}\n{own:#?}");
    }
    assert!(!words.contains(&"*.php"));
    assert_eq!(own[1..], ["/*.php /*.php/* 404"]);
    // No directory has a script of its own.
    let fastcgi = "fastcgi = { root = \"/srv\", index = \"off\", fallback = \"/index.php\" }";
    assert_eq!(line(text, "fastcgi = "), fastcgi);
}
