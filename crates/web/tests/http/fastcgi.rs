//! PHP-FPM behind this server and behind nginx: the same scripts, the same answers.

use super::support::{Client, Response, Site, unchunked};
use sooner_testbed::nginx::{self, Nginx};
use sooner_testbed::{php, port, skip};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the scripts are.
const SCRIPTS: &[(&str, &str)] = &[
    (
        "server.php",
        "<?php header('Content-Type: application/json'); $s = $_SERVER; $s['body'] = md5(file_get_contents('php://input')); \
         $s['get'] = http_build_query($_GET); $s['post'] = http_build_query($_POST); \
         foreach ($_FILES as $f) { $s['file'] = $f['name'] . md5_file($f['tmp_name']); } \
         foreach ($s as $k => $v) { if (is_array($v)) { unset($s[$k]); } } echo json_encode($s);",
    ),
    (
        "dir/index.php",
        "<?php echo 'index of ', $_SERVER['SCRIPT_NAME'], ' ', $_SERVER['REQUEST_URI'];",
    ),
    (
        "index.php",
        "<?php echo 'front ', $_SERVER['REQUEST_URI'], ' ', $_SERVER['PATH_INFO'] ?? '';",
    ),
    (
        "status.php",
        "<?php http_response_code((int)$_GET['s']); header('X-A: 1'); header('X-A: 2', false); echo 'status';",
    ),
    (
        "words.php",
        "<?php header('HTTP/1.1 422 The title is missing'); echo 'status';",
    ),
    (
        "redirect.php",
        "<?php header('Location: /elsewhere?x=y'); setcookie('a', 'b'); setcookie('c', 'd');",
    ),
    (
        "length.php",
        "<?php header('Content-Length: 5'); echo 'abcde';",
    ),
    (
        "large.php",
        "<?php for ($i = 0; $i < 300; $i++) { echo str_repeat(chr(65 + $i % 26), 10000); }",
    ),
    (
        "slow.php",
        "<?php for ($i = 0; $i < 3; $i++) { echo $i; ob_get_level() && ob_flush(); flush(); usleep(60000); }",
    ),
    ("error.php", "<?php this_is_no_function();"),
    (
        "warn.php",
        "<?php error_log(\"a word of\\nwarning\\x1b[2J\"); echo 'fine';",
    ),
    ("dies.php", "<?php posix_kill(getmypid(), 9); sleep(5);"),
    (
        "dies_late.php",
        "<?php echo str_repeat('x', 100000); flush(); posix_kill(getmypid(), 9); sleep(5);",
    ),
    ("nothing.php", ""),
    (
        "short.php",
        "<?php file_put_contents(__DIR__ . '/runs/' . uniqid('', true), ''); header('Content-Length: 100'); echo 'abc';",
    ),
    ("runs/none", ""),
    ("photo.jpg", "<?php echo 'run';"),
    ("style.css", "css"),
];

/// A pool of PHP, nginx before it, and a folder with scripts.
pub(super) struct Php {
    _pool: php::Pool,
    _nginx: Nginx,
    folder: tempfile::TempDir,
    nginx: SocketAddr,
}

impl Php {
    /// Says why not where it cannot be.
    pub(super) fn start(test: &str) -> Option<Self> {
        if php::fpm().is_none() || !nginx::has_modules(&[]) {
            skip(test, "needs the packages php-fpm and nginx");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        for (name, script) in SCRIPTS {
            let path = at.join("root").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, script).unwrap();
        }
        let more = "ping.path = /ping\nphp_admin_value[display_errors] = 0\n\
                    php_admin_value[log_errors] = 1\n";
        let pool = php::Pool::start(at, more).unwrap();
        let shown = at.display();
        let address = port::free().unwrap();
        let params = "include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; \
                      fastcgi_param PATH_INFO $path_info;";
        let http = format!(
            "access_log off; include /etc/nginx/mime.types; server {{ listen {address}; server_name x; root {shown}/root; index index.php;\n\
             location / {{ try_files $uri $uri/ /index.php$is_args$args; }}\n\
             location ~ \\.php(/|$) {{ fastcgi_split_path_info ^(.+?\\.php)(/.*)$; \
             try_files $fastcgi_script_name =404; set $path_info $fastcgi_path_info;\n\
             {params} fastcgi_pass unix:{shown}/fpm.sock; }} }}\n"
        );
        let place = at.join("nginx");
        fs::create_dir(&place).unwrap();
        let nginx = Nginx::start(&place, &http, address).unwrap();
        Some(Self {
            _pool: pool,
            _nginx: nginx,
            folder,
            nginx: address,
        })
    }

