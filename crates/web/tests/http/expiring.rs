//! How long clients may keep what: the same words in nginx's configuration and in ours, the same
//! headers; and answers of upstreams.

use super::support::{Client, Response, Site};
use sooner_testbed::nginx::{self, Nginx};
use sooner_testbed::{port, skip};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

/// Every form of a time that both know, with the end of a name that it is for.
const TIMES: [(&str, &str); 10] = [
    ("a", "30d"),
    ("b", "1h30m"),
    ("c", "max"),
    ("d", "epoch"),
    ("e", "off"),
    ("f", "0"),
    ("g", "-1"),
    ("h", "1M"),
    ("i", "90"),
    ("j", "-2d"),
];

fn ask(address: SocketAddr, method: &str, target: &str, headers: &str) -> Response {
    let mut client = Client::connect(address);
    client.send(&format!(
        "{method} {target} HTTP/1.1\r\nhost: x\r\n{headers}\r\n"
    ));
    client.response(method)
}

/// What an answer says of its time: seconds from its own date to `Expires` where that is near, the
/// text of it where it is fixed, and `Cache-Control`.
fn said(response: &Response) -> (u16, Option<String>, Option<String>) {
    let seconds = |name: &str| {
        let date = httpdate(response.header(name)?)?;
        i64::try_from(date).ok()
    };
    let expires = response.header("expires").map(|text| {
        let from_now = seconds("expires").zip(seconds("date"));
        let is_fixed = text.contains(" 1970 ") || text.contains(" 2037 ");
        match from_now {
            Some((expires, now)) if !is_fixed => (expires - now).to_string(),
            _ => text.to_owned(),
        }
    });
    let cache_control = response.header("cache-control").map(str::to_owned);
    (response.status, expires, cache_control)
}

/// Seconds since 1970 of a date in a header.
fn httpdate(text: &str) -> Option<u64> {
    let date = httpdate::parse_http_date(text).ok()?;
    let since = date.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(since.as_secs())
}

#[test]
fn files_are_kept_for_as_long_as_nginx_says() {
    if !nginx::has_modules(&[]) {
        skip(
            "files_are_kept_for_as_long_as_nginx_says",
            "needs the package nginx",
        );
        return;
    }
    let rules =
        TIMES.map(|(name, time)| format!("{{ extensions = ['{name}'], after = '{time}' }}"));
    let site = Site::start_site(&format!("expires = [{}]", rules.join(", ")));
    let locations =
        TIMES.map(|(name, time)| format!("location ~ \\.{name}$ {{ expires {time}; }}\n"));
    let folder = tempfile::tempdir().unwrap();
    for (name, _) in TIMES {
        site.write(&format!("x.{name}"), "0123456789");
    }
    // A folder that no other user may enter serves nothing to workers of another user.
    let root = site.path("");
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    for folder in [root.as_path(), root.parent().unwrap()] {
        std::fs::set_permissions(folder, std::fs::Permissions::clone(&all)).unwrap();
    }
    let address = port::free().unwrap();
    let http = format!(
        "access_log off; server {{ listen {address}; root {};\n{} }}\n",
        root.display(),
        locations.concat()
    );
    let _nginx = Nginx::start(folder.path(), &http, address).unwrap();
    for (name, time) in TIMES {
        let target = format!("/x.{name}");
        for (method, target, headers) in [
            ("GET", target.as_str(), ""),
            ("HEAD", &target, ""),
            ("GET", &target, "range: bytes=2-3\r\n"),
            ("GET", &target, "range: bytes=20-\r\n"),
            ("GET", &target, "if-match: \"x\"\r\n"),
            ("GET", &format!("/missing.{name}"), ""),
            ("POST", &target, "content-length: 0\r\n"),
        ] {
            let [ours, theirs] =
                [site.address, address].map(|at| said(&ask(at, method, target, headers)));
            // nginx says how long to keep that there are no such bytes.
            let theirs = if theirs.0 == 416 {
                (416, None, None)
            } else {
                theirs
            };
            assert_eq!(ours, theirs, "{time}: {method} {target} {headers}");
        }
        let [ours, theirs] = [site.address, address].map(|at| {
            let whole = ask(at, "GET", &target, "");
            let etag = whole.header("etag").unwrap();
            said(&ask(
                at,
                "GET",
                &target,
                &format!("if-none-match: {etag}\r\n"),
            ))
        });
        assert_eq!(ours.0, 304);
        assert_eq!(ours, theirs, "{time}");
    }
}

/// Answers each request with the head of the number that ends its path.
fn upstream(heads: &'static [&'static str]) -> SocketAddr {
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
            let text = String::from_utf8_lossy(&head);
            let path = text.split(' ').nth(1).unwrap_or_default();
            let number = path
                .rsplit('/')
                .next()
                .and_then(|name| name.split('.').next());
            let number: usize = number.and_then(|number| number.parse().ok()).unwrap_or(0);
            let answer = format!("{}connection: close\r\n\r\n", heads[number]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

#[test]
fn upstreams_decide_unless_they_are_silent() {
    let address = upstream(&[
        "HTTP/1.1 200 OK\r\ncontent-type: text/css\r\ncontent-length: 0\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: text/css\r\ncache-control: private\r\ncontent-length: 0\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: text/css\r\nexpires: 0\r\ncontent-length: 0\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: text/css\r\nset-cookie: a=b\r\ncontent-length: 0\r\n",
        "HTTP/1.1 404 Not Found\r\ncontent-type: text/css\r\ncontent-length: 0\r\n",
        "HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-type: text/css\r\ncontent-length: 0\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 0\r\n",
        "HTTP/1.1 304 Not Modified\r\netag: \"a\"\r\n",
    ]);
    let site = Site::start_site(&format!(
        "headers = {{ x-a = 'b' }}
        expires = [
            {{ path = '/own', after = '1h', proxied = false }},
            {{ types = ['text/css'], extensions = ['JS'], after = '2h', proxied = true }},
        ]
        [[upstream]]\nname = 'app'\nservers = ['http://{address}']
        [[route]]\npath = '/'\nupstream = 'app'\n"
    ));
    for (method, target, cache_control) in [
        ("GET", "/0", "max-age=7200"),
        ("HEAD", "/0", "max-age=7200"),
        ("POST", "/0", ""),
        ("GET", "/own/0", "max-age=7200"),
        ("GET", "/1", "private"),
        ("GET", "/2", ""),
        ("GET", "/3", ""),
        ("GET", "/4", ""),
        ("GET", "/5", ""),
        ("GET", "/6", ""),
        ("GET", "/6.js", "max-age=7200"),
        ("GET", "/7", ""),
        ("GET", "/7.js", "max-age=7200"),
    ] {
        let response = ask(site.address, method, target, "content-length: 0\r\n");
        let got = response.header("cache-control").unwrap_or_default();
        assert_eq!(got, cache_control, "{method} {target}");
        assert_eq!(response.header("x-a"), Some("b"));
    }
    let old = ask(site.address, "GET", "/2", "");
    assert_eq!(old.header("expires"), Some("0"));
}
