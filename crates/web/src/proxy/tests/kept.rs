//! Connections that are kept for the next request, and closed by the server just as it comes.

use super::http2::{HEADERS, read_frame};
use super::queueing::spawn;
use super::reloading::a_moment;
use super::support::*;
use crate::proxy::{Failure, Standing};
use crate::request_body::RequestBody;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::cell::Cell;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

fn post() -> Request<RequestBody> {
    let mut request = get("/");
    *request.method_mut() = hyper::Method::POST;
    request
}

#[test]
fn a_request_that_meets_the_close_does_not_speak_against_the_server() {
    run(async {
        let (url, seen) = scripted(|number, _| match number % 2 {
            0 => ok("x"),
            _ => Reply::Close,
        })
        .await;
        let proxy = to(&[&url], "fails = 1");
        for round in 1..=3 {
            assert_eq!(ask(&proxy, get("/")).await.status, 200);
            // It is taken back when it is ready for the next one.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            let whole = ask(&proxy, post()).await;
            assert_eq!((whole.status, whole.report.tries), (502, 1));
            assert!(matches!(
                whole.report.failure,
                Some(Failure::ClosedWhileKept(_))
            ));
            assert!(whole.report.error().unwrap().contains("kept connection"));
            assert_eq!((seen.count(), seen.connections.get()), (2 * round, round));
        }
        let state = &proxy.states()[0];
        assert_eq!((state.failures, state.standing), (0, Standing::Up));
    });
}

#[test]
fn the_next_one_that_waits_goes_over_the_connection_that_was_used() {
    run(async {
        let (url, seen) = scripted(|_, _| ok("x")).await;
        let proxy = to(&[&url], "limit = 1");
        let all: Vec<_> = (0..20).map(|_| spawn(&proxy, "/")).collect();
        for one in all {
            assert_eq!(one.await.unwrap().status, 200);
        }
        assert_eq!((seen.count(), seen.connections.get()), (20, 1));
    });
}

#[test]
fn half_an_answer_does() {
    run(async {
        let (url, _) = scripted(|number, _| match number {
            0 => ok("x"),
            _ => Reply::Last(b"HTTP/1.1 20".to_vec()),
        })
        .await;
        let proxy = to(&[&url], "fails = 1");
        assert_eq!(ask(&proxy, get("/")).await.status, 200);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let whole = ask(&proxy, post()).await;
        assert!(matches!(whole.report.failure, Some(Failure::Closed(_))));
        assert_eq!(proxy.states()[0].failures, 1);
    });
}

async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// Answers one request on its first connection, and closes it when it has the head of another one;
/// answers all on further ones.
async fn closes_once() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    spawn_local(async move {
        let empty = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        let (mut first, _) = listener.accept().await.unwrap();
        read_head(&mut first).await;
        first.write_all(empty).await.unwrap();
        read_head(&mut first).await;
        drop(first);
        let (mut second, _) = listener.accept().await.unwrap();
        assert!(read_head(&mut second).await.starts_with("PUT "));
        let go_on = b"HTTP/1.1 100 Continue\r\n\r\n";
        second.write_all(go_on).await.unwrap();
        let mut body = [0; 4];
        second.read_exact(&mut body).await.unwrap();
        assert_eq!(&body, b"body");
        second.write_all(empty).await.unwrap();
        let _ = second.read_u8().await;
    });
    url
}

#[test]
fn a_body_of_which_nothing_was_taken_is_sent_anew() {
    run(async {
        let proxy = to(&[&closes_once().await], "fails = 1\nretries = 0");
        assert_eq!(ask(&proxy, get("/")).await.status, 200);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let (address, reports) = front(&proxy).await;
        let head = "PUT / HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n";
        let mut stream = client(address, head).await;
        assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 100 "));
        stream.write_all(b"body").await.unwrap();
        assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200 "));
        assert_eq!(reports.borrow()[0].lock().tries, 1);
        let state = &proxy.states()[0];
        assert_eq!((state.failures, state.retries, state.requests), (0, 1, 3));
    });
}

