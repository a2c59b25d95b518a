//! What a proxied request means for the connection it came on.

use super::support::{Client, Site};
use sooner_testbed::nginx::{self, Nginx};
use sooner_testbed::port;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

const SWITCH: &str =
    "GET /chat HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";

/// A site that passes all paths on to `listener`.
fn before(listener: &TcpListener, config: &str) -> Site {
    let address = listener.local_addr().unwrap();
    Site::start_with(&format!(
        "{config}\n[[upstream]]\nname = 'app'\nservers = ['http://{address}']\n\
         [[route]]\npath = '/'\nupstream = 'app'\n"
    ))
}

/// A listener behind which the protocol is switched and everything is said back, on one connection
/// after the other.
fn echo() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let accepting = listener.try_clone().unwrap();
    std::thread::spawn(move || {
        for stream in accepting.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut buffer = [0; 1 << 10];
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(bytes) if bytes > 0 => head.extend_from_slice(&buffer[..bytes]),
                    _ => break,
                }
            }
            let switch =
                b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
            let _ = stream.write_all(switch);
            while let Ok(bytes) = stream.read(&mut buffer) {
                if bytes == 0 || stream.write_all(&buffer[..bytes]).is_err() {
                    break;
                }
            }
        }
    });
    listener
}

fn switch(site: &Site) -> Client {
    let mut client = site.connect();
    client.send(SWITCH);
    assert_eq!(client.head().status, 101);
    assert_echo(&mut client);
    client
}

fn assert_echo(client: &mut Client) {
    client.send("ping");
    let mut echo = [0; 4];
    let mut read_bytes = 0;
    while read_bytes < echo.len() {
        let bytes = client.read(&mut echo[read_bytes..]).unwrap();
        assert!(bytes > 0, "the connection ended");
        read_bytes += bytes;
    }
    assert_eq!(&echo, b"ping");
}

