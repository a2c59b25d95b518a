//! Pages for the users of a file: files made by the programs people use, the same answers as nginx
//! gives with the same file, and nothing held up by slow passwords.

use super::support::{Client, Response, Site};
use sooner_testbed::nginx::{self, Nginx};
use sooner_testbed::{port, skip};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a program prints, without its last line break; `None` where it is not installed.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    assert!(output.status.success(), "{program} {arguments:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.trim_end().to_owned())
}

/// One user for each kind of password that `htpasswd` and `openssl` make, all with [`PASSWORD`].
/// `None` where these are not installed.
fn users(path: &Path) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    for kind in ["-B", "-m", "-s"] {
        let name = format!("htpasswd{kind}");
        let line = output("htpasswd", &["-n", "-b", kind, &name, PASSWORD])?;
        lines.push(line);
    }
    for kind in ["-apr1", "-1", "-5", "-6"] {
        let hash = output("openssl", &["passwd", kind, PASSWORD])?;
        lines.push(format!("openssl{kind}:{hash}"));
    }
    let few_rounds = output(
        "openssl",
        &["passwd", "-6", "-salt", "rounds=1000$abc", PASSWORD],
    )?;
    if few_rounds.starts_with("$6$rounds=1000$abc$") {
        lines.push(format!("rounds:{few_rounds}"));
    }
    fs::write(path, format!("# staff\n{}\n", lines.join("\n"))).unwrap();
    let name = |line: &String| line.split_once(':').unwrap().0.to_owned();
    Some(lines.iter().map(name).collect())
}

const PASSWORD: &str = "p\u{e4}ss word";

/// A file with one user, `anna`, and a password that is quick to check.
struct File {
    folder: tempfile::TempDir,
}

impl File {
    fn new(name: &str, text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), text).unwrap();
        Self { folder }
    }

    fn anna() -> Self {
        // "password"
        Self::new("users", "anna:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n")
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("users")
    }
}

fn basic(user: &str, password: &str) -> String {
    use base64::Engine;
    let plain = format!("{user}:{password}");
    let encoded = base64::engine::general_purpose::STANDARD.encode(plain);
    format!("authorization: Basic {encoded}\r\n")
}

fn ask(address: SocketAddr, method: &str, target: &str, headers: &str) -> Response {
    let mut client = Client::connect(address);
    client.send(&format!(
        "{method} {target} HTTP/1.1\r\nhost: x\r\n{headers}\r\n"
    ));
    client.response(method)
}

#[test]
fn files_that_people_make_mean_what_they_mean_to_nginx() {
    let name = "files_that_people_make_mean_what_they_mean_to_nginx";
    if !nginx::has_modules(&[]) {
        skip(name, "needs the package nginx");
        return;
    }
    let file = File::new("other", "");
    let Some(names) = users(&file.path()) else {
        skip(name, "needs the packages apache2-utils and openssl");
        return;
    };
    let site = Site::start_site(&format!(
        "auth = [{{ file = {:?}, realm = 'Staff only' }}, {{ path = '/open', file = 'off' }}]",
        file.path()
    ));
    site.write("page.txt", "page");
    site.write("open/page.txt", "open");
    let root = site.path("");
    for folder in [root.as_path(), root.parent().unwrap(), file.folder.path()] {
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder, all).unwrap();
    }
    let address = port::free().unwrap();
    let http = format!(
        "access_log off; server {{ listen {address}; root {};\n\
         auth_basic 'Staff only'; auth_basic_user_file {};\n\
         location /open {{ auth_basic off; }} }}\n",
        root.display(),
        file.path().display()
    );
    let folder = tempfile::tempdir().unwrap();
    let _nginx = Nginx::start(folder.path(), &http, address).unwrap();
    let mut cases: Vec<(String, String)> = Vec::new();
    for user in &names {
        for password in [PASSWORD, "p\u{e4}ss wor", "p\u{e4}ss word ", "", "Password"] {
            cases.push(("/page.txt".into(), basic(user, password)));
        }
    }
    for headers in [
        basic("unknown", PASSWORD),
        basic("", PASSWORD),
        String::new(),
        "authorization: Basic\r\n".into(),
        "authorization: Basic !!!\r\n".into(),
        "authorization: Bearer YTpi\r\n".into(),
        basic(&names[0], PASSWORD).replace("Basic", "bAsIC"),
    ] {
        for target in [
            "/page.txt",
            "/open/page.txt",
            "/missing",
            "//page.txt",
            "/%70age.txt",
        ] {
            cases.push((target.into(), headers.clone()));
        }
    }
    let mut passed = 0;
    for (target, headers) in &cases {
        for method in ["GET", "HEAD"] {
            let [ours, theirs] = [site.address, address].map(|at| ask(at, method, target, headers));
            assert_eq!(ours.status, theirs.status, "{method} {target} {headers}");
            let challenge = |response: &Response| {
                let value = response.header("www-authenticate").map(str::to_owned);
                value.map(|value| value.replace(", charset=\"UTF-8\"", ""))
            };
            assert_eq!(challenge(&ours), challenge(&theirs), "{target} {headers}");
            passed += usize::from(ours.status == 200 && target == "/page.txt");
        }
    }
    // Each user with the right password, twice, and the one with another way to write "Basic".
    assert_eq!(passed, 2 * names.len() + 2);
}

