//! Signs of life for clients that wait for an event stream.

use super::queueing::waiting;
use super::support::*;
use crate::body::Source;
use crate::proxy::{Failure, Proxy};
use crate::request_body::{BodyError, RequestBody};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::header::HeaderValue;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::spawn_local;

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
                      x-of-server: 1\r\ntransfer-encoding: chunked\r\n\r\n";
const EVENTS: &str = "f\r\ndata: 1\n\ndata: \r\n3\r\n2\n\n\r\n0\r\n\r\n";
const ASKED: &str = "GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\naccept-encoding: gzip\r\n\
                     accept: text/event-stream\r\n\r\n";
/// Of upstreams that comment soon.
pub(super) const SOON: Duration = Duration::from_millis(20);

/// One place before `url`, with comments after `period`.
pub(super) fn commented(url: &str, period: Duration, keys: &str) -> Rc<Proxy> {
    let proxy = to(
        &[url],
        &format!("limit = 1\ntell_wait = ['stream']\n{keys}"),
    );
    proxy.upstreams[0].comment_period.set(period);
    proxy
}

/// An upstream that answers its first request when it is let go, and all others by `script`.
pub(super) async fn held(script: impl Fn() -> Reply + 'static) -> (String, ScriptedRequests) {
    scripted(move |number, _| match number {
        0 => Reply::SendThenWait(Vec::new(), b"HTTP/1.1 204 No\r\n\r\n".to_vec()),
        _ => script(),
    })
    .await
}

/// Takes the one place.
pub(super) async fn take_place(proxy: &Rc<Proxy>, seen: &ScriptedRequests) {
    let proxy = proxy.clone();
    spawn_local(async move { ask(&proxy, get("/held")).await });
    until(|| seen.count() == 1).await;
}

fn stream_of(events: &str) -> Reply {
    Reply::Send(format!("{STREAM}{events}").into_bytes())
}

