//! Servers over HTTP/2, frame by frame.

use super::support::*;
use crate::proxy::upload::Upload;
use crate::proxy::upstream_connection::{UpstreamConnection, handshake};
use crate::request_body::{BodyError, RequestBody};
use bytes::Bytes;
use hyper::body::{Body, Frame};
use hyper::{Method, Request};
use sooner_http::forwarding::request::Protocol;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::TcpListener;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::Instant;

const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// As many requests at once as these tests make.
const MANY_STREAMS: &[u8] = &[0, 3, 0, 0, 0xff, 0xff];
/// `:status: 200` (RFC 7541, Appendix A).
const STATUS_200: u8 = 0x88;

/// A frame as it came.
#[derive(Debug)]
pub struct RawFrame {
    pub kind: u8,
    stream: u32,
    payload: Vec<u8>,
}

/// The next frame; `None` at the end of the connection.
pub async fn read_frame(stream: &mut (impl AsyncRead + Unpin)) -> Option<RawFrame> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; length as usize];
    stream.read_exact(&mut payload).await.ok()?;
    Some(RawFrame {
        kind: head[3],
        stream: u32::from_be_bytes(head[5..].try_into().unwrap()),
        payload,
    })
}

/// The next frame of this kind.
async fn read_until(stream: &mut (impl AsyncRead + Unpin), kind: u8) -> RawFrame {
    loop {
        let frame = read_frame(stream).await.expect("the connection ended");
        if frame.kind == kind {
            return frame;
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// The head of a response that goes on.
fn head(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &[STATUS_200])
}

/// Begins to speak as a server.
async fn greet(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await.unwrap();
    let settings = frame(SETTINGS, 0, 0, MANY_STREAMS);
    stream.write_all(&settings).await.unwrap();
    stream
        .write_all(&frame(SETTINGS, ACK, 0, b""))
        .await
        .unwrap();
}

/// A server that answers the first request of each connection by these frames.
async fn saying(frames: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("h2c://{}", listener.local_addr().unwrap());
    spawn_local(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let frames = frames.clone();
            spawn_local(async move {
                greet(&mut stream).await;
                read_until(&mut stream, HEADERS).await;
                stream.write_all(&frames).await.unwrap();
                while read_frame(&mut stream).await.is_some() {}
            });
        }
    });
    url
}

/// A body of which nothing comes.
struct Silence;

impl Body for Silence {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Pending
    }
}

/// An upload that has not come to its end.
fn unfinished() -> Request<RequestBody> {
    let mut request = get("/").map(|_| RequestBody::Tested(Box::pin(Silence)));
    *request.method_mut() = Method::POST;
    request
}

/// RST_STREAM with NO_ERROR for the first request.
fn no_more() -> Vec<u8> {
    frame(RST_STREAM, 0, 1, &[0; 4])
}

#[test]
fn a_response_that_is_reset_before_its_end_is_broken_off() {
    let begun = [head(1), frame(DATA, 0, 1, b"beg")].concat();
    for frames in [[begun, no_more()].concat(), [head(1), no_more()].concat()] {
        run(async {
            let proxy = to(&[&saying(frames).await], "retries = 0");
            let whole = ask(&proxy, get("/")).await;
            let cut = whole.body.expect_err("it is passed on as whole");
            assert!(cut.to_string().contains("reset before its end"), "{cut}");
            assert_eq!(proxy.states()[0].failures, 1);
        });
    }
}

#[test]
fn one_that_is_reset_behind_its_end_is_whole() {
    // With its length, and no other end.
    let with_length = [STATUS_200, 0x0f, 0x0d, 1, b'3'];
    let with_length = frame(HEADERS, END_HEADERS, 1, &with_length);
    for (head, flags) in [(head(1), END_STREAM), (with_length, 0)] {
        let frames = [head, frame(DATA, flags, 1, b"all"), no_more()].concat();
        for request in [get("/"), unfinished()] {
            run(async {
                let proxy = to(&[&saying(frames.clone()).await], "retries = 0");
                assert_eq!(ask(&proxy, request).await.text(), "all");
                assert_eq!(proxy.states()[0].failures, 0);
            });
        }
    }
}