#[test]
fn a_slow_password_holds_up_no_other_request() {
    let hash = bcrypt::hash("password", 12).unwrap();
    let file = File::new("users", &format!("anna:{hash}\n"));
    let site = Site::start_site(&format!(
        "auth = [{{ path = '/staff', file = {:?} }}]",
        file.path()
    ));
    site.write("staff/page", "staff");
    site.write("page", "page");
    let mut slow = site.connect();
    let headers = basic("anna", "password");
    slow.send(&format!(
        "GET /staff/page HTTP/1.1\r\nhost: x\r\n{headers}\r\n"
    ));
    for _ in 0..3 {
        assert_eq!(site.get("/page", "").text(), "page");
    }
    slow.stream().set_nonblocking(true).unwrap();
    let early = slow.stream().peek(&mut [0]).map_err(|error| error.kind());
    assert_eq!(
        early.err(),
        Some(ErrorKind::WouldBlock),
        "it was no slow check"
    );
    slow.stream().set_nonblocking(false).unwrap();
    assert_eq!(slow.response("GET").text(), "staff");
    // What is known by now is answered at once, in any number.
    let mut client = site.connect();
    for _ in 0..100 {
        client.send(&format!(
            "GET /staff/page HTTP/1.1\r\nhost: x\r\n{headers}\r\n"
        ));
        assert_eq!(client.response("GET").text(), "staff");
    }
}

#[test]
fn redirects_and_pages_for_errors_are_the_sites_own() {
    let file = File::anna();
    let site = Site::start_site(&format!(
        "headers = {{ x-a = 'b' }}
        errors = {{ 401 = '/errors/401.html' }}
        redirect = [{{ from = '/old', to = '/staff/', status = 301 }}]
        auth = [{{ path = '/', file = {:?} }}]",
        file.path()
    ));
    site.write("errors/401.html", "<p>who?");
    site.write("dir/index.html", "dir");
    assert_eq!(site.get("/old", "").status, 301);
    let refused = site.get("/dir", "");
    assert_eq!((refused.status, refused.text()), (401, "<p>who?"));
    assert_eq!(refused.header("x-a"), Some("b"));
    let realm = Some("Basic realm=\"Restricted\", charset=\"UTF-8\"");
    assert_eq!(refused.header("www-authenticate"), realm);
    let right = basic("anna", "password");
    assert_eq!(site.get("/dir", &right).status, 301);
    assert_eq!(site.get("/dir/", &right).text(), "dir");
    assert_eq!(site.request("OPTIONS", "/dir/", "").status, 401);
    // A body that is refused is not waited for, and the connection lives on.
    let mut client = site.connect();
    client.send("POST /dir/ HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nabcd");
    assert_eq!(client.response("POST").status, 401);
    client.send(&format!("GET /dir/ HTTP/1.1\r\nhost: x\r\n{right}\r\n"));
    assert_eq!(client.response("GET").status, 200);
}

