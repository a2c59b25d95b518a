//! Bodies that come slowly are sent as they come.

use super::support::*;
use flate2::read::GzDecoder;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is between the chunks of a response over HTTP/1.1 that has not ended.
fn dechunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(line) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..line]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        rest = &rest[line + 2..];
        if rest.len() < size + 2 {
            break;
        }
        body.extend_from_slice(&rest[..size]);
        rest = &rest[size + 2..];
    }
    body
}

/// Reads from `stream` until what came so far unpacks to `expected`.
fn read_until(stream: &mut TcpStream, received: &mut Vec<u8>, expected: &[u8]) {
    stream
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    let began = std::time::Instant::now();
    loop {
        if let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            let body = dechunked(&received[end + 4..]);
            let mut unpacked = vec![0; expected.len()];
            if GzDecoder::new(&body[..]).read_exact(&mut unpacked).is_ok() {
                assert_eq!(unpacked, expected);
                return;
            }
        }
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer) {
            Ok(0) => panic!("it ended: {}", String::from_utf8_lossy(received)),
            Ok(bytes) => received.extend_from_slice(&buffer[..bytes]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
        assert!(began.elapsed() < crate::site::PATIENCE, "it is held back");
    }
}

/// A site before a backend that sends each text as a chunk when it is told to, until it cannot:
/// then it says so.
fn telling(kind: &'static str, told: Receiver<Vec<u8>>, has_ended: Arc<AtomicBool>) -> Site {
    let told = Mutex::new(told);
    before("compress = true", move |_, stream| {
        let lines = format!("content-type: {kind}\r\ntransfer-encoding: chunked\r\n");
        say(stream, &lines, b"");
        while let Ok(text) = told.lock().unwrap().recv() {
            if chunk(stream, &text).is_err() {
                has_ended.store(true, Relaxed);
                return;
            }
        }
        let _ = stream.write_all(b"0\r\n\r\n");
    })
}

#[test]
fn an_event_is_there_before_the_next_one_is_sent() {
    let (tell, told) = channel();
    let site = telling("text/event-stream", told, Arc::default());
    let mut client = TcpStream::connect(site.address).unwrap();
    client
        .write_all(b"GET / HTTP/1.1\r\nhost: x\r\naccept-encoding: gzip\r\n\r\n")
        .unwrap();
    let (mut received, mut expected) = (Vec::new(), Vec::new());
    for number in 0..5 {
        let event = format!("data: {number}\n\n").into_bytes();
        expected.extend_from_slice(&event);
        tell.send(event).unwrap();
        read_until(&mut client, &mut received, &expected);
    }
    // One that is large, one after it that is small.
    for event in [text(200_000), b"data: end\n\n".to_vec()] {
        expected.extend_from_slice(&event);
        tell.send(event).unwrap();
        read_until(&mut client, &mut received, &expected);
    }
    let head = String::from_utf8_lossy(&received[..400]).to_lowercase();
    assert!(head.contains("content-encoding: gzip"), "{head}");
}

#[test]
fn a_client_that_leaves_ends_the_backends_work() {
    let (tell, told) = channel();
    let has_ended = Arc::<AtomicBool>::default();
    let site = telling("text/html", told, has_ended.clone());
    let mut client = TcpStream::connect(site.address).unwrap();
    client
        .write_all(b"GET / HTTP/1.1\r\nhost: x\r\naccept-encoding: gzip\r\n\r\n")
        .unwrap();
    tell.send(b"hello".to_vec()).unwrap();
    read_until(&mut client, &mut Vec::new(), b"hello");
    drop(client);
    // The backend's connection is closed: soon it cannot write.
    let began = std::time::Instant::now();
    while !has_ended.load(Relaxed) {
        tell.send(text(10_000)).unwrap();
        assert!(
            began.elapsed() < crate::site::PATIENCE,
            "the backend goes on"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn slow_compression_keeps_no_other_response_waiting() {
    if !has_curl() {
        return;
    }
    let site = Site::start_with("compress = true\n[compression]\nbr_level = 9");
    site.write("large.html", text(1_500_000));
    site.write("small.txt", "small");
    let address = site.address;
    let slow = std::thread::spawn(move || {
        let began = std::time::Instant::now();
        let got = unpacked(address, "/large.html", "br", &[]);
        (got.body.len(), began.elapsed())
    });
    let mut longest = Duration::ZERO;
    while !slow.is_finished() {
        let began = std::time::Instant::now();
        let mut client = TcpStream::connect(address).unwrap();
        client
            .write_all(b"GET /small.txt HTTP/1.0\r\n\r\n")
            .unwrap();
        let mut got = String::new();
        client.read_to_string(&mut got).unwrap();
        assert!(got.ends_with("small"));
        longest = longest.max(began.elapsed());
    }
    let (bytes, took) = slow.join().unwrap();
    assert_eq!(bytes, 1_500_000);
    assert!(longest < took / 2, "{longest:?} of {took:?}");
}
