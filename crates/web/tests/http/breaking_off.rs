//! Responses of backends that do not come to their end: the access log says why.

use super::support::Site;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{sleep, spawn};
use std::time::Duration;

/// A backend that begins an answer to each request, and ends none as it should.
fn backend() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            spawn(move || begin_answer(stream));
        }
    });
    url
}

fn begin_answer(mut stream: TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let target = head.split(' ').nth(1).unwrap();
    let known = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbeg";
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nbeg\r\n";
    let is_known = matches!(target, "/short" | "/idle");
    let start = if is_known { known } else { chunked };
    stream.write_all(start.as_bytes()).unwrap();
    match target {
        "/short" | "/no-last-chunk" => {}
        "/no-chunk" => drop(stream.write_all(b"none\r\n")),
        "/idle" | "/idle-stream" => drop(stream.read(&mut [0])),
        _ => {
            while stream.write_all(b"1\r\nx\r\n").is_ok() {
                sleep(Duration::from_millis(50));
            }
        }
    }
}

#[test]
fn the_access_log_says_why_a_response_broke_off() {
    let url = backend();
    let mut site = Site::start_with(&format!(
        "[log]\naccess = 'FOLDER/log'\n[[upstream]]\nname = 'app'\nservers = ['{url}']\n\
         idle_seconds = 0.5\n[[route]]\npath = '/'\nupstream = 'app'\n\
         [[class]]\nname = 'short'\npath = ['/long']\nlongest = '300 ms'\nlongest_action = 'cancel'\n"
    ));
    let broken = "the upstream's response broke off";
    let paused = "the upstream paused for too long within its response";
    let expected = [
        ("/short", broken),
        ("/no-last-chunk", broken),
        ("/no-chunk", broken),
        ("/idle", paused),
        ("/idle-stream", paused),
        ("/long", "it ran for longer than 300ms (class.longest)"),
    ];
    for (target, _) in expected {
        let mut client = site.connect();
        client.send_get(target);
        assert_eq!(client.head().status, 200, "{target}");
        let _ = client.rest();
    }
    let mut leaving = site.connect();
    leaving.send_get("/left");
    assert_eq!(leaving.head().status, 200);
    drop(leaving);
    sleep(Duration::from_millis(300));
    let lines = site.log_lines();
    let line = |target: &str| {
        let line = lines.iter().find(|line| line["target"] == target);
        line.unwrap_or_else(|| panic!("no {target}: {lines:?}"))
    };
    for (target, why) in expected {
        let line = line(target);
        assert_eq!(line["completed"], false, "{line}");
        let error = line["upstream_error"].as_str().unwrap_or_default();
        assert!(error.starts_with(&format!("{url}: {why}")), "{line}");
    }
    let left = line("/left");
    assert_eq!(left["completed"], false, "{left}");
    let why = "the client left before the end of the response";
    assert_eq!(left["upstream_error"], why, "{left}");
}