/// What `stream` says until `text` has come `times` times.
async fn read_until(stream: &mut TcpStream, text: &str, times: usize) -> String {
    let mut all = Vec::new();
    while String::from_utf8_lossy(&all).matches(text).count() < times {
        let mut piece = [0; 1024];
        let bytes = stream.read(&mut piece).await.unwrap();
        assert!(bytes > 0, "ended after {}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&piece[..bytes]);
    }
    String::from_utf8(all).unwrap()
}

/// A client of which the response has begun with comments.
pub(super) async fn begun(address: SocketAddr, request: &str) -> (TcpStream, String) {
    let mut stream = client(address, request).await;
    let said = read_until(&mut stream, ": waiting for ", 2).await;
    (stream, said)
}

/// The data of a body in chunks, and whether it has its end.
fn unchunked(mut chunks: &str) -> (String, bool) {
    let mut data = String::new();
    while let Some((length, rest)) = chunks.split_once("\r\n") {
        let bytes = usize::from_str_radix(length, 16).unwrap();
        if bytes == 0 {
            return (data, true);
        }
        data += &rest[..bytes];
        chunks = &rest[bytes + 2..];
    }
    (data, false)
}

/// All of a response that has begun, from its head on: the head, and what follows the comments.
async fn ended(stream: TcpStream, said: String) -> (String, String, bool) {
    let all = said + &rest(stream).await;
    let (head, chunks) = all.split_once("\r\n\r\n").unwrap();
    let (data, is_whole) = unchunked(chunks);
    let blocks = data.split_inclusive("\n\n");
    let after: Vec<&str> = blocks.skip_while(|block| block.starts_with(": ")).collect();
    (head.to_lowercase(), after.concat(), is_whole)
}

#[test]
fn a_stream_follows_comments_as_it_is() {
    run(async {
        let (url, seen) = held(|| stream_of(EVENTS)).await;
        let proxy = commented(&url, SOON, "");
        take_place(&proxy, &seen).await;
        let (address, reports) = front(&proxy).await;
        let (stream, said) = begun(address, ASKED).await;
        assert!(reports.borrow()[0].lock().answered_at.is_none());
        seen.let_go.set(1);
        let (head, events, is_whole) = ended(stream, said).await;
        assert_eq!(
            (events.as_str(), is_whole),
            ("data: 1\n\ndata: 2\n\n", true)
        );
        assert!(head.starts_with("http/1.1 200 ok\r\n"), "{head}");
        for field in ["content-type: text/event-stream", "cache-control: no-cache"] {
            assert!(head.contains(&format!("\r\n{field}\r\n")), "{head}");
        }
        assert!(!head.contains("x-of-server"), "{head}");
        let told = seen.lines(1);
        assert!(
            told.contains(&"accept-encoding: identity".into()),
            "{told:?}"
        );
        let report = reports.borrow()[0].lock().clone();
        assert!(report.wait_ns >= SOON.as_nanos() as u64 && report.answered_at.is_some());
        assert_eq!(
            (report.tries, report.server.as_deref()),
            (1, Some(&url[..]))
        );
        assert_eq!(report.error(), None);
    });
}

#[test]
fn who_goes_in_before_a_comment_is_due_gets_what_the_server_says() {
    run(async {
        let (url, seen) = held(|| text("HTTP/1.1 429 No\r\ncontent-length: 2\r\n\r\nno")).await;
        let proxy = commented(&url, Duration::from_secs(20), "");
        take_place(&proxy, &seen).await;
        let (address, _) = front(&proxy).await;
        let stream = client(address, ASKED).await;
        until(|| waiting(&proxy) == 1).await;
        seen.let_go.set(1);
        let said = rest(stream).await;
        assert!(said.starts_with("HTTP/1.1 429 "), "{said}");
        assert!(said.ends_with("\r\n\r\nno"), "{said}");
        assert!(seen.lines(1).contains(&"accept-encoding: gzip".into()));
    });
}

#[test]
fn a_server_that_is_slow_to_answer_is_not_commented() {
    run(async {
        let (url, seen) = scripted(|_, _| {
            let answer = "HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n";
            Reply::SendThenWait(Vec::new(), answer.into())
        })
        .await;
        let proxy = commented(&url, SOON, "");
        let (address, _) = front(&proxy).await;
        let stream = client(address, ASKED).await;
        until(|| seen.count() == 1).await;
        tokio::time::sleep(SOON * 4).await;
        seen.let_go.set(1);
        assert!(rest(stream).await.starts_with("HTTP/1.1 503 "));
    });
}

/// The event that follows comments where the server answers so, and the failure in the log.
async fn event_after(reply: impl Fn() -> Reply + 'static) -> (String, Option<Failure>) {
    let (url, seen) = held(reply).await;
    let proxy = commented(&url, SOON, "retries = 0");
    take_place(&proxy, &seen).await;
    let (address, reports) = front(&proxy).await;
    let (stream, said) = begun(address, ASKED).await;
    seen.let_go.set(1);
    let (_, event, is_whole) = ended(stream, said).await;
    assert!(is_whole);
    until(|| proxy.states()[0].inside == 0).await;
    let failure = reports.borrow()[0].lock().failure.clone();
    (event, failure)
}

#[test]
fn what_is_no_stream_becomes_an_event() {
    run(async {
        let error = "the server behind this one answered with an error";
        let none = "the server behind this one answered with no event stream";
        let packed = "the server behind this one answered with a compressed event stream";
        let event = |status: u16, message: &str, body: &str| {
            let error = format!(r#"{{"message":"{message}","code":{status}{body}}}"#);
            let said = format!(r#""status":{status},"message":"{message}","error":{error}"#);
            format!("event: error\nretry: 60000\ndata: {{{said}}}\n\n")
        };
        let answers = [
            (
                "400 No\r\ncontent-length: 4\r\n\r\na\n\"b",
                400,
                r#","body":"a\n\"b""#,
            ),
            ("500 No\r\ncontent-length: 0\r\n\r\n", 500, ""),
            (
                "200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
                502,
                r#","body":"{}""#,
            ),
            (
                "200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n\
                 content-length: 2\r\n\r\nxy",
                502,
                "",
            ),
            ("204 No\r\n\r\n", 502, ""),
        ];
        for (answer, status, body) in answers {
            let (said, failure) = event_after(move || text(&format!("HTTP/1.1 {answer}"))).await;
            let (message, expected) = match answer.contains("gzip") {
                true => (packed, Failure::Compressed),
                false if status == 502 => (none, Failure::Unfit(answer[..3].parse().unwrap())),
                false => (error, Failure::Unfit(answer[..3].parse().unwrap())),
            };
            assert_eq!(said, event(status, message, body), "{answer}");
            assert_eq!(failure, Some(expected), "{answer}");
        }
        let (said, failure) = event_after(|| Reply::Close).await;
        let message = "the server behind this one ended the connection";
        assert_eq!(said, event(502, message, ""));
        assert!(matches!(failure, Some(Failure::Closed(_))), "{failure:?}");
    });
}

#[test]
fn an_answer_too_long_to_be_told_frees_its_place() {
    run(async {
        let long = "x".repeat(1 << 20);
        let (said, _) = event_after(move || {
            let length = long.len();
            text(&format!(
                "HTTP/1.1 500 No\r\ncontent-length: {length}\r\n\r\n{long}"
            ))
        })
        .await;
        assert!(said.contains(r#""code":500}}"#), "{} bytes", said.len());
    });
}

#[test]
fn who_waits_for_too_long_hears_of_it_in_an_event() {
    run(async {
        let (url, seen) = held(|| Reply::Close).await;
        let proxy = commented(&url, SOON, "queue_seconds = 1.5");
        take_place(&proxy, &seen).await;
        let (address, reports) = front(&proxy).await;
        let (stream, said) = begun(address, ASKED).await;
        let (head, event, is_whole) = ended(stream, said).await;
        assert!(head.starts_with("http/1.1 200 ok") && is_whole);
        assert!(
            event.starts_with("event: error\nretry: 60000\ndata: {\"status\":503,"),
            "{event}"
        );
        let report = reports.borrow()[0].lock().clone();
        assert!(matches!(report.failure, Some(Failure::QueuedTooLong(_))));
        assert_eq!((waiting(&proxy), report.tries, seen.count()), (0, 0, 1));
    });
}

#[test]
fn a_client_that_leaves_among_comments_leaves_the_queue_and_the_server() {
    run(async {
        let (url, seen) = held(|| Reply::Hang).await;
        let proxy = commented(&url, SOON, "");
        take_place(&proxy, &seen).await;
        let (address, reports) = front(&proxy).await;
        let (leaving, _) = begun(address, ASKED).await;
        assert_eq!(waiting(&proxy), 1);
        drop(leaving);
        until(|| waiting(&proxy) == 0).await;
        let left = reports.borrow()[0].lock().error();
        assert_eq!(
            left.as_deref(),
            Some("the client left before there was an answer")
        );
        let (mut inside, _) = begun(address, ASKED).await;
        seen.let_go.set(1);
        // Comments go on while the server is silent.
        read_until(&mut inside, ": sent to the server, waiting for ", 2).await;
        assert_eq!((seen.count(), proxy.states()[0].inside), (2, 1));
        let open = seen.open.get();
        drop(inside);
        until(|| proxy.states()[0].inside == 0 && seen.open.get() < open).await;
        assert_eq!(proxy.states()[0].failures, 0);
    });
}

#[test]
fn a_stream_that_breaks_off_has_no_end() {
    run(async {
        let (url, seen) = held(|| Reply::Last(format!("{STREAM}3\r\nda").into_bytes())).await;
        let proxy = commented(&url, SOON, "");
        take_place(&proxy, &seen).await;
        let (address, _) = front(&proxy).await;
        let (stream, said) = begun(address, ASKED).await;
        seen.let_go.set(1);
        let all = said + &rest(stream).await;
        assert!(!all.ends_with("0\r\n\r\n"), "{all}");
    });
}

#[test]
fn a_client_that_takes_nothing_holds_one_comment() {
    run(async {
        let (url, seen) = held(|| stream_of(EVENTS)).await;
        let proxy = commented(&url, SOON, "");
        take_place(&proxy, &seen).await;
        let mut asked = get("/");
        let accept = HeaderValue::from_static("text/event-stream");
        asked.headers_mut().insert("accept", accept);
        let forwarded = forward(&proxy, asked).await;
        tokio::time::sleep(SOON * 5).await;
        seen.let_go.set(1);
        until(|| proxy.states()[0].inside == 0 && waiting(&proxy) == 0).await;
        let all = SourceBody(forwarded.response.source)
            .collect()
            .await
            .unwrap();
        let all = String::from_utf8(all.to_bytes().to_vec()).unwrap();
        let (comment, events) = all.split_once("\n\n").unwrap();
        assert!(comment.ends_with(" s; others waiting: 0"), "{comment}");
        assert_eq!(events, "data: 1\n\ndata: 2\n\n");
    });
}

/// nginx in between sends no more of it when the response has begun.
#[test]
fn a_request_that_is_not_here_to_its_end_gets_no_comments() {
    run(async {
        let (url, seen) = held(|| stream_of(EVENTS)).await;
        let proxy = commented(&url, SOON, "[proxy]\nlook_bytes = 64");
        take_place(&proxy, &seen).await;
        let (address, _) = front(&proxy).await;
        let body = format!(r#"{{"stream":true,"x":"{}"}}"#, "y".repeat(1 << 16));
        let length = body.len();
        let head = "POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n";
        let (beginning, end) = body.split_at(length / 2);
        let asked = format!("{head}content-length: {length}\r\n\r\n{beginning}");
        let mut stream = client(address, &asked).await;
        until(|| proxy.states()[0].waiting == 1).await;
        tokio::time::sleep(5 * SOON).await;
        seen.let_go.set(1);
        stream.write_all(end.as_bytes()).await.unwrap();
        let all = rest(stream).await;
        assert!(all.to_lowercase().contains(EVENTS), "{all}");
        assert!(!all.contains(": waiting"), "{all}");
        assert!(seen.request(1).ends_with(&body));
    });
}

#[test]
fn over_http_1_0_the_stream_ends_with_its_connection() {
    run(async {
        let (url, seen) = held(|| stream_of(EVENTS)).await;
        let proxy = commented(&url, SOON, "");
        take_place(&proxy, &seen).await;
        let (address, _) = front(&proxy).await;
        let asked = "GET / HTTP/1.0\r\nhost: h\r\naccept: text/event-stream\r\n\r\n";
        let (stream, said) = begun(address, asked).await;
        seen.let_go.set(1);
        let all = said + &rest(stream).await;
        let (head, body) = all.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.0 200 OK\r\n"), "{head}");
        assert!(!head.to_lowercase().contains("chunked"), "{head}");
        assert!(
            body.ends_with("waiting: 0\n\ndata: 1\n\ndata: 2\n\n"),
            "{body}"
        );
    });
}

/// A request with these fields and this body.
fn asking(
    method: &str,
    fields: &[(&'static str, &'static str)],
    body: &str,
) -> Request<RequestBody> {
    let body = match body {
        "" => RequestBody::Empty,
        text => {
            let body = Full::new(Bytes::from(text.to_owned()));
            RequestBody::Tested(Box::pin(body.map_err(BodyError::from)))
        }
    };
    let mut request = Request::builder()
        .method(method)
        .uri("/")
        .header("host", "h");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(body).unwrap()
}

#[test]
fn who_waits_for_an_event_stream_and_nothing_else_gets_comments() {
    run(async {
        let (url, seen) = held(|| Reply::Hang).await;
        let proxy = commented(&url, SOON, "");
        take_place(&proxy, &seen).await;
        let events = ("accept", "text/event-stream");
        let json = ("accept", "application/json");
        let stream = r#"{"model":"m","stream":true}"#;
        let some = [
            asking("GET", &[events], ""),
            asking(
                "POST",
                &[("accept", "*/*;q=0.1, Text/Event-Stream;q=1")],
                "x",
            ),
            asking("POST", &[json], stream),
            asking("POST", &[json, ("expect", "100-continue")], stream),
        ];
        let packed = ("content-encoding", "gzip");
        let others = [
            asking("GET", &[], ""),
            asking("HEAD", &[events], ""),
            asking("GET", &[events, ("upgrade", "websocket")], ""),
            // A server that speaks the Model Context Protocol may answer with either.
            asking(
                "POST",
                &[("accept", "application/json, text/event-stream")],
                "{}",
            ),
            asking("POST", &[json], r#"{"stream":false}"#),
            asking("POST", &[events], r#"{"stream":false}"#),
            asking("POST", &[json, packed], stream),
            // What it has was not asked for yet.
            asking(
                "POST",
                &[events, packed, ("expect", "100-continue")],
                stream,
            ),
        ];
        let spawn = |request| spawn_local(forward(&proxy, request));
        let (some, others) = (some.map(spawn), others.map(spawn));
        let mut bodies = Vec::new();
        for one in some {
            let response = one.await.unwrap().response;
            assert_eq!(response.status, 200);
            bodies.push(response.source);
        }
        assert_eq!(waiting(&proxy), 12);
        tokio::time::sleep(SOON * 4).await;
        let began = others.iter().map(|other| other.is_finished());
        assert_eq!(began.collect::<Vec<_>>(), [false; 8]);
        others.iter().for_each(|other| other.abort());
        assert!(bodies.iter().all(|body| matches!(body, Source::Stream(_))));
        drop(bodies);
        until(|| waiting(&proxy) == 0).await;
    });
}

#[test]
fn without_the_word_there_are_no_comments() {
    run(async {
        let (url, seen) = held(|| ok("later")).await;
        let proxy = to(&[&url], "limit = 1\ntell_wait = ['client', 'server']");
        assert_eq!(proxy.upstreams[0].settings().tell_wait.stream, None);
        take_place(&proxy, &seen).await;
        let asked = asking("GET", &[("accept", "text/event-stream")], "");
        let waits = spawn_local(forward(&proxy, asked));
        until(|| waiting(&proxy) == 1).await;
        seen.let_go.set(1);
        let forwarded = waits.await.unwrap();
        assert!(!forwarded.report.lock().is_commented);
        assert!(forwarded.response.headers.contains_key("server-timing"));
    });
}
