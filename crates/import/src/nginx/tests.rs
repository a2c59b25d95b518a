//! Whole files and what comes of them; those like public ones are held against nginx with the tests
//! of the command.

mod all_sites;
mod answers;
mod guards;
mod keeping;
mod passes;
mod passwords;
mod redirects;
mod reviewed;
mod scripts;
mod told;
mod tried;

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// What comes of files in `/etc/nginx`: the first is the main one.
fn result(files: &[(&str, &str)]) -> Result<Imported, ImportError> {
    let folder = Path::new("/etc/nginx");
    let texts: BTreeMap<PathBuf, &str> = files
        .iter()
        .map(|(name, text)| (folder.join(name), *text))
        .collect();
    let read = |file: &Path| match texts.get(file) {
        Some(text) => Ok((*text).to_owned()),
        None => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let list = |folder: &Path| {
        let below = texts
            .keys()
            .filter_map(|path| path.strip_prefix(folder).ok());
        let names = below.filter_map(|path| path.components().next());
        Ok(names
            .map(|name| name.as_os_str().to_string_lossy().into_owned())
            .collect())
    };
    let files_of = NginxFiles {
        folder,
        read: &read,
        list: &list,
    };
    import_nginx(files[0].0, files_of)
}

/// The lines of one file, without remarks but those on what is left out.
fn lines(text: &str) -> Vec<String> {
    let text = result(&[("site", text)])
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .text;
    let told = text
        .lines()
        .filter(|line| !line.starts_with("# ") || line.starts_with("# not carried"));
    told.filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

fn has(text: &str, expected: &[&str]) {
    let lines = lines(text);
    for line in expected {
        let found = lines.iter().any(|own| own.starts_with(line));
        assert!(found, "{line}\nis not in\n{}", lines.join("\n"));
    }
}

fn mistake(files: &[(&str, &str)]) -> String {
    result(files).unwrap_err().to_string()
}

#[test]
fn a_site_of_files_is_a_site() {
    assert_eq!(
        lines("server { listen 80; server_name a.org www.a.org; root /srv/a; index index.htm; }"),
        [
            "listen = [\"0.0.0.0:80\"]",
            "[limits]",
            "body_bytes = 1048576",
            "[[site]]",
            "hosts = [\"a.org\", \"www.a.org\"]",
            "root = \"/srv/a\"",
            "index = [\"index.htm\"]",
        ]
    );
}

#[test]
fn what_cannot_be_said_of_who_may_come_is_refused() {
    for (inside, said) in [
        ("allow 10.0.0.0/8; deny all;", "allow 10.0.0.0/8"),
        ("deny 10.0.0.1;", "deny 10.0.0.1"),
        ("auth_basic x;", "auth_basic x"),
        ("auth_basic $x; auth_basic_user_file f;", "auth_basic $x"),
        ("auth_basic x; auth_basic_user_file /srv/f;", "auth_basic x"),
        (
            "satisfy any; allow 10.0.0.1; auth_basic x; auth_basic_user_file f;",
            "auth_basic x",
        ),
        (
            "proxy_pass http://a; limit_except GET { auth_basic x; }",
            "limit_except GET",
        ),
        (
            "satisfy any; allow 10.0.0.0/8; deny all; auth_basic x;",
            "deny all",
        ),
        ("auth_request /auth;", "auth_request /auth"),
        ("if ($remote_addr != 10.0.0.1) { return 403; }", "if"),
        (
            "proxy_pass http://a; limit_except GET { deny all; }",
            "limit_except GET",
        ),
        ("fastcgi_pass unix:/run/php.sock;", "fastcgi_pass"),
        ("scgi_pass 127.0.0.1:1;", "scgi_pass"),
        (
            "content_by_lua_block { ngx.say('}') -- {\n }",
            "content_by_lua_block",
        ),
    ] {
        let text = format!("server {{ root /srv; location /x/ {{ {inside} }} }}");
        let lines = lines(&text);
        let at = lines.iter().position(|line| line == "paths = [\"/x/*\"]");
        let at = at.unwrap_or_else(|| panic!("{inside}\n{}", lines.join("\n")));
        let status = &lines[at + 1];
        assert!(
            status == "status = 403" || status == "status = 501",
            "{inside}: {status}"
        );
        let is_said = |line: &&String| line.starts_with("# not carried over: ");
        assert!(lines.iter().any(|line| is_said(&line)), "{inside} {said}");
    }
    // The same of a whole server, and of an expression that cannot be said.
    for text in [
        "server { root /srv; allow 10.0.0.0/8; deny all; }",
        "server { root /srv; location ~ ^/a(?=b\\b) { deny all; } }",
        "server { root /srv; if ($http_x_key != secret) { return 403; } }",
    ] {
        has(
            text,
            &["paths = [\"/*\"]", "status = 403", "# not carried over: "],
        );
    }
}

#[test]
fn what_is_refused_to_all_needs_no_remark() {
    let lines = lines(
        "server { root /srv; location ~ /\\.ht { deny all; } location /in/ { internal; } \
         location = /gone { return 410; } location /h { return 200 ok; } }",
    );
    for line in [
        "paths = [\"*/.ht*\"]",
        "status = 403",
        "status = 404",
        "status = 410",
        "text = \"ok\"",
    ] {
        assert!(lines.iter().any(|own| own == line), "{line} {lines:?}");
    }
    assert!(!lines.iter().any(|own| own.starts_with('#')), "{lines:?}");
}

#[test]
fn what_another_program_would_run_is_not_sent() {
    has(
        "server { root /srv; index index.php index.html; \
         location / { try_files $uri $uri/ /index.php?$args; } \
         location ~ \\.php$ { fastcgi_pass $pool; } }",
        &[
            "paths = [\"*.php\"]",
            "status = 501",
            "# not carried over: fastcgi_pass",
            "# not carried over: try_files",
        ],
    );
    let own = lines("server { root /srv; index index.php; }");
    assert!(own.iter().any(|line| line == "index = []"), "{own:?}");
}

#[test]
fn an_alias_may_be_one_file() {
    for sign in ["=", ""] {
        let text = format!("server {{ location {sign} /s/i.ico {{ alias /srv/x/i.ico; }} }}");
        has(&text, &["root = \"/srv/x\"", "strip_prefix = \"/s\""]);
    }
}

#[test]
fn requests_that_are_passed_on_have_a_route() {
    has(
        "upstream app { server 10.0.0.1:3000 max_conns=8 max_fails=2; server 10.0.0.2:3000 max_conns=8 max_fails=2; \
           server 10.0.0.3:3000 backup; keepalive 8; }\n\
         server { server_name a.org; \
         location / { proxy_pass http://app; proxy_set_header Host $host; proxy_read_timeout 5m; }\n\
         location /api/ { proxy_pass http://127.0.0.1:4000/; } }",
        &[
            "servers = [\"http://10.0.0.1:3000\", \"http://10.0.0.2:3000\"]",
            "limit = 8",
            "fails = 2",
            "host = \"127.0.0.1:4000\"",
            "strip_prefix = true",
            "response_seconds = 300",
            "from = \"/api\"",
            "# not carried over: server 10.0.0.3:3000 backup",
        ],
    );
    has(
        "server { root /srv; location / { try_files $uri @app; } location @app { proxy_pass http://unix:/run/a.sock; } }",
        &[
            "files_first = true",
            "servers = [\"unix:/run/a.sock\"]",
            "root = \"/srv\"",
            "index = []",
        ],
    );
}

#[test]
fn servers_that_listen_elsewhere_are_left_out() {
    has(
        "server { listen 80; server_name a.org; root /srv/a; }\n\
         server { listen 80; server_name b.org; root /srv/b; }\n\
         server { listen 127.0.0.1:8081; root /srv/secret; }",
        &[
            "hosts = [\"b.org\"]",
            "# not carried over: server : it listens elsewhere",
        ],
    );
    let own = lines(
        "server { listen 80; server_name a.org; root /srv/a; } server { listen 127.0.0.1:81; root /srv/s; }",
    );
    assert!(
        !own.iter().any(|line| line.contains("\"/srv/s\"")),
        "{own:?}"
    );
}

#[test]
fn certbots_edits_are_two_sites_of_a_name() {
    let own = lines(
        "server { if ($host = a.org) { return 301 https://$host$request_uri; } # managed by Certbot\n\
           listen 80; server_name a.org; return 404; }\n\
         server { server_name a.org; root /srv/a; listen 443 ssl; \
           ssl_certificate /c.pem; ssl_certificate_key /k.pem; }",
    );
    let text = own.join("\n");
    for line in [
        "listen_tls = [\"0.0.0.0:443\"]",
        "scheme = \"http\"",
        "scheme = \"https\"",
        "to = \"https://$host/$1\"",
        "status = 404",
    ] {
        assert!(own.iter().any(|own| own == line), "{line}\n{text}");
    }
}

#[test]
fn routes_of_one_site_take_no_requests_of_another() {
    let own = lines(
        "server { listen 80 default_server; server_name _; location / { proxy_pass http://a; } location /api/ { proxy_pass http://b; } }\n\
         server { listen 80; server_name s.org; root /srv/s; }\n\
         server { listen 80; server_name p.org; location / { proxy_pass http://c; } }",
    );
    let text = own.join("\n");
    let routes: Vec<&str> = text.split("[[route]]\n").skip(1).collect();
    let of_p: Vec<_> = routes.iter().filter(|own| own.contains("p.org")).collect();
    assert!(
        of_p.iter()
            .any(|own| own.starts_with("path = \"/api/\"") && own.contains("\"c\"")),
        "{text}"
    );
    let (_, s) = text.split_once("hosts = [\"s.org\"]").unwrap();
    let s = s.split("[[site]]").next().unwrap();
    assert!(s.contains("paths = [\"/*\"]\nroot = \"/srv/s\""), "{text}");
}

#[test]
fn files_are_included_as_nginx_finds_them() {
    let imported = result(&[
        (
            "nginx.conf",
            "http {\n include conf.d/*.conf;\n include mime.types;\n}\n",
        ),
        (
            "conf.d/a.conf",
            "server { server_name a.org; include snippets/r.conf; }",
        ),
        ("conf.d/b.conf~", "broken"),
        ("snippets/r.conf", "root /srv/a;"),
    ]);
    assert!(imported.unwrap().text.contains("root = \"/srv/a\""));
    // A file of a site is below the folder of nginx.conf.
    let imported = result(&[
        ("sites-available/a", "server { include snippets/r.conf; }"),
        ("nginx.conf", ""),
        ("snippets/r.conf", "root /srv/a;"),
    ]);
    assert!(imported.unwrap().text.contains("root = \"/srv/a\""));
    let dump = "# configuration file /etc/nginx/nginx.conf:\nhttp { include x/*; }\n\
                # configuration file /etc/nginx/x/a:\nserver { root /srv/d; }\n";
    assert!(
        result(&[("dump", dump)])
            .unwrap()
            .text
            .contains("root = \"/srv/d\"")
    );
}

#[test]
fn every_mistake_has_its_line() {
    for (files, said) in [
        (
            vec![("a", "server {\n root /x\n}")],
            "a:3: unexpected }; write ; behind root /x",
        ),
        (vec![("a", "server {\n")], "a:1: this block has no end"),
        (
            vec![("a", "server { }\n}")],
            "a:2: unexpected }: no block is open",
        ),
        (vec![("a", "\nroot x;")], "a:1: no server { ... }"),
        (
            vec![("a", "server { listen 99999; }")],
            "a:1: listen: \"99999\" has no valid port; write 1 to 65535",
        ),
        (
            vec![("a", "server {\nlocation { } }")],
            "a:2: location: has no argument; write 1 to 2",
        ),
        (
            vec![("a", "server { location /a {} \nlocation /a {} }")],
            "a:2: a second location /a",
        ),
        (
            vec![("a", "server { include b; }"), ("b", "\nx 'y;")],
            "/etc/nginx/b:2: this quote has no end",
        ),
        (
            vec![("a", "server {\ninclude c; }")],
            "a:2: cannot read /etc/nginx/c",
        ),
        (
            vec![("a", "include a;")],
            "/etc/nginx/a:1: more than 24 blocks and files",
        ),
    ] {
        let really = mistake(&files);
        assert!(really.starts_with(said), "{said}\n{really}");
        assert!(!really.contains('\n'));
    }
}

#[test]
fn what_nginx_would_refuse_is_refused() {
    for (files, said) in [
        (
            vec![("a", "server {\n listen 80\n server_name x; }")],
            "a:2: listen 80 has no end before server_name in line 3; write ; behind it",
        ),
        (
            vec![("a", "server { include b; root /x; }"), ("b", "\nroot /y;")],
            "a:1: root: a second one in this block, after that in line 2 of /etc/nginx/b; keep",
        ),
        (
            vec![("a", "server {\n location / { root a; alias b; } }")],
            "a:2: alias: beside root in line 2; keep one of them",
        ),
        (
            vec![("a", "server { }\nserver { server_name x; upstream y { } }")],
            "a:2: upstream: has no place in server; write it in http",
        ),
        (
            vec![(
                "haproxy.cfg",
                "# x\nglobal\n  daemon\nfrontend a\n  bind :80\n",
            )],
            "haproxy.cfg:2: global begins a section of HAProxy, so this is not a file of nginx; name",
        ),
        (
            vec![("a", "\nserver { listen unix:/a; }")],
            "a:2: no server here can be a site: Sooner listens at single ports; write one",
        ),
        (
            vec![("haproxy.cfg", "frontend a")],
            "haproxy.cfg:1: frontend begins a section of HAProxy",
        ),
        (
            vec![(
                "a.conf",
                "<VirtualHost *:80>\n  ServerName x\n</VirtualHost>\n",
            )],
            "a.conf:1: <VirtualHost begins a section of Apache",
        ),
    ] {
        let really = mistake(&files);
        assert!(really.starts_with(said), "{said}\n{really}");
        assert!(!really.contains('\n'));
    }
}

proptest! {
    #[test]
    fn whatever_is_read_is_refused_or_becomes_what_the_server_reads(
        parts in proptest::collection::vec(0usize..PARTS.len(), 0..12),
    ) {
        let inside: String = parts.iter().map(|part| PARTS[*part]).collect::<Vec<_>>().join("\n");
        let text = format!("server {{ listen 80; listen 443 ssl; server_name a.org b.org;\n{inside}\n}}\nserver {{ server_name c.org; root /c; }}");
        match result(&[("a", &text)]) {
            Ok(_) => {}
            Err(error @ ImportError::Own { .. }) => panic!("{error}\n{text}"),
            Err(_) => {}
        }
    }
}

/// Directives that meet in many ways.
const PARTS: [&str; 67] = [
    "root /srv;",
    "index a.html b.php;",
    "return 301 https://$host$request_uri;",
    "if ($host = b.org) { return 301 $scheme://a.org$request_uri; }",
    "if ($scheme = http) { return 301 https://$host$request_uri; }",
    "location / { proxy_pass http://app; }",
    "location / { try_files $uri $uri/ /index.html; }",
    "location /x { return 301 /y; }",
    "location /x/ { alias /srv/x/; autoindex on; }",
    "location = /x { proxy_pass http://b; }",
    "location /x/y { proxy_pass http://c/; add_header X-A b; }",
    "location ^~ /z/ { deny all; }",
    "location ~ \\.(php|bak)$ { deny all; }",
    "location ~* \\.(css|js)$ { expires 30d; }",
    "rewrite ^/old/(.*)$ /new/$1 permanent;",
    "rewrite ^/old/(.*)$ /other/$1 permanent;",
    "error_page 404 /404.html;",
    "add_header X-A \"b c\" always;",
    "add_header Cache-Control no-store;",
    "deny 10.0.0.1;",
    "location @n { proxy_pass http://app; }",
    "location /w { try_files $uri @n; }",
    "rewrite ^ https://a.org$request_uri? permanent;",
    "expires -1;",
    "expires max;",
    "gzip on;",
    "auth_basic x; auth_basic_user_file f;",
    "location /st { auth_basic x; auth_basic_user_file g; }",
    "location /st/ { auth_basic off; expires 1h; }",
    "location = /st { auth_basic y; auth_basic_user_file f; }",
    "location = / { auth_basic off; }",
    "location = /index.php { auth_basic x; auth_basic_user_file h; fastcgi_pass php:9000; }",
    "location ~ \\.php$ { fastcgi_pass php:9000; }",
    "location ~ \\.php(/|$) { fastcgi_pass php:9000; expires 1h; gzip off; }",
    "location ~* /up/.*\\.php$ { deny all; }",
    "location ~ ^/index\\.php(/|$) { internal; root /srv; fastcgi_pass php:9000; }",
    "location ~ [^/]\\.php(/|$) { auth_basic x; auth_basic_user_file f; fastcgi_pass php:9000; }",
    "location /w { try_files $uri $uri/ /w/index.php; location ~ \\.php$ { fastcgi_pass b:9000; } }",
    "location / { try_files $uri $uri/ /index.php?$args; }",
    "location / { try_files $uri @f; expires 1d; } location @f { rewrite ^ /index.php; }",
    "location ~ ^/pma/(.+\\.php)$ { root /usr/share; fastcgi_pass php:9000; }",
    "location ^~ /z/ { auth_basic x; auth_basic_user_file f; add_header Cache-Control immutable; expires 1y; }",
    "location /b/ { proxy_pass http://app; expires 1h; gzip on; }",
    "index index.php x.php index.html;",
    "if ($host != a.org) { return 404; }",
    "if ($uri ~* ^/(x|w)) { return 403; }",
    "if ($request_filename ~ \\.b[a-z]k$) { return 410 gone; }",
    "location /h { if ($host = b.org) { return 403; } if ($scheme = http) { return 301 https://$host$request_uri; } }",
    "location ~ \\.txt$ { if ($uri ~ /x.*/y) { return 444; } }",
    "location /k/ { if ($uri ~ k/.*\\.php) { return 404; } fastcgi_pass php:9000; }",
    "location /o { if ($remote_addr != 10.0.0.1) { rewrite ^ /soon last; } }",
    "ssl_verify_client on; ssl_client_certificate /ca;",
    "ssl_crl /crl; ssl_reject_handshake off;",
    "disable_symlinks on;",
    "location = /index.html { add_header X-A c; default_type text/x; }",
    "location ~ \\.html$ { add_header X-B c; auth_ldap x; }",
    "rewrite ^/blog/ https://b.org$request_uri? permanent;",
    "location ~ ^/g/(.*)$ { return 301 https://b.org/$1; }",
    "location /t { try_files /dev/null @n; }",
    "location = /t/ { try_files /a.html =404; }",
    "location ~* \\.(css|js|png)$ { proxy_pass http://app; expires 30d; }",
    "if ($uri = /healthz) { return 200 ok; }",
    "location ~* ^/cap { return 301 /other; }",
    "if ($remote_addr !~ ^10\\.) { return 403; }",
    "location ~ ^/(.*)$ { return 301 https://$host/x/$1; }",
    "location = /u { try_files /a.html =404; }",
    "location = /v { try_files /dev/null /index.php?$args; }",
];