    pub(super) fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.folder.path().join("fpm.sock")
    }

    /// This server before the same pool.
    pub(super) fn site(&self, more: &str) -> Site {
        self.site_before(&self.folder.path().join("fpm.sock"), more)
    }

    fn site_before(&self, socket: &Path, more: &str) -> Site {
        let config = format!(
            "[[site]]\nroot = {root:?}\n{more}\n[[upstream]]\nname = 'php'\n\
             servers = ['fastcgi+unix:{}']\nlimit = 4\n\
             fastcgi = {{ root = {root:?}, fallback = '/index.php' }}\n\
             [[route]]\npath = '/'\nupstream = 'php'\n",
            socket.display(),
            root = self.root(),
        );
        Site::run(&config, 1 << 16, |_| sooner_uplink::Uplink::unlimited())
    }
}

/// A folder that no other user may enter serves nothing to workers of another user.
pub(super) fn ask(
    address: SocketAddr,
    method: &str,
    target: &str,
    headers: &str,
    body: &[u8],
) -> Response {
    let mut client = Client::connect(address);
    client.send(&format!(
        "{method} {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n"
    ));
    let mut stream = client.stream();
    std::io::Write::write_all(&mut stream, body).unwrap();
    let mut response = client.head();
    let rest = client.rest().unwrap();
    response.body = match response.header("transfer-encoding") {
        Some("chunked") if method != "HEAD" => unchunked(&rest),
        _ => rest,
    };
    response
}

/// What has to be the same.
fn facts(response: &Response) -> (u16, String, Vec<(String, String)>, Vec<u8>) {
    let compared = [
        "location",
        "set-cookie",
        "x-a",
        "content-type",
        "x-powered-by",
    ];
    let headers = response.headers.iter();
    let mut headers: Vec<_> = headers
        .filter(|(name, _)| compared.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.to_ascii_lowercase()))
        .collect();
    headers.sort();
    let words = response.words.clone();
    (response.status, words, headers, response.body.clone())
}

fn form(body: &str) -> String {
    format!(
        "content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n",
        body.len()
    )
}

#[test]
fn scripts_answer_as_they_do_behind_nginx() {
    let Some(php) = Php::start("scripts_answer_as_they_do_behind_nginx") else {
        return;
    };
    let site = php.site("");
    for (method, target) in [
        ("GET", "/"),
        ("GET", "/?a=b"),
        ("GET", "/dir/"),
        ("GET", "/posts/7?x"),
        ("POST", "/posts/7"),
        ("GET", "/status.php?s=404"),
        ("GET", "/status.php?s=503"),
        ("GET", "/status.php?s=201"),
        ("GET", "/status.php?s=204"),
        ("GET", "/words.php"),
        ("HEAD", "/status.php?s=404"),
        ("GET", "/redirect.php"),
        ("GET", "/length.php"),
        ("HEAD", "/length.php"),
        ("GET", "/large.php"),
        ("HEAD", "/large.php"),
        ("GET", "/slow.php"),
        ("GET", "/error.php"),
        ("GET", "/warn.php"),
        ("GET", "/nothing.php"),
        ("DELETE", "/index.php"),
        ("GET", "/%69ndex.php"),
        ("GET", "/index.php/x%20y/z"),
    ] {
        let [ours, theirs] = [site.address, php.nginx]
            .map(|at| ask(at, method, target, "content-length: 0\r\n", b""));
        assert_eq!(facts(&ours), facts(&theirs), "{method} {target}");
    }
    for target in ["/none.php", "/photo.jpg/x.php", "/none.php/x", "/dir.php"] {
        let [ours, theirs] = [site.address, php.nginx].map(|at| ask(at, "GET", target, "", b""));
        assert_eq!((ours.status, theirs.status), (404, 404), "{target}");
    }
    for target in ["/style.css", "/photo.jpg"] {
        let [ours, theirs] = [site.address, php.nginx].map(|at| ask(at, "GET", target, "", b""));
        assert_eq!(
            (ours.status, &ours.body),
            (theirs.status, &theirs.body),
            "{target}"
        );
    }
    let death = [site.address, php.nginx].map(|at| ask(at, "GET", "/dies.php", "", b"").status);
    assert_eq!(death, [502, 502]);
}