/// Answers each request with its own head.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0)
            {
                head.push(byte[0]);
            }
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", head.len());
            let _ = stream.write_all(answer.as_bytes());
            let _ = stream.write_all(&head);
        }
    });
    address
}

#[test]
fn upstreams_are_asked_only_for_users_and_are_told_who_it_is() {
    let (file, address) = (File::anna(), echo());
    let log = file.folder.path().join("log");
    let site = Site::run(
        &format!(
            "log = {{ access = {log:?}, format = 'combined' }}
            [[site]]
            auth = [{{ path = '/staff', file = {:?} }}]
            [[upstream]]\nname = 'app'\nservers = ['http://{address}']
            [[route]]\npath = '/'\nupstream = 'app'\n",
            file.path()
        ),
        1 << 16,
        |_| sooner_uplink::Uplink::unlimited(),
    );
    let right = basic("anna", "password");
    for (target, headers, status) in [
        ("/open", "", 200),
        ("/staff/a", "", 401),
        ("/staff/a", right.as_str(), 200),
        ("/staff/a", right.as_str(), 200),
        ("/staff/a", &basic("an na", "x"), 401),
        ("/%73taff", "", 401),
        ("//staff", "", 401),
        ("/staff%2fa", "", 401),
        ("/staff;x=y/a", "", 401),
        ("/x/..%2fstaff", "", 401),
    ] {
        let response = ask(site.address, "GET", target, headers);
        assert_eq!(response.status, status, "{target}");
        let is_told = response.text().contains("authorization: Basic ");
        assert_eq!(is_told, status == 200 && target == "/staff/a");
    }
    drop(site);
    let lines = fs::read_to_string(&log).unwrap();
    let users: Vec<_> = lines
        .lines()
        .map(|line| line.split(' ').nth(2).unwrap())
        .collect();
    let expected = [
        "-",
        "-",
        "anna",
        "anna",
        "an\\x20na",
        "-",
        "-",
        "-",
        "-",
        "-",
    ];
    assert_eq!(users, expected, "{lines}");
}

#[test]
fn curl_passes_over_either_version() {
    let Some(_) = output("curl", &["--version"]) else {
        skip("curl_passes_over_either_version", "needs the package curl");
        return;
    };
    let file = File::anna();
    let site = Site::start_site(&format!("auth = [{{ file = {:?} }}]", file.path()));
    site.write("page", "page");
    let url = format!("http://{}/page", site.address);
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        for (user, expected) in [("anna:password", "page 200"), ("anna:passwore", " 401")] {
            let arguments = ["-s", version, "-u", user, "-w", " %{http_code}", &url];
            let printed = output("curl", &arguments).unwrap();
            let printed = printed.rsplit('\n').next().unwrap();
            assert!(printed.ends_with(expected), "{version} {user}: {printed}");
        }
    }
}

/// Where no backend is: a password takes longer to check than clients of backends have to leave.
#[test]
fn a_client_that_has_shut_its_sending_side_is_let_in() {
    let file = File::new(
        "users",
        "anna:$2y$12$9KDQbBcaEovcF2FDNDg1UuUxnPiJ/KNIL.hON9R5bVToOGirF1oXa\n",
    );
    let site = Site::start_site(&format!(
        "auth = [{{ file = {:?}, realm = 'Staff only' }}]",
        file.path()
    ));
    site.write("page.txt", "page");
    let mut client = site.connect();
    let asking = basic("anna", "secret");
    client.send(&format!(
        "GET /page.txt HTTP/1.1\r\nhost: x\r\n{asking}\r\n"
    ));
    client.stream().shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.response("GET").text(), "page");
}
