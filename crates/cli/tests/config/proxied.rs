//! What an operator finds out about requests that their upstream did not answer.

use super::place::{ConfigFolder, LISTEN, Server};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// A server with a log that sends everything below `/app` to `upstream`.
fn before(upstream: &str, keys: &str, route_keys: &str) -> (ConfigFolder, Server) {
    let place = ConfigFolder::new(&format!(
        "{LISTEN}root = \"one\"\n[log]\naccess = \"access.log\"\n\
         [[upstream]]\nname = \"app\"\nservers = [\"http://{upstream}\"]\n{keys}\n\
         [[route]]\npath = \"/app\"\nupstream = \"app\"\n{route_keys}\n"
    ));
    let server = place.start(&[]);
    (place, server)
}

/// The lines of the log, once the server has stopped.
fn logged(place: &ConfigFolder, server: Server) -> Vec<Value> {
    server.stop();
    let text = std::fs::read_to_string(place.path("access.log")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// An address where no server listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// Answers every request with an empty 200, on one connection after the other.
fn everybody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            while read_head(&mut stream).is_some() {
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                if stream.write_all(answer).is_err() {
                    break;
                }
            }
        }
    });
    address
}

fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

/// The status of one request on a connection that is kept.
fn status(stream: &mut TcpStream, path: &str) -> u16 {
    write!(stream, "GET {path} HTTP/1.1\r\nhost: h\r\n\r\n").unwrap();
    let head = read_head(stream).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().unwrap());
    stream.read_exact(&mut vec![0; length]).unwrap();
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn why_a_request_failed_is_logged_each_time_and_said_once() {
    let upstream = nobody();
    let (place, mut server) = before(&upstream, "retries = 1\nfails = 3", "");
    let mut client = TcpStream::connect(&server.address).unwrap();
    let refused = format!("http://{upstream}: cannot connect: Connection refused (os error 111)");
    for (path, expected) in [("/app/x?secret", 502), ("/app/y", 502), ("/app/z", 503)] {
        assert_eq!(status(&mut client, path), expected);
    }
    let said = server.says();
    assert_eq!(
        said.trim_end(),
        format!("sooner: upstream `app`, {refused}; try 1 of GET /app/x of 127.0.0.1")
    );
    // Of the same kind nothing more is said within a minute.
    let said = server.says();
    let down =
        format!("no server is up; the first is tried again in 1 s; the last to fail was {refused}");
    assert_eq!(
        said.trim_end(),
        format!("sooner: upstream `app`: {down}; status 503 for GET /app/z of 127.0.0.1")
    );
    drop(client);
    let lines = logged(&place, server);
    let of = |line: &Value| {
        let text = |field: &str| line[field].as_str().unwrap_or("none").to_owned();
        let tries = line["upstream_tries"].as_u64().unwrap();
        (
            text("upstream"),
            text("upstream_server"),
            tries,
            text("upstream_error"),
        )
    };
    let server_name = format!("http://{upstream}");
    let app = || "app".to_owned();
    assert_eq!(
        of(&lines[0]),
        (app(), server_name.clone(), 2, refused.clone())
    );
    assert_eq!(of(&lines[1]), (app(), server_name, 1, refused));
    assert_eq!(of(&lines[2]), (app(), "none".into(), 0, down));
}

/// Lets `server` open so many files at most; without a number as many as before.
fn limit_descriptors(server: &Server, most: Option<u64>) {
    let before = getrlimit(Resource::Nofile);
    let limit = Rlimit {
        current: most.or(before.current),
        ..before
    };
    prlimit(
        Some(Pid::from_child(&server.child)),
        Resource::Nofile,
        limit,
    )
    .unwrap();
}

/// The next descriptor `server` would get.
fn next_descriptor(server: &Server) -> u64 {
    let open: BTreeSet<u64> = std::fs::read_dir(format!("/proc/{}/fd", server.child.id()))
        .unwrap()
        .map(|entry| {
            entry
                .unwrap()
                .file_name()
                .to_str()
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect();
    (0..).find(|number| !open.contains(number)).unwrap()
}

#[test]
fn without_descriptors_requests_wait_and_no_server_goes_out() {
    let (place, mut server) = before(&everybody(), "fails = 1\nconnect_seconds = 0.5", "");
    let mut client = TcpStream::connect(&server.address).unwrap();
    assert_eq!(status(&mut client, "/a.txt"), 200);
    limit_descriptors(&server, Some(next_descriptor(&server)));
    for _ in 0..2 {
        assert_eq!(status(&mut client, "/app/x"), 503);
    }
    let said = server.says();
    for words in [
        "upstream `app`, http://",
        "ulimit -n",
        "GET /app/x of 127.0.0.1 waits",
    ] {
        assert!(said.contains(words), "{words} is not in {said}");
    }
    limit_descriptors(&server, None);
    // A server that had gone out would be out for a second.
    assert_eq!(status(&mut client, "/app/y"), 200);
    drop(client);
    let lines = logged(&place, server);
    assert_eq!(lines[1]["upstream_tries"], 0);
    let error = lines[1]["upstream_error"].as_str().unwrap();
    assert!(error.contains("no descriptor left"), "{error}");
    assert_eq!(lines[3]["upstream_tries"], 1);
    assert!(lines[3].get("upstream_error").is_none());
}

#[test]
fn what_waits_for_a_descriptor_goes_on_when_there_is_one() {
    let (_place, mut server) = before(&everybody(), "fails = 1\nconnect_seconds = 60", "");
    let mut client = TcpStream::connect(&server.address).unwrap();
    assert_eq!(status(&mut client, "/a.txt"), 200);
    limit_descriptors(&server, Some(next_descriptor(&server)));
    let asked = std::thread::spawn(move || status(&mut client, "/app/x"));
    assert!(server.says().contains("waits"));
    limit_descriptors(&server, None);
    assert_eq!(asked.join().unwrap(), 200);
}

/// Switches to a protocol in which everything is said back, on one connection.
fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_head(&mut stream).unwrap();
        let switch = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nwelcome";
        stream.write_all(switch.as_bytes()).unwrap();
        let mut buffer = [0; 100];
        while let Ok(bytes) = stream.read(&mut buffer) {
            if bytes == 0 || stream.write_all(&buffer[..bytes]).is_err() {
                break;
            }
        }
    });
    address
}

/// A client that has switched, and said and heard something.
fn switch(server: &Server) -> TcpStream {
    let mut client = TcpStream::connect(&server.address).unwrap();
    let request =
        "GET /app HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nping";
    client.write_all(request.as_bytes()).unwrap();
    assert!(read_head(&mut client).unwrap().starts_with("HTTP/1.1 101 "));
    let mut heard = [0; "welcomeping".len()];
    client.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"welcomeping");
    client
}

#[test]
fn a_switched_connection_that_ends_as_it_should_is_complete() {
    let (place, server) = before(&echo(), "", "");
    let mut client = switch(&server);
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.read_to_end(&mut Vec::new()).unwrap(), 0);
    drop(client);
    let lines = logged(&place, server);
    assert_eq!((lines.len(), &lines[0]["status"]), (1, &101.into()));
    assert_eq!(lines[0]["completed"], true);
    assert_eq!(lines[0]["size_bytes"], "welcomeping".len());
}

#[test]
fn a_switched_connection_that_is_cut_is_not() {
    let (place, server) = before(&echo(), "", "tunnel_seconds = 0.1");
    let mut client = switch(&server);
    client
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
    let lines = logged(&place, server);
    assert_eq!(lines[0]["completed"], false);
    assert_eq!(lines[0]["size_bytes"], "welcomeping".len());
}
