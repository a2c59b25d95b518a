//! Answers that come before the request is over. The client is still sending, and must get all of
//! them (RFC 9112, 9.6).

use super::support::{Client, Response, Site};
use std::io::{ErrorKind, Write};
use std::net::TcpListener;
use std::time::Duration;

const BODY_BYTES: usize = 20 << 20;
const PIECES: usize = 100;

/// A head, and all of a body, with pauses.
fn send_all(client: &mut Client, head: &str) {
    client.send(head);
    let piece = "x".repeat(BODY_BYTES / PIECES);
    for _ in 0..PIECES {
        client.send(&piece);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The answer to a request with a large body, for a client that reads nothing before it has sent
/// everything.
fn answer_to_an_upload(site: &Site) -> Response {
    let mut client = site.connect();
    let head = format!("POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: {BODY_BYTES}\r\n\r\n");
    send_all(&mut client, &head);
    let response = client.response("POST");
    assert!(client.is_closed(), "and then a clean end");
    response
}

#[test]
fn a_body_that_is_too_long_is_taken_until_its_client_has_heard_so() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap();
    let site = Site::start_with(&format!(
        "[limits]\nbody_bytes = 1000000\n[[upstream]]\nname = 'app'\nservers = ['http://{address}']\n\
         [[route]]\npath = '/'\nupstream = 'app'\n"
    ));
    assert_eq!(answer_to_an_upload(&site).status, 413);
}

#[test]
fn so_is_one_for_something_that_takes_none() {
    let site = Site::start();
    let response = answer_to_an_upload(&site);
    assert_eq!(response.status, 405);
    assert!(!response.body.is_empty());
}

#[test]
fn so_is_a_head_that_is_too_long() {
    let site = Site::start();
    let mut client = site.connect();
    send_all(&mut client, "GET / HTTP/1.1\r\nhost: x\r\nlong: ");
    assert_eq!(client.response("GET").status, 431);
    assert!(client.is_closed());
}

/// A client that has its answer and could send on.
fn answered_early(site: &Site) -> Client {
    let mut client = site.connect();
    client.send("POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n");
    assert_eq!(client.response("POST").status, 405);
    client
}

#[test]
fn who_has_been_answered_makes_room_for_others() {
    let site = Site::start_with("[limits]\nconnections = 1");
    let _answered = answered_early(&site);
    assert_eq!(site.get("/a", "").status, 404);
}

#[test]
fn who_has_been_answered_counts_for_its_client() {
    let site = Site::start_with("[limits]\nconnections_per_address = 1");
    let _answered = answered_early(&site);
    let mut other = site.connect();
    let is_closed = match other.rest() {
        Ok(rest) => rest.is_empty(),
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    };
    assert!(is_closed, "one too many was let in");
}

#[test]
fn a_server_that_stops_does_not_wait_for_those_it_has_answered() {
    let mut site = Site::start_with("[limits]\ngrace_seconds = 60");
    let client = answered_early(&site);
    site.ask_to_stop();
    let mut pieces = 0;
    while !site.has_stopped() {
        // Fails when the server is gone.
        let _ = client.stream().write_all(b"x");
        std::thread::sleep(Duration::from_millis(10));
        pieces += 1;
        assert!(pieces < 1000, "it waits for a body that nobody wants");
    }
}
