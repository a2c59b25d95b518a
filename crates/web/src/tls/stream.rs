//! A connection that speaks TLS and writes whole records, where rustls writes as much as there is
//! room for.
//!
//! On a slow link a grant makes room for a packet, and each packet would become a record of its
//! own. So the next bytes are encrypted when all that was encrypted before is written: as many as
//! rustls may hold, in records that are full but for the last.

use sooner_uplink::GatedStream;
use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

type Inner = tokio_rustls::server::TlsStream<GatedStream>;

/// A connection that speaks TLS; boxed, because futures keep the room of what was moved through
/// them.
pub struct TlsStream(Box<Inner>);

impl TlsStream {
    pub(super) fn new(stream: Inner) -> Self {
        Self(Box::new(stream))
    }

    fn inner(&mut self) -> Pin<&mut Inner> {
        Pin::new(&mut *self.0)
    }

    /// Writes all that is encrypted. Not a flush: that would end responses of which there is more
    /// to encrypt.
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (socket, session) = self.0.get_mut();
        while session.wants_write() {
            let mut socket = Socket {
                socket: &mut *socket,
                cx: &mut *cx,
            };
            match session.write_tls(&mut socket) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.inner().poll_read(cx, buf)
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_written(cx))?;
        // One write of as much as there is room for: the other way comes back for more of it.
        self.inner().poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_written(cx))?;
        self.inner().poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_shutdown(cx)
    }
}

/// A socket as rustls writes to it; what would wait is `WouldBlock`.
struct Socket<'a, 'b> {
    socket: &'a mut GatedStream,
    cx: &'a mut Context<'b>,
}

impl Write for Socket<'_, '_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(buf)])
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        match Pin::new(&mut *self.socket).poll_write_vectored(self.cx, bufs) {
            Poll::Ready(written) => written,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
