//! A stream where the other side may have answered before it stopped taking what is written.
//!
//! A server that refuses an upload answers, and closes without reading the rest: the next write
//! meets a reset, and the answer is in the socket already (RFC 9112, 9.5 has clients look for it).
//! So a write that the other side no longer takes is no failure here; reading tells what became of
//! the request: the answer, or that the connection was reset.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that throws away what its other side does not take.
pub struct AnsweredStream<S> {
    stream: S,
    is_refused: bool,
}

impl<S> AnsweredStream<S> {
    /// `stream`, which has taken everything so far.
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            is_refused: false,
        }
    }

    fn taken(&mut self, written: io::Result<usize>, bytes: usize) -> io::Result<usize> {
        match written {
            Err(error) if is_refusal(&error) => {
                self.is_refused = true;
                Ok(bytes)
            }
            written => written,
        }
    }
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
    )
}

impl<S: AsyncRead + Unpin> AsyncRead for AnsweredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for AnsweredStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_refused {
            return Poll::Ready(Ok(buf.len()));
        }
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, buf));
        Poll::Ready(self.taken(written, buf.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let all_bytes = bufs.iter().map(|buf| buf.len()).sum();
        if self.is_refused {
            return Poll::Ready(Ok(all_bytes));
        }
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, bufs));
        Poll::Ready(self.taken(written, all_bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_refused {
            return Poll::Ready(Ok(()));
        }
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(cx));
        Poll::Ready(self.taken(flushed.map(|()| 0), 0).map(|_| ()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn what_came_before_a_reset_is_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut stream = AnsweredStream::new(TcpStream::connect(address).await.unwrap());
        let (mut server, _) = listener.accept().await.unwrap();
        stream.write_all(&[b'x'; 4096]).await.unwrap();
        server.write_all(b"no").await.unwrap();
        // With bytes unread, closing it resets the connection.
        drop(server);
        while !stream.is_refused {
            stream.write_all(&[b'x'; 4096]).await.unwrap();
            stream.flush().await.unwrap();
            tokio::task::yield_now().await;
        }
        let mut answer = [0; 2];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"no");
        assert!(!matches!(stream.read(&mut answer).await, Ok(1..)));
    }
}
