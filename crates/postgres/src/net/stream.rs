//! A connection of either kind, and reading from it without keeping a buffer for those who are silent.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// What is read at a time.
const READ_BYTES: usize = 16 * 1024;

thread_local! {
    /// One for all connections: ten thousand idle ones have no buffer.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into_boxed_slice());
}

/// A connection.
pub enum Stream {
    /// By TCP.
    Tcp(TcpStream),
    /// By a socket file.
    Unix(UnixStream),
}

impl Stream {
    /// Reads what there is behind `input`; 0 bytes at the end.
    pub fn poll_more(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            ready!(self.poll_read_some(cx, &mut buffer))?;
            input.extend_from_slice(buffer.filled());
            Poll::Ready(Ok(buffer.filled().len()))
        })
    }

    /// The same as a future.
    pub async fn more(&mut self, input: &mut BytesMut) -> io::Result<usize> {
        poll_fn(|cx| self.poll_more(cx, input)).await
    }

    /// Writes from the beginning of `output`, and takes that away.
    pub fn poll_flush_some(
        &mut self,
        cx: &mut Context<'_>,
        output: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        let written = match self {
            Self::Tcp(stream) => ready!(Pin::new(stream).poll_write(cx, output))?,
            Self::Unix(stream) => ready!(Pin::new(stream).poll_write(cx, output))?,
        };
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        bytes::Buf::advance(output, written);
        Poll::Ready(Ok(written))
    }

    /// Writes all of `output`.
    pub async fn flush_all(&mut self, output: &mut BytesMut) -> io::Result<()> {
        while !output.is_empty() {
            poll_fn(|cx| self.poll_flush_some(cx, output)).await?;
        }
        Ok(())
    }

    fn poll_read_some(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}
