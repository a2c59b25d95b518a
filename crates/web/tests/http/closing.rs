//! Responses after which the connection cannot go on: they say so (RFC 9112, 9.6).

use super::support::Site;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::{sleep, spawn};
use std::time::Duration;

/// A site before a backend at `url`.
fn site_to(url: &str) -> Site {
    Site::start_with(&format!(
        "[[upstream]]\nname = 'app'\nservers = ['{url}']\nretries = 0\n[[route]]\npath = '/'\n\
         upstream = 'app'\n"
    ))
}

/// A site before a backend that answers each connection's first bytes with `answer`, and closes.
fn site_before(answer: &'static str) -> Site {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    site_to(&url)
}

/// A site before a backend that is not there.
fn site_before_nothing() -> Site {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    site_to(&format!("http://{address}"))
}

/// HTTP/1.0 knows no other end of a body of unknown length.
#[test]
fn a_body_without_a_length_ends_the_connection_of_http_1_0() {
    let site = site_before(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    );
    for keep in ["", "connection: keep-alive\r\n"] {
        let mut client = site.connect();
        client.send(&format!("GET / HTTP/1.0\r\nhost: x\r\n{keep}\r\n"));
        let head = client.head();
        assert_eq!(
            (head.status, head.header("connection")),
            (200, Some("close"))
        );
        assert_eq!(client.rest().unwrap(), b"hello");
    }
}

/// What is left of the body stands where the next request would.
#[test]
fn an_upload_that_is_left_in_the_middle_ends_the_connection() {
    let site = site_before("");
    let mut client = site.connect();
    client.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n");
    sleep(Duration::from_millis(100));
    let response = client.response("POST");
    let connection = response.header("connection").map(str::to_owned);
    assert_eq!(
        (response.status, connection.as_deref()),
        (502, Some("close"))
    );
    assert!(client.is_closed());
}

#[test]
fn an_upload_that_is_not_read_at_all_ends_the_connection() {
    for fields in [
        "content-length: 100000\r\n",
        "transfer-encoding: chunked\r\n",
        "content-length: 5\r\nexpect: 100-continue\r\n",
    ] {
        let site = site_before_nothing();
        let mut client = site.connect();
        client.send(&format!("POST / HTTP/1.1\r\nhost: x\r\n{fields}\r\n"));
        let response = client.response("POST");
        let connection = response.header("connection");
        assert_eq!(
            (response.status, connection),
            (502, Some("close")),
            "{fields}"
        );
        assert!(client.is_closed());
    }
}

#[test]
fn a_short_body_that_came_with_its_head_does_not() {
    let site = site_before_nothing();
    let mut client = site.connect();
    for _ in 0..2 {
        client.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello");
        let response = client.response("POST");
        assert_eq!(
            (response.status, response.header("connection")),
            (502, None)
        );
    }
}

#[test]
fn a_tunnel_is_refused_by_its_method() {
    let site = site_before("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let mut client = site.connect();
    client.send("CONNECT a:443 HTTP/1.1\r\nhost: a:443\r\n\r\n");
    assert_eq!(client.response("GET").status, 405);
}
