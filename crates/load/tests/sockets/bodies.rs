//! Large bodies, sent to servers that answer before they have read all of them.

use super::replay::block_on;
use bytes::Bytes;
use http::Method;
use sooner_load::client::Client;
use sooner_load::exchange::Served;
use sooner_load::failure::Failure;
use sooner_load::message::{Message, Question};
use sooner_load::pool::{Carrier, Pool, Reuse};
use sooner_load::target::Target;
use sooner_load::tls::TlsOptions;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;

/// More than all buffers between two sockets hold.
const BODY_BYTES: usize = 32 << 20;
/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Has `serve` do what it does with each connection behind the head of its first request.
fn listen(serve: impl Fn(BufReader<TcpStream>) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                assert_ne!(reader.read_line(&mut head).unwrap(), 0);
            }
            serve(reader);
        }
    });
    address
}

/// What a POST of a large body gets, and whether its connection may carry another request.
fn posted(address: SocketAddr) -> (Result<Served, Failure>, bool) {
    let url = format!("http://{address}/");
    let target = Target::resolve(&url, &TlsOptions::default()).unwrap();
    let question = Question {
        method: Method::POST,
        body: Some(Bytes::from(vec![b'x'; BODY_BYTES])),
        ..Question::get("/")
    };
    let message = Message::new(&question, &target, false, false).unwrap();
    block_on(async {
        let reuse = Reuse {
            requests_per_connection: NonZeroU32::MAX,
            http2_streams: None,
        };
        let pool = Pool::new(Rc::new(Client::default()), address.into(), reuse);
        let mut carrier = pool.connect().1.unwrap();
        let asking = pool.send(&mut carrier, &message);
        let served = tokio::time::timeout(PATIENCE, asking).await;
        let is_open = match &mut carrier {
            Carrier::Connection(connection) => connection.is_open(),
            Carrier::Stream(_) => panic!("HTTP/1.1 has none"),
        };
        (served.expect("in time"), is_open)
    })
}

#[test]
fn a_body_that_comes_back_is_read_while_it_is_sent() {
    let address = listen(|mut reader| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {BODY_BYTES}\r\n\r\n");
        let mut stream = reader.get_ref().try_clone().unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        // As much as it has taken, and no more, is what it has given back.
        let mut piece = [0; 4096];
        let mut left = BODY_BYTES;
        while left > 0 {
            let read = reader.read(&mut piece).unwrap();
            assert_ne!(read, 0, "the client has gone");
            stream.write_all(&piece[..read]).unwrap();
            left -= read;
        }
        // The connection stays open.
        loop {
            std::thread::park();
        }
    });
    let (served, is_open) = posted(address);
    let answer = served.unwrap().answer;
    assert_eq!((answer.status, answer.body_bytes), (200, BODY_BYTES as u64));
    assert!(answer.keep_alive && is_open);
}

/// The status of an answer that comes before a byte of the body is read, as none ever is.
fn refused(answer: &'static str, ends: bool) -> u16 {
    let address = listen(move |reader| {
        let mut stream = reader.get_ref();
        stream.write_all(answer.as_bytes()).unwrap();
        if ends {
            stream.shutdown(Shutdown::Write).unwrap();
        }
        loop {
            std::thread::park();
        }
    });
    let (served, is_open) = posted(address);
    let answer = served.unwrap().answer;
    assert!(!answer.keep_alive && !is_open);
    answer.status
}

#[test]
fn no_more_of_a_body_is_sent_behind_an_answer_that_refuses_it() {
    let error = "HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(refused(error, false), 413);
    let last = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(refused(last, false), 200);
    let good = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(refused(good, true), 202, "the server has closed");
}

#[test]
fn the_rest_of_a_body_follows_an_answer_that_takes_it() {
    let (taken, bytes) = mpsc::channel();
    let address = listen(move |reader| {
        let answer = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
        reader.get_ref().write_all(answer).unwrap();
        let mut body = reader.take(BODY_BYTES as u64);
        let read = io::copy(&mut body, &mut io::sink()).unwrap();
        taken.send(read).unwrap();
        // The connection stays open.
        loop {
            std::thread::park();
        }
    });
    let (served, is_open) = posted(address);
    let answer = served.unwrap().answer;
    assert_eq!(answer.status, 202);
    assert!(answer.keep_alive && is_open);
    assert_eq!(bytes.recv_timeout(PATIENCE), Ok(BODY_BYTES as u64));
}
