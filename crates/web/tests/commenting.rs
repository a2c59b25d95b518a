//! Signs of life on event streams, seen through the whole server: both protocols and the log. This
//! waits as long as a client has to.

use crate::site::{PATIENCE, Site};
use bytes::Bytes;
use h2::RecvStream;
use h2::client::{self, SendRequest};
use hyper::Request;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

const STREAM: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: 1\n\n";
const REFUSED: &[u8] = b"HTTP/1.1 400 No\r\ncontent-length: 4\r\nconnection: close\r\n\r\nwhy\n";

/// A backend that says what it is asked for; it answers /held when `let_go` says so.
fn backend(let_go: Receiver<()>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (asked, seen) = channel();
    spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let head = read_head(&mut stream);
            asked.send(head.clone()).unwrap();
            let answer = match head.split(' ').nth(1) {
                Some("/stream") => STREAM,
                _ => REFUSED,
            };
            if head.starts_with("GET /held") {
                let_go.recv().unwrap();
            }
            stream.write_all(answer).unwrap();
        }
    });
    (url, seen)
}

fn read_head(stream: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// A stream of HTTP/2 for `path`, after its first comment.
async fn begun(client: &mut SendRequest<Bytes>, path: &str) -> RecvStream {
    let request = Request::get(format!("http://localhost{path}"));
    let request = request.header("accept", "text/event-stream");
    let (response, _) = client
        .send_request(request.body(()).unwrap(), true)
        .unwrap();
    let (head, mut body) = response.await.unwrap().into_parts();
    assert_eq!(head.headers["content-type"], "text/event-stream");
    let comment = body.data().await.unwrap().unwrap();
    assert!(comment.starts_with(b": waiting for "));
    body
}

async fn rest(mut body: RecvStream) -> String {
    let mut all = Vec::new();
    while let Some(piece) = body.data().await {
        all.extend_from_slice(&piece.unwrap());
    }
    let all = String::from_utf8(all).unwrap();
    let blocks = all.split_inclusive("\n\n");
    let after: Vec<&str> = blocks.skip_while(|block| block.starts_with(": ")).collect();
    after.concat()
}

/// The same over HTTP/1.1.
async fn begun_1(site: &Site, path: &str) -> tokio::net::TcpStream {
    let mut stream = tokio::net::TcpStream::connect(site.address).await.unwrap();
    let asked = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: text/event-stream\r\n\r\n"
    );
    stream.write_all(asked.as_bytes()).await.unwrap();
    let mut all = Vec::new();
    while !String::from_utf8_lossy(&all).contains(": waiting for ") {
        assert!(stream.read_buf(&mut all).await.unwrap() > 0);
    }
    stream
}

fn line<'a>(lines: &'a [Value], target: &str, protocol: &str) -> &'a Value {
    let mut fitting = lines
        .iter()
        .filter(|line| line["target"] == target && line["protocol"] == protocol);
    fitting.next().unwrap()
}

/// Whether the log tells what became of the requests above.
fn assert_logged(lines: &[Value], url: &str) {
    for protocol in ["HTTP/2", "HTTP/1.1"] {
        let stream = line(lines, "/stream", protocol);
        assert_eq!(
            (&stream["status"], &stream["completed"]),
            (&200.into(), &true.into())
        );
        assert_eq!(
            (&stream["upstream_tries"], &stream["upstream_server"]),
            (&1.into(), &url.into())
        );
        let [wait_ns, all_ns] = ["upstream_wait_ns", "upstream_ns"].map(|one| {
            let ns = stream[one].as_u64();
            ns.unwrap()
        });
        assert!(wait_ns > 5_000_000_000 && all_ns >= wait_ns, "{stream}");
        assert!(stream["upstream_error"].is_null());
        let left = line(lines, "/left", protocol);
        assert_eq!(
            (&left["status"], &left["completed"]),
            (&200.into(), &false.into())
        );
        assert_eq!(
            (&left["upstream_tries"], &left["upstream_server"]),
            (&0.into(), &Value::Null)
        );
        let why = "the client left before there was an answer";
        assert_eq!(left["upstream_error"], why);
    }
    let refused = line(lines, "/refused", "HTTP/2");
    assert_eq!(
        (&refused["status"], &refused["upstream_tries"]),
        (&200.into(), &1.into())
    );
    let why = refused["upstream_error"].as_str().unwrap();
    assert!(why.starts_with("answered with status 400 "), "{why}");
}

#[test]
fn comments_pass_both_protocols_and_the_log_tells_what_came_of_each_request() {
    let (hold, let_go) = channel();
    let (url, seen) = backend(let_go);
    let mut site = Site::start_with(&format!(
        "[log]\naccess = 'FOLDER/log'\n[[upstream]]\nname = 'app'\nservers = ['{url}']\nlimit = 1\n\
         tell_wait = ['stream']\n[[route]]\npath = '/'\nupstream = 'app'\n"
    ));
    let mut held = TcpStream::connect(site.address).unwrap();
    held.write_all(b"GET /held HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    assert!(seen.recv().unwrap().starts_with("GET /held "));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let exchanges = async {
        let socket = tokio::net::TcpStream::connect(site.address).await.unwrap();
        let (client, connection) = client::handshake(socket).await.unwrap();
        let driving = tokio::spawn(connection);
        let [mut one, mut other, mut third] = [client.clone(), client.clone(), client];
        let (mut stream, refused, leaving, stream_1, leaving_1) = tokio::join!(
            begun(&mut one, "/stream"),
            begun(&mut other, "/refused"),
            begun(&mut third, "/left"),
            begun_1(&site, "/stream"),
            begun_1(&site, "/left"),
        );
        drop((leaving, leaving_1));
        // Of five that waited two have left.
        let two_more = b"others waiting: 2\n\n";
        while !stream.data().await.unwrap().unwrap().ends_with(two_more) {}
        hold.send(()).unwrap();
        assert_eq!(rest(stream).await, "data: 1\n\n");
        let event = rest(refused).await;
        assert!(
            event.starts_with("event: error\nretry: 60000\ndata: {\"status\":400,"),
            "{event}"
        );
        assert!(event.ends_with(",\"body\":\"why\\n\"}}\n\n"), "{event}");
        let mut all = String::new();
        let mut stream_1 = stream_1;
        stream_1.read_to_string(&mut all).await.unwrap();
        assert!(all.ends_with("data: 1\n\n\r\n0\r\n\r\n"), "{all}");
        driving.abort();
    };
    runtime.block_on(async { timeout(PATIENCE, exchanges).await.unwrap() });
    drop(held);
    let asked: Vec<String> = seen.try_iter().collect();
    assert!(asked.len() == 3 && !asked.iter().any(|head| head.contains("/left")));
    assert_logged(&site.log_lines(), &url);
}
