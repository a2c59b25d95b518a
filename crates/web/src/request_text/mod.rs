//! What clients send of HTTP/1 and servers commonly take, in the form the engine takes.
//!
//! The engine refuses a request target with a raw `"`, `<`, `>`, backtick or byte above 0x7f in it, and takes trailers that end with a bare
//! LF for the beginning of longer ones, the next request included. nginx takes both. So the bytes are changed on their way: what may not
//! stand in a target is percent-encoded, and a bare LF in trailers gets its CR. To find targets and trailers the framing of messages is
//! followed; after anything unusual in it no byte of the connection is changed any more.

mod field;
mod rewriter;

pub use rewriter::{Rewriter, escaped_target};

use std::borrow::Cow;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream whose requests are read through a [`Rewriter`].
pub struct RequestText<S> {
    stream: S,
    rewriter: Rewriter,
    /// What was read and had no room, because it has become longer.
    rest: Vec<u8>,
    /// How much of it was given.
    given_bytes: usize,
}

impl<S> RequestText<S> {
    /// Reads requests from `stream`.
    pub fn new(stream: S) -> Self {
        Self {
            stream,
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
mod tests;
