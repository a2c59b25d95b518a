//! How long a response is, by every way an upstream can say it.

use super::support::*;
use crate::proxy::Failure;

/// Status, `Content-Length` and body of what a client gets when the upstream says `response` and
/// closes.
async fn seen_as(method: &str, response: &str) -> (u16, Option<String>, Option<String>) {
    let bytes = response.as_bytes().to_vec();
    let (url, _) = scripted(move |_, _| Reply::Last(bytes.clone())).await;
    let mut request = get("/");
    *request.method_mut() = method.parse().unwrap();
    let whole = ask(&to(&[&url], "retries = 0"), request).await;
    let length = whole.headers.get("content-length");
    let length = length.map(|length| length.to_str().unwrap().to_owned());
    let body = whole
        .body
        .ok()
        .map(|body| String::from_utf8(body.to_vec()).unwrap());
    (whole.status, length, body)
}

#[test]
fn every_framing_arrives_as_what_it_means() {
    run(async {
        let hi = |length: Option<&str>| (200, length.map(str::to_owned), Some("hi".to_owned()));
        let get = |response| seen_as("GET", response);
        assert_eq!(
            get("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await,
            hi(Some("2"))
        );
        assert_eq!(
            get("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;ext=1\r\nh\r\n1\r\ni\r\n0\r\n\r\n").await,
            hi(None)
        );
        assert_eq!(get("HTTP/1.1 200 OK\r\n\r\nhi").await, hi(None));
        assert_eq!(get("HTTP/1.0 200 OK\r\n\r\nhi").await, hi(None));
        // What comes after a response belongs to no request.
        assert_eq!(
            get("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\n\r\n").await,
            hi(Some("2"))
        );
        let empty = Some(String::new());
        assert_eq!(
            seen_as("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n").await,
            (200, Some("2".into()), empty.clone())
        );
        assert_eq!(
            get("HTTP/1.1 304 Not Modified\r\ncontent-length: 2\r\netag: x\r\n\r\n").await,
            (304, None, empty.clone())
        );
        assert_eq!(
            get("HTTP/1.1 204 No Content\r\n\r\n").await,
            (204, None, empty)
        );
    });
}

#[test]
fn a_response_that_could_be_read_in_two_ways_is_no_response() {
    run(async {
        let long = format!(
            "HTTP/1.1 200 OK\r\nx: {}\r\ncontent-length: 0\r\n\r\n",
            "y".repeat(40 << 10)
        );
        for response in [
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\ncontent-length: +2\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\ncontent-length: 2 2\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: identity, chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx: a\r\n b\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nbad name: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx : y\r\n\r\n",
            "HTTP/1.1 99999 OK\r\n\r\n",
            "HTTP/9.9 200 OK\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
            "hello\r\n\r\n",
            long.as_str(),
        ] {
            let bytes = response.as_bytes().to_vec();
            let (url, _) = scripted(move |_, _| Reply::Last(bytes.clone())).await;
            let whole = ask(&to(&[&url], "retries = 0"), get("/")).await;
            let start = response.get(..60).unwrap_or(response);
            assert_eq!(whole.status, 502, "{start}");
            let failure = whole.report.failure.unwrap();
            assert!(
                matches!(failure, Failure::Unreadable(_) | Failure::BadResponse(_)),
                "{start}: {failure}"
            );
        }
    });
}

#[test]
fn trailers_of_chunks_come_through() {
    run(async {
        let (url, _) = scripted(|_, _| {
            text(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n\
                 2\r\nhi\r\n0\r\nx-sum: 7\r\ncontent-length: 9\r\n\r\n",
            )
        })
        .await;
        let whole = ask(&to(&[&url], ""), get("/")).await;
        assert_eq!(whole.text(), "hi");
        assert_eq!(whole.headers["trailer"], "x-sum");
        let trailers = whole.trailers.unwrap();
        assert_eq!(trailers["x-sum"], "7");
        assert_eq!(trailers.len(), 1);
    });
}

#[test]
fn trailers_of_a_request_come_through() {
    run(async {
        let (url, seen) = scripted(|_, _| ok("")).await;
        let (address, _) = front(&to(&[&url], "")).await;
        let request = "POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n\
                       2\r\nhi\r\n0\r\nx-sum: 7\r\nx-forwarded-for: 198.51.100.1\r\ncookie: a=b\r\n\r\n";
        rest(client(address, request).await).await;
        let lines = seen.lines(0);
        assert!(
            lines.contains(&"transfer-encoding: chunked".to_owned()),
            "{lines:?}"
        );
        assert!(
            lines.last().unwrap().ends_with("0\r\nx-sum: 7\r\n\r\n"),
            "{lines:?}"
        );
    });
}

#[test]
fn what_came_of_a_body_that_breaks_off_is_passed_on() {
    run(async {
        let short = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc";
        let (url, _) = scripted(|_, _| Reply::Last(short.to_vec())).await;
        let (address, _) = front(&to(&[&url], "")).await;
        let request = "GET / HTTP/1.1\r\nhost: h\r\n\r\n";
        let answer = rest(client(address, request).await).await;
        assert!(
            answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nabc"),
            "{answer}"
        );
    });
}
