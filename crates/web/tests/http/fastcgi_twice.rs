//! Lines that a script sends twice, behind this server and behind nginx.

use super::fastcgi::ask;
use super::support::{Response, Site};
use sooner_testbed::nginx::{self, Nginx};
use sooner_testbed::{port, skip};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

/// What a script answers below a path.
const HEADS: &[(&str, &str)] = &[
    ("/type", "Content-Type: text/a\r\nContent-Type: text/b\r\n"),
    ("/status", "Status: 404\r\nStatus: 403\r\n"),
    ("/words", "Status: 404\r\nStatus: x\r\n"),
    ("/etag", "ETag: \"a\"\r\nETag: \"b\"\r\n"),
    ("/retry", "Retry-After: 1\r\nRetry-After: 2\r\n"),
    ("/again", "Location: /a\r\nLocation: /b\r\n"),
    ("/same", "Content-Length: 4\r\nContent-Length: 4\r\n"),
    ("/length", "Content-Length: 4\r\nContent-Length: 2\r\n"),
];

/// A server of FastCGI that answers so; it ends with the process.
fn responder() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            thread::spawn(move || answer(connection));
        }
    });
    address
}

fn answer(mut connection: TcpStream) {
    let (mut header, mut asked) = ([0; 8], Vec::new());
    // Up to the end of the body, which is an empty record.
    while connection.read_exact(&mut header).is_ok() {
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let mut rest = vec![0; length + usize::from(header[6])];
        connection.read_exact(&mut rest).unwrap();
        asked.extend_from_slice(&rest);
        if header[1] == 5 && length == 0 {
            break;
        }
    }
    let asked = String::from_utf8_lossy(&asked).into_owned();
    let found = HEADS
        .iter()
        .find(|(path, _)| asked.contains(&format!("REQUEST_URI{path}")));
    let Some((_, head)) = found else { return };
    let mut out = Vec::new();
    for (kind, content) in [
        (6, format!("{head}\r\nbody")),
        (6, String::new()),
        (3, "\0".repeat(8)),
    ] {
        out.extend_from_slice(&[1, kind, 0, 1, 0, content.len() as u8, 0, 0]);
        out.extend_from_slice(content.as_bytes());
    }
    // Of a length that is too short, nginx reads no more than that.
    let _ = connection.write_all(&out);
}

/// The status, all lines of these names, and the body.
fn facts(response: &Response) -> (u16, Vec<(String, String)>, String) {
    let compared = ["content-type", "etag", "retry-after"];
    let headers = response.headers.iter();
    let headers = headers.filter(|(name, _)| compared.contains(&name.as_str()));
    let body = response.text().to_owned();
    (response.status, headers.cloned().collect(), body)
}

#[test]
fn lines_that_are_there_twice_count_as_behind_nginx() {
    let test = "lines_that_are_there_twice_count_as_behind_nginx";
    if !nginx::has_modules(&[]) {
        skip(test, "needs the package nginx");
        return;
    }
    let (scripts, address) = (responder(), port::free().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let http = format!(
        "access_log off; server {{ listen {address}; location / {{ \
         fastcgi_param REQUEST_URI $request_uri; fastcgi_pass {scripts}; }} }}\n"
    );
    let _nginx = Nginx::start(folder.path(), &http, address).unwrap();
    let root = folder.path();
    std::fs::write(root.join("index.php"), "").unwrap();
    let config = format!(
        "[[site]]\nroot = {root:?}\n[[upstream]]\nname = 'script'\n\
         servers = ['fastcgi://{scripts}']\n\
         fastcgi = {{ root = {root:?}, fallback = '/index.php' }}\n\
         [[route]]\npath = '/'\nupstream = 'script'\n"
    );
    let site = Site::run(&config, 1 << 16, |_| sooner_uplink::Uplink::unlimited());
    for path in ["/type", "/status", "/words", "/etag", "/retry"] {
        let [theirs, ours] = [address, site.address].map(|to| ask(to, "GET", path, "", b""));
        assert_eq!(facts(&ours), facts(&theirs), "{path}");
    }
    // It sends both, and clients take the first or refuse.
    let [theirs, ours] = [address, site.address].map(|to| ask(to, "GET", "/again", "", b""));
    assert_eq!((ours.status, theirs.status), (302, 302));
    let places: Vec<_> = ours
        .headers
        .iter()
        .filter(|(name, _)| name == "location")
        .collect();
    assert_eq!(places.len(), 1, "{places:?}");
    assert_eq!(ours.header("location"), theirs.header("location"));
    // Which of two lengths counts is not for this server to guess.
    for path in ["/same", "/length"] {
        let ours = ask(site.address, "GET", path, "", b"");
        assert_eq!(ours.status, 502, "{path}");
    }
}
