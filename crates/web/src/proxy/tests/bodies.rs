//! Classes by what a body says, between real sockets.

use super::queueing::{spawn, waiting};
use super::support::*;
use crate::limits::ReceiveError;
use crate::proxy::Failure;
use crate::request_body::{BodyError, RequestBody};
use bytes::Bytes;
use hyper::body::{Body, Frame};
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// One server with one place; what streams goes last, and a small model first.
fn by_model(url: &str) -> String {
    format!(
        "[proxy]\nlook_bytes = 64\n\
         [[upstream]]\nname='chat'\nservers=['{url}']\nlimit=1\norder='fifo'\n\
         [[route]]\npath='/'\nupstream='chat'\n\
         [[class]]\nname='small'\npriority=1\nbody={{model='small*'}}\n\
         [[class]]\nname='streams'\npriority=180\nbody={{stream=true}}\n\
         [[class]]\nname='others'\npriority=90\n"
    )
}

fn post(path: &str, fields: &str, body: &str) -> String {
    let bytes = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{fields}content-length: {bytes}\r\n\r\n{body}"
    )
}

#[test]
fn a_class_by_what_a_body_says_goes_first_and_the_body_is_whole() {
    run(async {
        let (url, seen) = scripted(|index, _| match index {
            0 => Reply::SendThenWait(
                b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n".to_vec(),
                b"x".to_vec(),
            ),
            _ => ok(""),
        })
        .await;
        let proxy = proxy(&by_model(&url));
        let (front, _) = front(&proxy).await;
        let long = "x".repeat(100);
        let bodies = [
            ("/holds", "", r#"{"model":"big"}"#.to_owned()),
            ("/plain", "", "model=small".to_owned()),
            (
                "/streams",
                "",
                r#"{"model":"big","stream":true}"#.to_owned(),
            ),
            ("/late", "", format!(r#"{{"x":"{long}","model":"small"}}"#)),
            (
                "/packed",
                "content-encoding: gzip\r\n",
                r#"{"model":"small"}"#.to_owned(),
            ),
            (
                "/twice",
                "",
                r#"{"model":"small","model":"big"}"#.to_owned(),
            ),
            ("/small", "", format!(r#"{{"model":"small","x":"{long}"}}"#)),
        ];
        let mut clients = Vec::new();
        for (at, (path, fields, body)) in bodies.iter().enumerate() {
            clients.push(client(front, &post(path, fields, body)).await);
            match at {
                0 => until(|| seen.count() == 1).await,
                _ => until(|| proxy.states()[0].waiting == at).await,
            }
        }
        seen.let_go.set(1);
        for client in clients {
            assert!(rest(client).await.starts_with("HTTP/1.1 200"));
        }
        let order: Vec<String> = (1..seen.count())
            .map(|index| seen.lines(index)[0].split(' ').nth(1).unwrap().to_owned())
            .collect();
        assert_eq!(
            order.join(" "),
            "/small /plain /late /packed /twice /streams"
        );
        for index in 0..seen.count() {
            let lines = seen.lines(index);
            let path = lines[0].split(' ').nth(1).unwrap();
            let (.., body) = bodies.iter().find(|(own, ..)| *own == path).unwrap();
            assert_eq!(lines.last(), Some(body), "{path}");
        }
        assert_eq!(proxy.buffered_bytes(), 0);
    });
}

#[test]
fn a_body_that_comes_slowly_or_breaks_off_takes_no_place() {
    run(async {
        let (url, seen) = scripted(|_, _| ok("")).await;
        let proxy = proxy(&by_model(&url));
        let (front, _) = front(&proxy).await;
        let whole = post("/slow", "", r#"{"model":"small"}"#);
        let (first, second) = whole.split_at(whole.len() - 5);
        let mut slow = client(front, first).await;
        let broken = client(front, first).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(
            rest(client(front, &post("/other", "", "{}")).await)
                .await
                .starts_with("HTTP/1.1 200")
        );
        assert_eq!(seen.count(), 1, "the place was free");
        drop(broken);
        slow.write_all(second.as_bytes()).await.unwrap();
        assert!(rest(slow).await.starts_with("HTTP/1.1 200"));
        assert_eq!(seen.lines(1).last().unwrap(), r#"{"model":"small"}"#);
        until(|| proxy.buffered_bytes() == 0).await;
        assert_eq!(seen.count(), 2, "what broke off went nowhere");
    });
}

/// A body that comes in these pieces.
struct Pieces(VecDeque<Result<Frame<Bytes>, BodyError>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Ready(self.0.pop_front())
    }
}

/// What is known to be broken before it waits is said at once, and nothing of it goes in.
#[test]
fn a_body_that_is_broken_when_it_was_looked_at_neither_waits_nor_takes_a_place() {
    run(async {
        let held = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        let (url, seen) =
            scripted(move |_, _| Reply::SendThenWait(Vec::new(), held.to_vec())).await;
        let proxy = proxy(&by_model(&url));
        let holding = spawn(&proxy, "/holds");
        until(|| seen.count() == 1).await;
        for (error, status) in [
            (ReceiveError::TooLong { bytes_max: 9 }, 413),
            (ReceiveError::TooSlow { bytes_per_sec: 500 }, 408),
        ] {
            let pieces = [Ok(Frame::data("{\"model\":".into())), Err(error.into())];
            let body = RequestBody::Tested(Box::pin(Pieces(pieces.into())));
            let request = get("/broken").map(|_| body);
            let answer = ask(&proxy, request).await;
            assert_eq!(answer.status, status);
            assert!(matches!(
                answer.report.failure,
                Some(Failure::ClientBody(_))
            ));
            assert_eq!((waiting(&proxy), proxy.buffered_bytes()), (0, 0));
        }
        seen.let_go.set(1);
        assert_eq!(holding.await.unwrap().status, 200);
        assert_eq!(seen.count(), 1, "nothing of it went in");
    });
}