/// What a script is told.
fn told(response: &Response) -> BTreeMap<String, String> {
    let all: BTreeMap<String, serde_json::Value> = serde_json::from_slice(&response.body).unwrap();
    let differs = [
        "REQUEST_TIME",
        "REQUEST_TIME_FLOAT",
        "REMOTE_PORT",
        "SERVER_PORT",
        "SERVER_SOFTWARE",
        // CGI has them under other names alone.
        "HTTP_CONTENT_TYPE",
        "HTTP_CONTENT_LENGTH",
        // Ours tells who asked, nginx's file does not.
        "HTTP_VIA",
        "HTTP_X_FORWARDED_FOR",
        "HTTP_X_FORWARDED_PROTO",
        "HTTP_X_FORWARDED_HOST",
        "HTTP_FORWARDED",
        "HTTP_X_REAL_IP",
        // Of the connection.
        "HTTP_TRANSFER_ENCODING",
        "HTTP_EXPECT",
        "HTTP_CONNECTION",
    ];
    all.into_iter()
        .filter(|(name, _)| !differs.contains(&name.as_str()))
        .map(|(name, value)| {
            let text = value.as_str().map_or(value.to_string(), str::to_owned);
            (name, text)
        })
        .collect()
}

#[test]
fn scripts_are_told_what_nginx_tells_them() {
    let Some(php) = Php::start("scripts_are_told_what_nginx_tells_them") else {
        return;
    };
    let site = php.site("");
    let upload = {
        let content = "x".repeat(300_000);
        format!(
            "--b\r\ncontent-disposition: form-data; name=\"f\"; filename=\"n\u{e4}me.txt\"\r\n\r\n{content}\r\n--b--\r\n"
        )
    };
    let multipart = format!(
        "content-type: multipart/form-data; boundary=b\r\ncontent-length: {}\r\n",
        upload.len()
    );
    let chunked = "content-type: text/plain\r\ntransfer-encoding: chunked\r\n";
    for (method, target, headers, body) in [
        ("GET", "/server.php", "", ""),
        (
            "GET",
            "/server.php?a=b&c=%20d",
            "x-one: 1\r\nx-two: a, b\r\n",
            "",
        ),
        (
            "GET",
            "/server.php/path/in%66o%20x?q",
            "cookie: a=b\r\n",
            "",
        ),
        (
            "GET",
            "/server.php/",
            "proxy: http://evil\r\nx_real_ip: 1\r\n",
            "",
        ),
        ("GET", "//server.php", "authorization: Basic YTpi\r\n", ""),
        ("POST", "/server.php", &form("a=1&b=%20x"), "a=1&b=%20x"),
        (
            "PUT",
            "/server.php?x",
            "content-type: text/plain\r\ncontent-length: 3\r\n",
            "abc",
        ),
        ("POST", "/server.php", &multipart, &upload),
        (
            "POST",
            "/server.php",
            chunked,
            "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        ),
    ] {
        let [ours, theirs] = [site.address, php.nginx]
            .map(|at| told(&ask(at, method, target, headers, body.as_bytes())));
        let mut theirs = theirs;
        // nginx has `Proxy` passed on; PHP itself hides it in other places.
        theirs.remove("HTTP_PROXY");
        // And any name that a client gives, whether there is such a user or not.
        theirs.remove("REMOTE_USER");
        assert_eq!(ours, theirs, "{method} {target} {headers}");
        assert!(!ours.contains_key("HTTP_X_REAL_IP") && !ours.is_empty());
    }
    let long = format!("{:x}\r\n{}\r\n0\r\n\r\n", 2 << 20, "x".repeat(2 << 20));
    let refused = ask(
        site.address,
        "POST",
        "/server.php",
        chunked,
        long.as_bytes(),
    );
    assert_eq!(refused.status, 413);
}

#[test]
fn a_client_that_waits_in_the_middle_of_its_body_is_refused_at_once() {
    let Some(php) = Php::start("a_client_that_waits_in_the_middle_of_its_body_is_refused_at_once")
    else {
        return;
    };
    let site = php.site("");
    let mut waiting = Client::connect(site.address);
    let head = "POST /length.php HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    waiting.send(head);
    waiting.send(&format!("{:x}\r\n{}", 4 << 20, "x".repeat(3 << 20)));
    let refused = waiting.response("POST");
    assert_eq!(refused.status, 413);
    assert!(refused.text().contains("more than 1 MiB"));
}

#[test]
fn a_user_is_told_and_no_source_is_shown() {
    let Some(php) = Php::start("a_user_is_told_and_no_source_is_shown") else {
        return;
    };
    // "password"
    let users = php.folder.path().join("users");
    fs::write(&users, "anna:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n").unwrap();
    let site = php.site(&format!(
        "auth = [{{ path = '/server.php', file = {users:?} }}]\n[[site]]\nhosts = ['other']\nroot = {:?}\n",
        php.root()
    ));
    assert_eq!(ask(site.address, "GET", "/server.php", "", b"").status, 401);
    let headers = "authorization: Basic YW5uYTpwYXNzd29yZA==\r\n";
    let told = told(&ask(site.address, "GET", "/server.php", headers, b""));
    assert_eq!(told["REMOTE_USER"], "anna");
    // Behind a route for one host alone the others show files.
    let config = format!(
        "[[site]]\nroot = {root:?}\n[[upstream]]\nname = 'php'\nservers = ['fastcgi+unix:{}']\n\
         fastcgi = {{ root = {root:?} }}\n[[route]]\npath = '/'\nhosts = ['app']\nupstream = 'php'\n",
        php.folder.path().join("fpm.sock").display(),
        root = php.root(),
    );
    let site = Site::run(&config, 1 << 16, |_| sooner_uplink::Uplink::unlimited());
    for target in [
        "/server.php",
        "/SERVER.PHP",
        "/%73erver.php",
        "/server.php/",
    ] {
        let shown = ask(site.address, "GET", target, "", b"");
        assert_eq!(shown.status, 404, "{target}");
    }
    assert_eq!(
        ask(site.address, "GET", "/style.css", "", b"").text(),
        "css"
    );
}

#[test]
fn what_breaks_off_is_not_taken_for_whole() {
    let Some(php) = Php::start("what_breaks_off_is_not_taken_for_whole") else {
        return;
    };
    let site = php.site("");
    let mut client = site.connect();
    client.send("GET /dies_late.php HTTP/1.1\r\nhost: x\r\n\r\n");
    let mut all = Vec::new();
    client.stream().read_to_end(&mut all).unwrap();
    assert!(all.starts_with(b"HTTP/1.1 200"));
    assert!(
        !all.ends_with(b"0\r\n\r\n"),
        "the last chunk says that all was sent"
    );
    // A client that leaves frees its worker: more than there are workers.
    for _ in 0..12 {
        let mut client = site.connect();
        client.send("GET /slow.php HTTP/1.1\r\nhost: x\r\n\r\n");
    }
    assert_eq!(
        ask(site.address, "GET", "/length.php", "", b"").text(),
        "abcde"
    );
    // No server at all.
    let nowhere = php.site_before(&php.folder.path().join("none.sock"), "");
    assert_eq!(
        ask(nowhere.address, "GET", "/length.php", "", b"").status,
        502
    );
    assert_eq!(
        ask(nowhere.address, "GET", "/style.css", "", b"").text(),
        "css"
    );
}

/// Of each worker; without a bound of PHP's own it would wait for the rest of the body without end.
#[test]
fn an_upload_that_breaks_off_frees_its_worker() {
    let Some(php) = Php::start("an_upload_that_breaks_off_frees_its_worker") else {
        return;
    };
    let site = php.site("");
    for _ in 0..12 {
        let mut client = site.connect();
        client.send(
            "POST /length.php HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\nbeginning",
        );
        // The place that it has is free when its worker is told.
        std::thread::sleep(Duration::from_millis(20));
    }
    let whole = ask(site.address, "GET", "/length.php", "", b"");
    assert_eq!((whole.status, whole.text()), (200, "abcde"));
}

/// As nginx passes it on: once, with what came.
#[test]
fn a_script_that_says_less_than_it_promised_runs_once() {
    let Some(php) = Php::start("a_script_that_says_less_than_it_promised") else {
        return;
    };
    let site = php.site("");
    let runs = php.root().join("runs");
    fs::set_permissions(&runs, fs::Permissions::from_mode(0o777)).unwrap();
    for address in [php.nginx, site.address] {
        let before = fs::read_dir(&runs).unwrap().count();
        let mut client = Client::connect(address);
        client.send("DELETE /short.php HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let all = String::from_utf8(client.rest().unwrap()).unwrap();
        assert!(
            all.starts_with("HTTP/1.1 200 ") && all.ends_with("\r\n\r\nabc"),
            "{all}"
        );
        assert_eq!(fs::read_dir(&runs).unwrap().count(), before + 1);
    }
}
