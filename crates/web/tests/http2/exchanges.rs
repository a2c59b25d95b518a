//! Requests and answers as a library's client makes and gets them.

use super::frames::{DATA, GOAWAY, HEADERS, PING, RawClient, STATUS_200};
use super::support::Site;
use bytes::Bytes;
use h2::client::{self, SendRequest};
use hyper::{HeaderMap, Method, Request};
use tokio::net::TcpStream;

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
    /// Whether the head was all of it.
    ended_with_head: bool,
}

/// Runs `test` with a connection to `site`.
fn with_client<F: Future<Output = ()>>(site: &Site, test: impl FnOnce(SendRequest<Bytes>) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let socket = TcpStream::connect(site.address).await.unwrap();
        let (client, connection) = client::handshake(socket).await.unwrap();
        let driving = tokio::spawn(connection);
        test(client).await;
        driving.abort();
    });
}

async fn ask(
    client: &mut SendRequest<Bytes>,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<Bytes>,
) -> Answer {
    let mut request = Request::builder()
        .method(method)
        .uri(format!("http://localhost{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(()).unwrap();
    let (response, mut stream) = client.send_request(request, body.is_none()).unwrap();
    if let Some(body) = body {
        stream.send_data(body, true).unwrap();
    }
    let (head, mut incoming) = response.await.unwrap().into_parts();
    let ended_with_head = incoming.is_end_stream();
    let mut body = Vec::new();
    while let Some(piece) = incoming.data().await {
        let piece = piece.unwrap();
        incoming
            .flow_control()
            .release_capacity(piece.len())
            .unwrap();
        body.extend_from_slice(&piece);
    }
    Answer {
        status: head.status.as_u16(),
        headers: head.headers,
        body,
        ended_with_head,
    }
}

async fn get(client: &mut SendRequest<Bytes>, path: &str, headers: &[(&str, &str)]) -> Answer {
    ask(client, Method::GET, path, headers, None).await
}

#[test]
fn files_come_whole_and_in_part() {
    let site = Site::start();
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    site.write("large", &large);
    site.write("empty", "");
    with_client(&site, |mut client| async move {
        let whole = get(&mut client, "/large", &[]).await;
        assert_eq!((whole.status, whole.body == large), (200, true));
        assert_eq!(whole.headers["content-length"], "3000000");
        assert!(whole.headers.contains_key("date"));
        let part = get(&mut client, "/large", &[("range", "bytes=100-199")]).await;
        assert_eq!((part.status, &part.body[..]), (206, &large[100..200]));
        let empty = get(&mut client, "/empty", &[]).await;
        assert_eq!((empty.status, empty.ended_with_head), (200, true));
        let etag = whole.headers["etag"].to_str().unwrap();
        let unchanged = get(&mut client, "/large", &[("if-none-match", etag)]).await;
        assert_eq!((unchanged.status, unchanged.ended_with_head), (304, true));
        let missing = get(&mut client, "/missing", &[]).await;
        assert_eq!(missing.status, 404);
    });
}

#[test]
fn a_head_says_what_a_get_would_and_has_no_body() {
    let site = Site::start();
    site.write("a", "hello");
    with_client(&site, |mut client| async move {
        let head = ask(&mut client, Method::HEAD, "/a", &[], None).await;
        assert_eq!((head.status, head.ended_with_head), (200, true));
        assert_eq!(head.headers["content-length"], "5");
    });
}

#[test]
fn bodies_nobody_wants_do_not_end_the_connection() {
    let site = Site::start();
    site.write("a", "hello");
    with_client(&site, |mut client| async move {
        for _ in 0..50 {
            let body = Some(Bytes::from(vec![0; 30_000]));
            let refused = ask(&mut client, Method::POST, "/a", &[], body).await;
            assert_eq!(refused.status, 405);
        }
        assert_eq!(get(&mut client, "/a", &[]).await.body, b"hello");
    });
}

#[test]
fn there_are_no_tunnels() {
    let site = Site::start();
    with_client(&site, |mut client| async move {
        let request = Request::builder()
            .method(Method::CONNECT)
            .uri("example.org:443")
            .body(())
            .unwrap();
        let (response, _stream) = client.send_request(request, false).unwrap();
        assert_eq!(response.await.unwrap().status(), 501);
    });
}

#[test]
fn a_hundred_requests_at_once_are_answered() {
    let site = Site::start();
    site.write("a", vec![b'a'; 20_000]);
    with_client(&site, |client| async move {
        let asking = (0..100).map(|_| {
            let mut client = client.clone();
            tokio::spawn(async move { get(&mut client, "/a", &[]).await.body.len() })
        });
        for answer in asking.collect::<Vec<_>>() {
            assert_eq!(answer.await.unwrap(), 20_000);
        }
    });
}

#[test]
fn a_file_that_shrinks_while_it_is_sent_ends_its_stream_only() {
    let site = Site::start();
    site.write("large", vec![b'a'; 5_000_000]);
    site.write("a", "hello");
    let path = site.path("large");
    with_client(&site, |mut client| async move {
        let request = Request::get("http://localhost/large").body(()).unwrap();
        let (response, _) = client.send_request(request, true).unwrap();
        let mut incoming = response.await.unwrap().into_body();
        assert!(incoming.data().await.unwrap().is_ok());
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_len(1000).unwrap();
        let mut got = 0;
        let error = loop {
            match incoming.data().await.expect("not as if it were whole") {
                Ok(piece) => {
                    got += piece.len();
                    incoming
                        .flow_control()
                        .release_capacity(piece.len())
                        .unwrap();
                }
                Err(error) => break error,
            }
        };
        assert!(got < 5_000_000);
        assert_eq!(error.reason(), Some(h2::Reason::INTERNAL_ERROR));
        assert_eq!(get(&mut client, "/a", &[]).await.body, b"hello");
    });
}

#[test]
fn at_the_stop_requests_that_were_taken_are_answered() {
    let mut site = Site::start_ordered();
    site.write("a", vec![b'a'; 500_000]);
    let mut client = RawClient::connect(site.address, &[(4, 1 << 24)]);
    client.open_window(0, 1 << 24);
    client.get(1, "/a", &[]);
    assert_eq!(client.read_until(HEADERS).payload[0], STATUS_200);
    site.ask_to_stop();
    let mut got = 0;
    let mut is_told = false;
    while let Some(frame) = client.read() {
        match frame.kind {
            DATA => got += frame.payload.len(),
            GOAWAY => {
                assert_eq!(frame.error(), 0);
                is_told = true;
            }
            PING => client.send(PING, 1, 0, &frame.payload),
            _ => {}
        }
    }
    assert!(is_told);
    assert_eq!(got, 500_000);
}

#[test]
fn idle_connections_end_at_the_stop() {
    let mut site = Site::start();
    let mut client = RawClient::connect(site.address, &[]);
    assert!(client.is_silent());
    site.ask_to_stop();
    assert_eq!(client.read_until(GOAWAY).error(), 0);
    let ping = client.read_until(PING);
    client.send(PING, 1, 0, &ping.payload);
    while client.read().is_some() {}
}
