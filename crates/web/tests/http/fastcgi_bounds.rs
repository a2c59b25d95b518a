//! What a script is told by a server that says it back, and what may not hold up its server.

use super::fastcgi::ask;
use super::support::{Client, Response, Site};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// What a script was told.
type Told = BTreeMap<String, String>;

/// A server of FastCGI: its address, and what it is told. Its scripts answer with the number of
/// bytes of the body. It ends with the process.
fn responder() -> (SocketAddr, Receiver<Told>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let sender = sender.clone();
            thread::spawn(move || answer(connection, &sender));
        }
    });
    (address, receiver)
}

fn answer(mut connection: TcpStream, told: &Sender<Told>) {
    let (mut header, mut parameters, mut body_bytes) = ([0; 8], Vec::new(), 0);
    // Up to the end of the body, which is an empty record.
    while connection.read_exact(&mut header).is_ok() {
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let mut rest = vec![0; length + usize::from(header[6])];
        connection.read_exact(&mut rest).unwrap();
        match header[1] {
            4 => parameters.extend_from_slice(&rest[..length]),
            5 if length == 0 => break,
            5 => body_bytes += length,
            _ => {}
        }
    }
    let _ = told.send(read(&parameters));
    let mut out = Vec::new();
    for (kind, content) in [
        (6, format!("Status: 200\r\n\r\n{body_bytes}")),
        (6, String::new()),
        (3, "\0".repeat(8)),
    ] {
        out.extend_from_slice(&[1, kind, 0, 1, 0, content.len() as u8, 0, 0]);
        out.extend_from_slice(content.as_bytes());
    }
    let _ = connection.write_all(&out);
}

/// Names and values.
fn read(mut bytes: &[u8]) -> Told {
    let mut all = Told::new();
    while !bytes.is_empty() {
        let mut length = || {
            let (first, rest) = bytes.split_first().unwrap();
            if *first < 0x80 {
                bytes = rest;
                return usize::from(*first);
            }
            let (long, rest) = bytes.split_at(4);
            bytes = rest;
            (u32::from_be_bytes(long.try_into().unwrap()) & 0x7fff_ffff) as usize
        };
        let (name, value) = (length(), length());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let (pair, rest) = bytes.split_at(name + value);
        all.insert(text(&pair[..name]), text(&pair[name..]));
        bytes = rest;
    }
    all
}

/// A site before it, with one script.
fn site(scripts: SocketAddr, top: &str, keys: &str) -> (Site, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.php"), "").unwrap();
    let config = format!(
        "{top}\n[[site]]\nroot = {root:?}\n[[upstream]]\nname = 'scripts'\n\
         servers = ['fastcgi://{scripts}']\n{keys}\nfastcgi = {{ root = {root:?} }}\n\
         [[route]]\npath = '/'\nupstream = 'scripts'\n",
        root = folder.path(),
    );
    let site = Site::run(&config, 1 << 16, |_| sooner_uplink::Uplink::unlimited());
    (site, folder)
}

/// RFC 3875, 4.1.14 and 4.1.15: a script always gets a name and a port.
#[test]
fn a_script_knows_its_server_where_the_request_names_none() {
    let (scripts, told) = responder();
    let (site, _folder) = site(scripts, "", "");
    let port = site.address.port().to_string();
    for (request, name, host) in [
        ("GET /a.php HTTP/1.0\r\n\r\n", "127.0.0.1", None),
        (
            "GET /a.php HTTP/1.1\r\nhost:\r\nconnection: close\r\n\r\n",
            "127.0.0.1",
            None,
        ),
        (
            "GET /a.php HTTP/1.0\r\nhost: Example.org:81\r\n\r\n",
            "Example.org",
            Some("Example.org:81"),
        ),
    ] {
        let mut client = site.connect();
        client.send(request);
        assert_eq!(client.response("GET").status, 200, "{request}");
        let told = told.recv().unwrap();
        let of = |name: &str| told.get(name).map(String::as_str);
        assert_eq!(of("SERVER_NAME"), Some(name), "{request}");
        assert_eq!(of("SERVER_PORT"), Some(port.as_str()));
        assert_eq!(of("SERVER_ADDR"), Some("127.0.0.1"));
        assert_eq!(of("HTTP_HOST"), host);
    }
}

#[test]
fn a_health_check_is_told_what_requests_are() {
    for (host, name, sent) in [
        ("", "127.0.0.1", None),
        (
            "host = 'example.org:81'",
            "example.org",
            Some("example.org:81"),
        ),
    ] {
        let (scripts, told) = responder();
        let keys = format!("{host}\nhealth = {{ path = '/a.php', seconds = 1000 }}");
        let (_site, _folder) = site(scripts, "", &keys);
        let told = told.recv().unwrap();
        let of = |name: &str| told.get(name).map(String::as_str);
        assert_eq!((of("SERVER_NAME"), of("HTTP_HOST")), (Some(name), sent));
        assert_eq!(
            (of("SERVER_PORT"), of("SERVER_ADDR")),
            (Some("80"), Some("127.0.0.1"))
        );
        assert_eq!(
            (of("REQUEST_SCHEME"), of("DOCUMENT_URI")),
            (Some("http"), Some("/a.php"))
        );
    }
}

