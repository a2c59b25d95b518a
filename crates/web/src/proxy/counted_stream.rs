//! A stream that counts what goes through it: what a connection has received so far, and how it
//! ended.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What has gone through a stream. Atomic only because a connection may have to be sent to another
/// thread; none is.
#[derive(Debug, Default)]
pub struct StreamCounts {
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    is_read_closed: AtomicBool,
    is_write_closed: AtomicBool,
}

impl StreamCounts {
    /// Bytes the other side has sent.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Relaxed)
    }

    /// Bytes that were written to it.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Relaxed)
    }

    /// Whether the other side has shut its sending side.
    pub fn is_read_closed(&self) -> bool {
        self.is_read_closed.load(Relaxed)
    }

    /// Whether this side was shut for sending.
    pub fn is_write_closed(&self) -> bool {
        self.is_write_closed.load(Relaxed)
    }
}

/// A stream and its counts.
pub struct CountedStream<S> {
    stream: S,
    counts: Arc<StreamCounts>,
}

impl<S> CountedStream<S> {
    /// Counts what goes through `stream` into `counts`.
    pub fn new(stream: S, counts: &Arc<StreamCounts>) -> Self {
        Self {
            stream,
            counts: counts.clone(),
        }
    }

    fn note_written(&self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = written {
            self.counts.written_bytes.fetch_add(*bytes as u64, Relaxed);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let has_room = buf.remaining() > 0;
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let bytes = (buf.filled().len() - before) as u64;
        self.counts.read_bytes.fetch_add(bytes, Relaxed);
        if bytes == 0 && has_room {
            self.counts.is_read_closed.store(true, Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.note_written(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.note_written(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = ready!(Pin::new(&mut self.stream).poll_shutdown(cx));
        if shut.is_ok() {
            self.counts.is_write_closed.store(true, Relaxed);
        }
        Poll::Ready(shut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn both_directions_and_both_ends_are_counted() {
        let counts = Arc::<StreamCounts>::default();
        let (mine, mut theirs) = tokio::io::duplex(64);
        let mut counted = CountedStream::new(mine, &counts);
        counted.write_all(b"abc").await.unwrap();
        theirs.write_all(b"defgh").await.unwrap();
        counted.read_exact(&mut [0; 5]).await.unwrap();
        assert_eq!((counts.written_bytes(), counts.read_bytes()), (3, 5));
        assert!(!counts.is_read_closed() && !counts.is_write_closed());
        theirs.shutdown().await.unwrap();
        assert_eq!(counted.read(&mut [0; 5]).await.unwrap(), 0);
        counted.shutdown().await.unwrap();
        assert!(counts.is_read_closed() && counts.is_write_closed());
    }
}
