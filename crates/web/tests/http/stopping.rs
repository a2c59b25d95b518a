//! What a server that stops says to those that still wait when its grace ends.

use super::support::{Client, Site};
use crate::site::PATIENCE;
use h2::client;
use hyper::Request;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;
use std::time::Duration;
use tokio::time::{sleep, timeout};

const BEGUN: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbeg";
const STOPPED: &str = "this server stopped (limits.grace_seconds)";

/// A backend that says what it is asked for; /begun gets a part of an answer, all others none.
fn backend() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (asked, seen) = channel();
    spawn(move || {
        for stream in listener.incoming() {
            let asked = asked.clone();
            spawn(move || hold(stream.unwrap(), |target| drop(asked.send(target))));
        }
    });
    (url, seen)
}

fn hold(mut stream: TcpStream, say: impl Fn(String)) {
    let mut bytes = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut bytes) {
        let text = String::from_utf8_lossy(&bytes[..read]);
        let target = text.split(' ').nth(1).unwrap_or_default();
        if target == "/begun" {
            let _ = stream.write_all(BEGUN);
        }
        say(target.to_owned());
    }
}

fn get(site: &Site, target: &str, fields: &str) -> Client {
    let mut client = site.connect();
    client.send(&format!("GET {target} HTTP/1.1\r\nhost: x\r\n{fields}\r\n"));
    client
}

/// The status of a request over HTTP/2 that waits until the server has stopped, which is asked to
/// when all have waited long enough for a comment.
async fn wait_by_http2(site: &mut Site) -> u16 {
    let socket = tokio::net::TcpStream::connect(site.address).await.unwrap();
    let (mut client, connection) = client::handshake(socket).await.unwrap();
    let driving = tokio::spawn(connection);
    let request = Request::get("http://localhost/waiting-2").body(());
    let (response, _) = client.send_request(request.unwrap(), true).unwrap();
    sleep(Duration::from_millis(5500)).await;
    site.ask_to_stop();
    let response = response.await.unwrap();
    drop(driving);
    response.status().as_u16()
}

#[test]
fn requests_without_a_response_get_503_when_the_grace_ends() {
    let (url, seen) = backend();
    let mut site = Site::start_with(&format!(
        "[log]\naccess = 'FOLDER/log'\n[limits]\ngrace_seconds = 3\n\
         [[upstream]]\nname = 'app'\nservers = ['{url}']\nlimit = 1\ntell_wait = ['stream']\n\
         [[upstream]]\nname = 'other'\nservers = ['{url}']\n\
         [[route]]\npath = '/'\nupstream = 'app'\n[[route]]\npath = '/begun'\nupstream = 'other'\n"
    ));
    let mut inside = get(&site, "/inside", "");
    assert_eq!(seen.recv().unwrap(), "/inside");
    let mut begun = get(&site, "/begun", "");
    assert_eq!(begun.head().status, 200);
    let mut waiting = get(&site, "/waiting", "");
    let mut stream = get(&site, "/stream", "accept: text/event-stream\r\n");
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let by_http2 = runtime.block_on(async { timeout(PATIENCE, wait_by_http2(&mut site)).await });
    assert_eq!(by_http2.unwrap(), 503);
    for client in [&mut inside, &mut waiting] {
        let response = client.response("GET");
        assert_eq!(response.status, 503);
        assert_eq!(response.header("connection"), Some("close"));
        let text = "503 Service Unavailable: this server stops, try again later\n";
        assert_eq!(response.text(), text);
        assert!(client.rest().unwrap().is_empty());
    }
    assert_eq!(stream.head().status, 200);
    let events = String::from_utf8(stream.rest().unwrap()).unwrap();
    assert!(events.contains("event: error\n"), "{events}");
    assert!(
        events.contains("\"status\":503,\"message\":\"this server stops"),
        "{events}"
    );
    let lines = site.log_lines();
    for (target, status, completed, why) in [
        ("/inside", 503, true, STOPPED.to_owned()),
        ("/waiting", 503, true, STOPPED.to_owned()),
        ("/waiting-2", 503, true, STOPPED.to_owned()),
        ("/stream", 200, true, STOPPED.to_owned()),
        ("/begun", 200, false, STOPPED.to_owned()),
    ] {
        let line = lines.iter().find(|line| line["target"] == target);
        let line = line.unwrap_or_else(|| panic!("no {target}: {lines:?}"));
        let outcome = ["status", "completed", "upstream_error"].map(|field| &line[field]);
        let expected: [Value; 3] = [status.into(), completed.into(), why.into()];
        assert_eq!(outcome, expected.each_ref(), "{line}");
        // None of those that waited takes the place of the one that was inside.
        let tries = u64::from(["/inside", "/begun"].contains(&target));
        assert_eq!(line["upstream_tries"], tries, "{line}");
    }
    assert!(seen.try_iter().all(|target| target == "/begun"));
    assert_eq!(lines.len(), 5, "{lines:?}");
}

#[test]
fn what_is_cut_without_a_grace_has_not_left() {
    let (url, seen) = backend();
    let mut site = Site::start_with(&format!(
        "[log]\naccess = 'FOLDER/log'\n[limits]\ngrace_seconds = 0\n\
         [[upstream]]\nname = 'app'\nservers = ['{url}']\nlimit = 1\n\
         [[route]]\npath = '/'\nupstream = 'app'\n"
    ));
    let _inside = get(&site, "/inside", "");
    assert_eq!(seen.recv().unwrap(), "/inside");
    let lines = site.log_lines();
    let outcome = ["status", "upstream_error"].map(|field| &lines[0][field]);
    assert_eq!(outcome, [&Value::from(503), &STOPPED.into()]);
}