#[test]
fn a_head_for_a_script_may_be_as_long_as_the_settings_say() {
    let (scripts, told) = responder();
    let (site, _folder) = site(scripts, "[limits]\nhead_bytes = 262144", "");
    let long = "y".repeat(50_000);
    let fields = format!("x-a: {long}\r\nx-b: {long}\r\nx-c: {long}\r\n");
    assert_eq!(ask(site.address, "GET", "/a.php", &fields, b"").status, 200);
    let told = told.recv().unwrap();
    for name in ["HTTP_X_A", "HTTP_X_B", "HTTP_X_C"] {
        assert_eq!(told[name], long, "{name}");
    }
}

const CHUNKED: &str = "POST /a.php HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n\
                       transfer-encoding: chunked\r\n\r\n";

/// A client that has sent the beginning of such a body, which is waited for.
fn begun(site: &Site) -> Client {
    let mut client = site.connect();
    client.send(CHUNKED);
    assert_eq!(client.head().status, 100);
    client.send("2\r\nab\r\n");
    client
}

/// The whole body of a response without a length.
fn text(client: &mut Client) -> String {
    let response: Response = client.head();
    assert_eq!(response.status, 200);
    String::from_utf8(client.rest().unwrap()).unwrap()
}

#[test]
fn a_body_without_a_length_that_comes_slowly_takes_no_place() {
    let (scripts, told) = responder();
    let (site, _folder) = site(scripts, "", "limit = 1");
    let mut slow: Vec<Client> = Vec::new();
    for _ in 0..2 {
        let mut client = site.connect();
        client.send(&CHUNKED.replace("expect", "connection: close\r\nexpect"));
        // Its body is waited for from now on.
        assert_eq!(client.head().status, 100);
        client.send("2\r\nab\r\n");
        slow.push(client);
    }
    let quick = ask(site.address, "GET", "/a.php", "", b"");
    assert_eq!((quick.status, quick.text()), (200, "0"));
    told.recv().unwrap();
    for client in &mut slow {
        client.send("1\r\nc\r\n0\r\n\r\n");
        assert!(text(client).contains('3'));
        assert_eq!(told.recv().unwrap()["CONTENT_LENGTH"], "3");
    }
}

#[test]
fn a_body_without_a_length_that_is_too_long_is_refused_before_it_waits() {
    let (scripts, told) = responder();
    let (site, _folder) = site(scripts, "", "limit = 1");
    let mut inside = site.connect();
    let has_length = CHUNKED.replace("transfer-encoding: chunked", "content-length: 2");
    inside.send(&has_length);
    assert_eq!(inside.head().status, 100);
    let mut client = site.connect();
    client.send(CHUNKED);
    assert_eq!(client.head().status, 100);
    client.send(&format!("{:x}\r\n{}", 4 << 20, "x".repeat(2 << 20)));
    let refused = client.response("POST");
    assert_eq!(refused.status, 413);
    let why = "a body of more than 1 MiB needs a Content-Length";
    assert!(refused.text().contains(why));
    assert!(told.try_recv().is_err(), "no script is asked");
    inside.send("ab");
    assert_eq!(inside.head().status, 200);
}

#[test]
fn a_body_without_a_length_that_is_still_to_come_gets_503_when_the_grace_ends() {
    let (scripts, told) = responder();
    let top = "[log]\naccess = 'FOLDER/log'\n[limits]\ngrace_seconds = 1";
    let (mut site, _folder) = site(scripts, top, "");
    let mut client = begun(&site);
    site.ask_to_stop();
    let stopped = client.response("POST");
    assert_eq!(stopped.status, 503);
    assert!(stopped.text().contains("this server stops"));
    let lines = site.log_lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let why = "this server stopped (limits.grace_seconds)";
    assert_eq!(lines[0]["status"], 503);
    assert_eq!(lines[0]["upstream_error"], why);
    assert!(told.try_recv().is_err(), "no script is asked");
}

#[test]
fn while_no_server_is_up_no_body_is_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let refusing = listener.local_addr().unwrap();
    drop(listener);
    // Out by the first check, and until the second.
    let keys = "fails = 1000\nhealth = { path = '/a.php', seconds = 1000, fails = 1 }";
    let (site, _folder) = site(refusing, "", keys);
    while ask(site.address, "GET", "/a.php", "", b"").status != 503 {}
    let mut client = site.connect();
    client.send(CHUNKED);
    // Not 100: nothing of the body is wanted.
    assert_eq!(client.response("POST").status, 503);
}