#[test]
fn a_switched_connection_counts_for_its_client() {
    let site = before(&echo(), "[limits]\nconnections_per_address = 1");
    let client = switch(&site);
    assert!(site.connect().is_closed(), "one too many was served");
    drop(client);
    // The server has to notice first.
    loop {
        let mut client = site.connect();
        client.send(SWITCH);
        match client.read(&mut [0]) {
            Ok(1) => break,
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

#[test]
fn a_server_that_stops_waits_for_switched_connections() {
    let mut site = before(&echo(), "[limits]\ngrace_seconds = 60");
    let mut client = switch(&site);
    site.ask_to_stop();
    std::thread::sleep(Duration::from_millis(200));
    assert_echo(&mut client);
    assert!(!site.has_stopped());
    drop(client);
    site.stop();
}

#[test]
fn a_body_that_says_it_is_too_long_is_refused_before_anybody_is_asked() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let site = before(&listener, "[limits]\nbody_bytes = 10");
    let response = site.request("POST", "/", "content-length: 11\r\n");
    assert_eq!(response.status, 413);
    listener.set_nonblocking(true).unwrap();
    let asked = listener.accept().map(|_| ());
    assert_eq!(asked.unwrap_err().kind(), ErrorKind::WouldBlock);
}

/// As nginx's `client_max_body_size 0`.
#[test]
fn a_bound_of_no_bytes_is_none() {
    let site = before(&telling(), "[limits]\nbody_bytes = 0");
    let mut client = site.connect();
    client.send("POST /said HTTP/1.1\r\nhost: x\r\ncontent-length: 11\r\n\r\nhello world");
    assert_eq!(client.head().status, 200);
}

/// A listener that answers each request with its request line, under 300 header fields.
fn telling() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let accepting = listener.try_clone().unwrap();
    std::thread::spawn(move || {
        for stream in accepting.incoming() {
            std::thread::spawn(move || tell(stream.unwrap()));
        }
    });
    listener
}

fn tell(mut stream: TcpStream) -> std::io::Result<()> {
    let mut said = BufReader::new(stream.try_clone()?);
    loop {
        let mut line = String::new();
        if said.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let (mut field, mut is_chunked) = (String::new(), false);
        while field != "\r\n" {
            field.clear();
            said.read_line(&mut field)?;
            is_chunked |= field.starts_with("transfer-encoding");
        }
        while is_chunked && field != "0\r\n" {
            field.clear();
            said.read_line(&mut field)?;
        }
        while is_chunked && field != "\r\n" {
            field.clear();
            said.read_line(&mut field)?;
        }
        let fields: String = (0..300)
            .map(|number| format!("x-{number}: 1\r\n"))
            .collect();
        let (line, length) = (line.trim_end(), line.trim_end().len());
        let answer = format!("HTTP/1.1 200 OK\r\n{fields}content-length: {length}\r\n\r\n{line}");
        stream.write_all(answer.as_bytes())?;
    }
}

#[test]
fn three_hundred_fields_and_every_byte_of_a_target_pass() {
    let site = before(&telling(), "[limits]\nhead_bytes = 65536");
    let fields: String = (0..300)
        .map(|number| format!("y-{number}: 1\r\n"))
        .collect();
    let response = site.get("/a", &fields);
    assert_eq!(
        (response.status, response.header("x-299")),
        (200, Some("1"))
    );
    for byte in 0x21..=0xff_u8 {
        // A path that is not valid escaping, and the beginning of a fragment, mean something else;
        // nginx refuses DEL too.
        if matches!(byte, b'#' | b'%' | b'?' | 0x7f) {
            continue;
        }
        let mut client = site.connect();
        let target = [b"/a", &[byte][..], b"?b=", &[byte], b"c"].concat();
        let request = [b"GET ", &target[..], b" HTTP/1.1\r\nhost: x\r\n\r\n"].concat();
        client.stream().write_all(&request).unwrap();
        let response = client.response("GET");
        assert_eq!(response.status, 200, "{byte:x}");
        let escaped = format!("%{byte:02X}");
        let told = response
            .text()
            .replace(&escaped, &char::from(byte).to_string());
        let raw = char::from(byte);
        assert_eq!(told, format!("GET /a{raw}?b={raw}c HTTP/1.1"), "{byte:x}");
    }
}

#[test]
fn trailers_with_bare_line_ends_end_their_request() {
    let site = before(&telling(), "");
    let mut client = site.connect();
    for trailers in ["a: b\n\n", "\n", "a: b\r\n\n"] {
        client.send(&format!(
            "POST /first HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n{trailers}\
             GET /second HTTP/1.1\r\nhost: x\r\n\r\n"
        ));
        assert_eq!(client.response("POST").text(), "POST /first HTTP/1.1");
        assert_eq!(client.response("GET").text(), "GET /second HTTP/1.1");
    }
}

/// A backend's words behind the status reach its client as nginx passes them on; where it wrote none,
/// also behind a status that no standard knows, there are none (RFC 9112, 4).
#[test]
fn words_behind_a_status_are_passed_on_as_nginx_does() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let accepting = listener.try_clone().unwrap();
    std::thread::spawn(move || {
        for stream in accepting.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let status = line.split(['/', ' ']).nth(2).unwrap().replace('_', " ");
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nok");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let site = before(&listener, "");
    let nginx = nginx::has_modules(&[]).then(|| {
        let folder = tempfile::tempdir().unwrap();
        let (address, backend) = (port::free().unwrap(), listener.local_addr().unwrap());
        let http = format!(
            "access_log off; server {{ listen {address}; location / {{ proxy_pass http://{backend}; }} }}\n"
        );
        let nginx = Nginx::start(folder.path(), &http, address).unwrap();
        (nginx, folder, address)
    });
    for status in [
        "200_OK",
        "200_Fine",
        "404_No_such_thing",
        "422_The_title_is_missing",
        "299_Weird",
        "599_",
        "200_",
    ] {
        let (line, body) = status_line(site.address, status);
        assert_eq!(line, format!("HTTP/1.1 {}", status.replace('_', " ")));
        assert_eq!(body, "ok");
        if let Some((_, _, address)) = nginx {
            assert_eq!(line, status_line(address, status).0, "{status}");
        }
    }
}

/// The first line of the answer, and its body.
fn status_line(address: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let line = head.lines().next().unwrap();
    (line.to_owned(), body.to_owned())
}
