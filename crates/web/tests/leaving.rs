//! Clients that leave before there is a response: they are in the log, as nginx has them.

use crate::site::{PATIENCE, Site};
use h2::client;
use hyper::Request;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// A backend that says what it is asked for, and never answers.
fn silent_backend() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (asked, seen) = channel();
    spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, asked) = (stream.unwrap(), asked.clone());
            spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(read @ 1..) = stream.read(&mut bytes) {
                    let text = String::from_utf8_lossy(&bytes[..read]);
                    let target = text.split(' ').nth(1).unwrap_or_default();
                    let _ = asked.send(target.to_owned());
                }
            });
        }
    });
    (url, seen)
}

fn get(site: &Site, target: &str) -> TcpStream {
    let mut stream = TcpStream::connect(site.address).unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// One stream is taken back, and one ends with its connection.
async fn leave_by_http2(site: &Site, seen: &Receiver<String>) {
    let socket = tokio::net::TcpStream::connect(site.address).await.unwrap();
    let (mut client, connection) = client::handshake(socket).await.unwrap();
    let driving = tokio::spawn(connection);
    let mut ask = |target: &str| {
        let request = Request::get(format!("http://localhost{target}"));
        client
            .send_request(request.body(()).unwrap(), true)
            .unwrap()
    };
    let (taken_back, mut stream) = ask("/taken-back");
    let cut = ask("/cut");
    sleep(Duration::from_millis(100)).await;
    stream.send_reset(h2::Reason::CANCEL);
    sleep(Duration::from_millis(100)).await;
    drop((taken_back, cut));
    driving.abort();
    assert!(driving.await.unwrap_err().is_cancelled());
    assert!(seen.try_recv().is_err(), "both wait for the one inside");
}

#[test]
fn a_client_that_leaves_before_the_response_is_logged_with_status_499() {
    let (url, seen) = silent_backend();
    let mut site = Site::start_with(&format!(
        "[log]\naccess = 'FOLDER/log'\n[[upstream]]\nname = 'app'\nservers = ['{url}']\nlimit = 1\n\
         [[route]]\npath = '/'\nupstream = 'app'\n"
    ));
    let inside = get(&site, "/inside");
    assert_eq!(seen.recv().unwrap(), "/inside");
    let waiting = get(&site, "/waiting");
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let leaving = leave_by_http2(&site, &seen);
        timeout(PATIENCE, leaving).await.unwrap();
    });
    drop(waiting);
    // Until all that wait have been missed, or the last one would go in.
    let log = site.outside().join("log");
    let lines_now = || std::fs::read_to_string(&log).map_or(0, |text| text.lines().count());
    let begin = Instant::now();
    while lines_now() < 3 {
        assert!(begin.elapsed() < PATIENCE, "they are not missed");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(inside);
    let lines = site.log_lines();
    let targets = ["/waiting", "/taken-back", "/cut", "/inside"];
    assert_eq!(lines.len(), targets.len(), "{lines:?}");
    for target in targets {
        let line = lines.iter().find(|line| line["target"] == target);
        let line = line.unwrap_or_else(|| panic!("no {target}: {lines:?}"));
        let outcome = ["status", "completed", "size_bytes", "upstream"].map(|field| &line[field]);
        let expected: [Value; 4] = [499.into(), false.into(), 0.into(), "app".into()];
        assert_eq!(outcome, expected.each_ref(), "{line}");
        let why = "the client left before there was an answer";
        assert_eq!(line["upstream_error"], why);
        // Only one was inside.
        let tries = u64::from(target == "/inside");
        assert_eq!(line["upstream_tries"], tries, "{line}");
        assert!(line["upstream_ns"].as_u64() > Some(1_000_000), "{line}");
        let waited_all = line["upstream_wait_ns"] == line["upstream_ns"];
        assert_eq!(waited_all, tries == 0, "{line}");
    }
}