/// Reads frames of HTTP/2 until one that begins a request; `None` at the end of the connection.
async fn next_request(stream: &mut TcpStream) -> Option<()> {
    while read_frame(stream).await?.kind != HEADERS {}
    Some(())
}

const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0];
const STATUS_200: &[u8] = &[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88];

/// Speaks HTTP/2: answers the first request of every connection, says `then` to the second one, and
/// nothing to further ones.
async fn answers_once(then: &'static [u8], connections: Rc<Cell<u32>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("h2c://{}", listener.local_addr().unwrap());
    spawn_local(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            connections.set(connections.get() + 1);
            spawn_local(async move {
                let mut preface = [0; 24];
                stream.read_exact(&mut preface).await.unwrap();
                stream.write_all(SETTINGS).await.unwrap();
                next_request(&mut stream).await.unwrap();
                stream.write_all(STATUS_200).await.unwrap();
                if next_request(&mut stream).await.is_some() {
                    stream.write_all(then).await.unwrap();
                    while next_request(&mut stream).await.is_some() {}
                }
            });
        }
    });
    url
}

#[test]
fn what_a_server_over_http2_leaves_aside_is_asked_again_whatever_the_method() {
    const GO_AWAY_AFTER_1: &[u8] = &[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    run(async {
        let connections = Rc::<Cell<u32>>::default();
        let url = answers_once(GO_AWAY_AFTER_1, connections.clone()).await;
        let proxy = to(&[&url], "fails = 1");
        for _ in 0..2 {
            let whole = ask(&proxy, post()).await;
            assert_eq!((whole.status, whole.report.tries), (200, 1));
        }
        assert_eq!(connections.get(), 2);
        let state = &proxy.states()[0];
        assert_eq!((state.failures, state.retries), (0, 1));
    });
}

#[test]
fn a_connection_over_http2_that_is_silent_gets_no_further_request() {
    run(async {
        let connections = Rc::<Cell<u32>>::default();
        let url = answers_once(b"", connections.clone()).await;
        let proxy = to(&[&url], "response_seconds = 0.2");
        for (status, connected) in [(200, 1), (504, 1), (200, 2)] {
            let whole = ask(&proxy, get("/")).await;
            assert_eq!((whole.status, connections.get()), (status, connected));
        }
    });
}

/// A body that ends after its beginning, or never.
struct Beginning {
    data: Option<Bytes>,
    has_end: bool,
}

impl Body for Beginning {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.data.take() {
            Some(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
            None if self.has_end => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

/// Speaks HTTP/2, one request at a time on each connection; what it says to `/events` has no end.
async fn one_at_a_time(connections: Rc<Cell<u32>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("h2c://{}", listener.local_addr().unwrap());
    spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            connections.set(connections.get() + 1);
            let service = service_fn(|request: Request<Incoming>| async move {
                Ok::<_, Infallible>(Response::new(Beginning {
                    data: Some(Bytes::from_static(b"begins")),
                    has_end: request.uri().path() != "/events",
                }))
            });
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .max_concurrent_streams(1)
                .serve_connection(TokioIo::new(stream), service);
            spawn_local(async move { drop(connection.await) });
        }
    });
    url
}

#[test]
fn another_connection_over_http2_is_opened_where_one_takes_no_more_requests() {
    run(async {
        let connections = Rc::<Cell<u32>>::default();
        let url = one_at_a_time(connections.clone()).await;
        let proxy = to(&[&url], "fails = 1\nretries = 0\nresponse_seconds = 2");
        let mut streams = Vec::new();
        for connected in 1..=3 {
            streams.push(forward(&proxy, get("/events")).await);
            assert_eq!(streams.last().unwrap().response.status, 200);
            assert_eq!(connections.get(), connected);
            for path in ["/a", "/b"] {
                assert_eq!(ask(&proxy, get(path)).await.text(), "begins");
                assert_eq!(connections.get(), connected + 1, "{path}");
            }
        }
        assert_eq!(proxy.states()[0].failures, 0);
        // What has room again is used first.
        drop(streams);
        a_moment().await;
        assert_eq!(ask(&proxy, get("/c")).await.text(), "begins");
        assert_eq!(connections.get(), 4);
    });
}