/// A connection and the server's end of it.
async fn connected() -> (UpstreamConnection, DuplexStream) {
    let (near, mut far) = duplex(1 << 20);
    let begun = handshake(Box::new(near), Protocol::Http2);
    let (connection, ()) = tokio::join!(begun, greet(&mut far));
    (connection.unwrap(), far)
}

fn request() -> Request<Upload> {
    let request = Request::builder().uri("http://h/");
    request.body(Upload::empty()).unwrap()
}

/// Whether a request on `connection` gets a response.
async fn is_answered(connection: &UpstreamConnection, far: &mut DuplexStream) -> bool {
    let mut handle = connection.share().unwrap();
    let answering = async {
        let stream = read_until(far, HEADERS).await.stream;
        far.write_all(&head(stream)).await.unwrap();
    };
    let (sent, ()) = tokio::join!(handle.send(request()), answering);
    sent.is_ok()
}

/// Runs `test` with a clock that jumps over every wait.
fn run_at_once(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, test);
}

/// As often as servers of gRPC allow; they end the connections of clients that do it more often.
#[test]
fn a_silent_response_is_pinged_once_in_five_minutes() {
    run_at_once(async {
        let (connection, mut far) = connected().await;
        let mut handle = connection.share().unwrap();
        let answering = async {
            read_until(&mut far, HEADERS).await;
            far.write_all(&head(1)).await.unwrap();
        };
        let (response, ()) = tokio::join!(handle.send(request()), answering);
        let _response = response.ok().expect("a response");
        for _ in 0..2 {
            let began = Instant::now();
            let ping = read_until(&mut far, PING).await;
            assert!(began.elapsed() > Duration::from_secs(300));
            let pong = frame(PING, ACK, 0, &ping.payload);
            far.write_all(&pong).await.unwrap();
        }
        // Where no answer comes, the connection ends.
        read_until(&mut far, PING).await;
        let began = Instant::now();
        while read_frame(&mut far).await.is_some() {}
        assert!(began.elapsed() < Duration::from_secs(60));
    });
}

#[test]
fn heads_behind_cancelled_requests_use_nothing_up() {
    const REQUESTS: usize = 1200;
    run(async {
        let (connection, mut far) = connected().await;
        let sending: Vec<_> = (0..REQUESTS)
            .map(|_| {
                let mut handle = connection.share().unwrap();
                spawn_local(async move { handle.send(request()).await.is_ok() })
            })
            .collect();
        let mut streams = Vec::new();
        while streams.len() < REQUESTS {
            streams.push(read_until(&mut far, HEADERS).await.stream);
        }
        sending.iter().for_each(|task| task.abort());
        for _ in &streams {
            read_until(&mut far, RST_STREAM).await;
        }
        // The server had answered them before it heard that.
        for stream in streams {
            far.write_all(&head(stream)).await.unwrap();
        }
        assert!(is_answered(&connection, &mut far).await);
    });
}

#[test]
fn responses_of_small_frames_that_no_client_takes_end_no_connection() {
    const RESPONSES: usize = 24;
    const FRAME_BYTES: usize = 50;
    // As many as a stream's window takes.
    const FRAMES: usize = (128 << 10) / FRAME_BYTES;
    run(async {
        let (connection, mut far) = connected().await;
        let mut untaken = Vec::new();
        for _ in 0..RESPONSES {
            let mut handle = connection.share().unwrap();
            let answering = async {
                let stream = read_until(&mut far, HEADERS).await.stream;
                far.write_all(&head(stream)).await.unwrap();
                let piece = frame(DATA, 0, stream, &[b'x'; FRAME_BYTES]);
                far.write_all(&piece.repeat(FRAMES)).await.unwrap();
            };
            let (response, ()) = tokio::join!(handle.send(request()), answering);
            untaken.push(response.ok().expect("a response"));
        }
        assert!(is_answered(&connection, &mut far).await);
    });
}
