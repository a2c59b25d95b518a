//! A stream that rewrites requests on their way to the HTTP/1 library.

use crate::limits::Activity;
use sooner_http::request_text::Rewriter;
use std::borrow::Cow;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that is read through a [`Rewriter`].
pub struct RequestText<S> {
    stream: S,
    activity: Arc<Activity>,
    rewriter: Rewriter,
    /// What was read and had no room, because it has become longer.
    rest: Vec<u8>,
    /// How much of it was given.
    given_bytes: usize,
}

impl<S> RequestText<S> {
    /// Reads requests from `stream`, as long as it speaks HTTP by its `activity`.
    pub fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self {
            stream,
            activity,
            rewriter: Rewriter::default(),
            rest: Vec::new(),
            given_bytes: 0,
        }
    }

    fn give_rest(&mut self, buf: &mut ReadBuf<'_>) {
        let left = &self.rest[self.given_bytes..];
        let bytes = left.len().min(buf.remaining());
        buf.put_slice(&left[..bytes]);
        self.given_bytes += bytes;
        if self.given_bytes == self.rest.len() {
            self.rest = Vec::new();
            self.given_bytes = 0;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for RequestText<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rest.is_empty() {
            let before = buf.filled().len();
            ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
            // Every request so far has its response, and none of them was that it switches.
            if self.activity.is_idle() && !self.activity.is_switched() {
                self.rewriter.stays_with_http();
            }
            let Cow::Owned(rewritten) = self.rewriter.rewrite(&buf.filled()[before..]) else {
                return Poll::Ready(Ok(()));
            };
            buf.set_filled(before);
            self.rest = rewritten;
        }
        self.give_rest(buf);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for RequestText<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::CoarseClock;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn new_activity() -> Arc<Activity> {
        Arc::new(Activity::new(&Arc::new(CoarseClock::default())))
    }

    #[tokio::test]
    async fn what_follows_a_request_to_switch_is_a_request_once_that_has_its_response() {
        let request = b"GET /< HTTP/1.1\r\nupgrade: x\r\n\r\n";
        for (switches, second) in [(false, &b"GET /%3C"[..]), (true, b"GET /< H")] {
            let (mut client, server) = tokio::io::duplex(64);
            let activity = new_activity();
            let mut server = RequestText::new(server, activity.clone());
            for expected in [&b"GET /%3C"[..], second] {
                client.write_all(request).await.unwrap();
                let mut read = [0; 64];
                let length = server.read(&mut read).await.unwrap();
                assert!(read[..length].starts_with(expected), "{switches}");
                activity.request_started();
                if switches {
                    activity.switch();
                }
                activity.response_ended();
                activity.flushed();
            }
        }
    }

    #[tokio::test]
    async fn a_stream_gives_what_has_no_room_with_the_next_read() {
        let (mut client, server) = tokio::io::duplex(64);
        let mut server = RequestText::new(server, new_activity());
        client
            .write_all(b"GET /<<<<<<<< HTTP/1.1\r\n\r\n")
            .await
            .unwrap();
        drop(client);
        let (mut read, mut piece) = (Vec::new(), [0; 7]);
        loop {
            match server.read(&mut piece).await.unwrap() {
                0 => break,
                bytes => read.extend_from_slice(&piece[..bytes]),
            }
        }
        assert_eq!(
            read,
            format!("GET /{} HTTP/1.1\r\n\r\n", "%3C".repeat(8)).as_bytes()
        );
    }
}
