//! What a path leads to, a script or a page, is looked up as if it had been asked for by its name:
//! as nginx does when it redirects within itself. And no path shows the source of a script.

use super::fastcgi::{Php, ask};
use super::support::Site;
use sooner_testbed::nginx::Nginx;
use sooner_testbed::port;
use std::fs;
use std::net::SocketAddr;

/// anna, with her password.
const ANNA: &str = "authorization: Basic YW5uYTpwYXNzd29yZA==\r\n";
/// bert, with the same.
const BERT: &str = "authorization: Basic YmVydDpwYXNzd29yZA==\r\n";

/// nginx before the same pool, with more locations.
fn nginx(php: &Php, more: &str) -> (Nginx, SocketAddr, tempfile::TempDir) {
    let address = port::free().unwrap();
    let (root, socket) = (php.root(), php.socket());
    let run = format!(
        "include /etc/nginx/fastcgi_params; \
         fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; \
         fastcgi_pass unix:{};",
        socket.display()
    );
    let http = format!(
        "access_log off; include /etc/nginx/mime.types; server {{ listen {address}; root {};\n\
         index index.php index.html;\n{}\n\
         location / {{ try_files $uri $uri/ /index.php$is_args$args; }}\n\
         location ~ \\.php$ {{ {run} }} }}\n",
        root.display(),
        more.replace("RUN", &run),
    );
    let folder = tempfile::tempdir().unwrap();
    let nginx = Nginx::start(folder.path(), &http, address).unwrap();
    (nginx, address, folder)
}

fn write(php: &Php, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = php.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Locations and passwords for the files that paths lead to, here and in nginx.
fn places(php: &Php) -> (Site, Nginx, SocketAddr, tempfile::TempDir) {
    write(
        php,
        &[
            ("uploads/evil.php", "<?php echo 'run';"),
            ("uploads/evil2.PHP", "<?php echo 'run';"),
            ("uploads/index.php", "<?php echo 'run';"),
            ("admin/index.php", "<?php echo 'admin';"),
            ("head/index.php", "<?php echo 'head';"),
            ("pages/index.html", "page"),
            ("closed/index.html", "closed"),
            ("two/index.html", "two"),
        ],
    );
    let users = php.folder().join("users");
    fs::write(&users, "anna:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n").unwrap();
    let others = php.folder().join("others");
    let slow = bcrypt::hash("password", 4).unwrap();
    fs::write(&others, format!("bert:{slow}\n")).unwrap();
    let site = php.site(&format!(
        "index = ['index.html']
        auth = [
            {{ path = '/two', file = {users:?} }},
            {{ path = '/two/index.html', file = {others:?} }},
            {{ path = '/admin/index.php', file = {users:?} }},
            {{ path = '/closed/index.html', file = {users:?} }},
        ]
        location = [
            {{ paths = ['/uploads/*.php'], status = 403 }},
            {{ paths = ['/head/*.php', '/pages/*.html'], headers = {{ X-A = 'of the file' }} }},
            {{ paths = ['/head/', '/pages/'], headers = {{ X-A = 'of the path' }} }},
        ]",
    ));
    let (users, others) = (users.display(), others.display());
    let (nginx, theirs, folder) = nginx(
        php,
        &format!(
            "location ~ ^/uploads/.*\\.php$ {{ return 403; }}
            location = /admin/index.php {{ auth_basic x; auth_basic_user_file {users}; RUN }}
            location = /closed/index.html {{ auth_basic x; auth_basic_user_file {users}; }}
            location /two/ {{ auth_basic x; auth_basic_user_file {users}; }}
            location = /two/index.html {{ auth_basic x; auth_basic_user_file {others}; }}
            location ~ ^/pages/.*\\.html$ {{ add_header X-A 'of the file'; }}
            location ~ ^/head/.*\\.php$ {{ add_header X-A 'of the file'; RUN }}
            location = /pages/ {{ add_header X-A 'of the path'; }}
            location = /head/ {{ add_header X-A 'of the path'; }}"
        ),
    );
    (site, nginx, theirs, folder)
}

#[test]
fn a_script_runs_only_where_its_name_may() {
    let Some(php) = Php::start("a_script_runs_only_where_its_name_may") else {
        return;
    };
    let (site, _nginx, theirs, _folder) = places(&php);
    for (target, headers, status) in [
        ("/uploads/evil.php", "", 403),
        ("/uploads/index.php", "", 403),
        ("/uploads/", "", 403),
        ("/admin/", "", 401),
        ("/admin/", ANNA, 200),
        ("/admin/index.php", "", 401),
        ("/closed/", "", 401),
        ("/closed/", ANNA, 200),
        ("/closed/index.html", "", 401),
        ("/two/", "", 401),
        ("/two/", ANNA, 401),
        ("/two/", BERT, 401),
        ("/two/index.html", BERT, 200),
        ("/head/", "", 200),
        ("/head/index.php", "", 200),
        ("/pages/", "", 200),
        ("/pages/index.html", "", 200),
    ] {
        let [ours, theirs] = [site.address, theirs].map(|at| ask(at, "GET", target, headers, b""));
        assert_eq!((ours.status, theirs.status), (status, status), "{target}");
        assert_eq!(ours.header("x-a"), theirs.header("x-a"), "{target}");
        if status == 200 {
            assert_eq!(ours.text(), theirs.text(), "{target}");
        }
    }
    // nginx has other scripts run for these.
    for target in [
        "/uploads/evil.php/",
        "/uploads/evil.php/x",
        "/uploads//evil.php/x/y",
        "/uploads/evil.ph%70/x",
        "/uploads/evil2.PHP",
        "/uploads/evil2.PHP/x",
        "/uploads/index.php/x",
    ] {
        assert_eq!(
            ask(site.address, "GET", target, "", b"").status,
            403,
            "{target}"
        );
        assert_eq!(
            ask(site.address, "POST", target, "content-length: 0\r\n", b"").status,
            403
        );
    }
    for target in ["/admin/index.php/x", "/admin//", "/closed//"] {
        assert_eq!(
            ask(site.address, "GET", target, "", b"").status,
            401,
            "{target}"
        );
    }
    // What is said of the script alone holds, and what is said of the path where there is nothing.
    let told = ask(site.address, "GET", "/head/index.php/x", "", b"");
    assert_eq!(
        (told.status, told.header("x-a")),
        (200, Some("of the file"))
    );
}

/// The same as nginx's `internal`: a location that refuses the name keeps clients from choosing it.
#[test]
fn the_last_resort_is_the_owners_to_choose() {
    let Some(php) = Php::start("the_last_resort_is_the_owners_to_choose") else {
        return;
    };
    let users = php.folder().join("users");
    fs::write(&users, "anna:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n").unwrap();
    let refusing = "location = [{ paths = ['/index.php', '/index.php/*'], status = 404 }]";
    let site = php.site(refusing);
    for (target, status) in [
        ("/posts/7", 200),
        ("/", 200),
        ("/index.php", 404),
        ("//index.php", 404),
        ("/index.php/x", 404),
        ("/index.php/", 404),
    ] {
        let got = ask(site.address, "GET", target, "", b"");
        assert_eq!(got.status, status, "{target}");
    }
    // A password before it is before all that it answers.
    let site = php.site(&format!(
        "auth = [{{ path = '/index.php', file = {users:?} }}]"
    ));
    let (_nginx, theirs, _folder) = nginx(
        &php,
        &format!(
            "location = /index.php {{ auth_basic x; auth_basic_user_file {}; RUN }}",
            users.display()
        ),
    );
    for (headers, status) in [("", 401), (ANNA, 200)] {
        for target in ["/posts/7", "/", "/index.php"] {
            let [ours, theirs] =
                [site.address, theirs].map(|at| ask(at, "GET", target, headers, b""));
            assert_eq!((ours.status, theirs.status), (status, status), "{target}");
        }
    }
}

/// The configuration of a site before scripts that only a part of it may have run.
fn part(php: &Php, site: &str, route: &str) -> Site {
    let config = format!(
        "[[site]]\nroot = {root:?}\n{site}\n[[upstream]]\nname = 'php'\n\
         servers = ['fastcgi+unix:{}']\nfastcgi = {{ root = {root:?} }}\n\
         [[route]]\nupstream = 'php'\n{route}\n",
        php.socket().display(),
        root = php.root(),
    );
    Site::run(&config, 1 << 16, |_| sooner_uplink::Uplink::unlimited())
}

#[test]
fn a_script_of_a_site_is_run_where_it_may_be() {
    let Some(php) = Php::start("a_script_of_a_site_is_run_where_it_may_be") else {
        return;
    };
    write(
        &php,
        &[
            (
                "start/start.php",
                "<?php echo 'start ', $_SERVER['REQUEST_METHOD'];",
            ),
            ("both/index.html", "page"),
            ("both/start.php", "<?php echo 'start';"),
        ],
    );
    let names = "index = ['start.php', 'index.html']\nfallback = '/index.php'";
    let site = part(&php, names, "path = '/'");
    let (_nginx, theirs, _folder) = nginx(
        &php,
        "location /start/ { index start.php index.html; } \
         location /both/ { index index.html start.php; }",
    );
    for (method, target) in [
        ("GET", "/users/1"),
        ("GET", "/users/1?a=b"),
        ("POST", "/users/1"),
        ("HEAD", "/users/1"),
        ("GET", "/start/"),
        ("POST", "/start/"),
    ] {
        let [ours, theirs] =
            [site.address, theirs].map(|at| ask(at, method, target, "content-length: 0\r\n", b""));
        assert_eq!(
            (ours.status, &ours.body),
            (theirs.status, &theirs.body),
            "{method} {target}"
        );
        assert_eq!(ours.status, 200, "{method} {target}");
    }
    // A file of a known type is not the application's.
    assert_eq!(ask(site.address, "GET", "/none.css", "", b"").status, 404);
    let site = part(&php, "index = ['index.html', 'start.php']", "path = '/'");
    let ours = ask(site.address, "GET", "/both/", "", b"");
    assert_eq!(ours.text(), "page");
    assert_eq!(ours.body, ask(theirs, "GET", "/both/", "", b"").body);
    let refused = "location = [{ paths = ['/start/*.php'], status = 403 }]";
    let site = part(&php, &format!("{names}\n{refused}"), "path = '/'");
    assert_eq!(ask(site.address, "GET", "/start/", "", b"").status, 403);
}

#[test]
fn a_script_that_is_not_run_is_not_sent() {
    let Some(php) = Php::start("a_script_that_is_not_run_is_not_sent") else {
        return;
    };
    write(
        &php,
        &[
            ("both/index.html", "page"),
            ("both/index.php", "<?php echo 'secret';"),
            ("only/index.php", "<?php echo 'secret';"),
            ("only/a.txt", "a"),
            ("app/a.php", "<?php echo 'secret';"),
            ("app/a.txt", "a"),
        ],
    );
    let names = "index = ['index.php', 'index.html']\nfallback = '/app/a.php'\nlisting = 'json'";
    let site = part(&php, names, "path = '/app'");
    let get = |target: &str| ask(site.address, "GET", target, "", b"");
    assert_eq!(get("/both/").text(), "page");
    for (target, has_scripts) in [("/only/", false), ("/app/", true)] {
        let list = get(target);
        assert_eq!(list.status, 200);
        assert!(list.text().contains("a.txt"), "{}", list.text());
        assert_eq!(list.text().contains(".php"), has_scripts, "{target}");
    }
    // Of another host, to which no route leads.
    let names = "index = ['index.php']\nfallback = '/index.php'";
    let site = part(&php, names, "path = '/'\nhosts = ['app']");
    for target in ["/", "/only/", "/users/1", "/both/"] {
        let got = ask(site.address, "GET", target, "", b"");
        assert_eq!(got.status, 404, "{target} {}", got.text());
        let posted = ask(site.address, "POST", target, "content-length: 0\r\n", b"");
        assert_eq!(posted.status, 405, "{target}");
    }
    // Nor does a file go before an upstream that is none.
    let config = format!(
        "[[site]]\nroot = {root:?}\nindex = ['index.php']\n[[upstream]]\nname = 'php'\n\
         servers = ['fastcgi+unix:{}']\nfastcgi = {{ root = {root:?} }}\n\
         [[upstream]]\nname = 'app'\nservers = ['http://127.0.0.1:1']\n\
         [[route]]\npath = '/'\nupstream = 'app'\nfiles_first = true\n\
         [[route]]\npath = '/php'\nupstream = 'php'\n",
        php.socket().display(),
        root = php.root(),
    );
    let site = Site::run(&config, 1 << 16, |_| sooner_uplink::Uplink::unlimited());
    assert_eq!(ask(site.address, "GET", "/only/", "", b"").status, 502);
}

#[test]
fn a_target_without_a_path_has_one_for_scripts() {
    let Some(php) = Php::start("a_target_without_a_path_has_one_for_scripts") else {
        return;
    };
    let site = php.site("");
    let got = ask(site.address, "GET", "http://x?x=1", "", b"");
    assert_eq!((got.status, got.text()), (200, "front /?x=1 "));
}
