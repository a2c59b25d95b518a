//! A connection of any kind, and reading from it without keeping a buffer for those who are silent.

use crate::client::slots::Origin;
use crate::config::Transport;
use bytes::{Buf, BytesMut};
use rustls::pki_types::CertificateDer;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::unconstrained;
use tokio_rustls::TlsStream;

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
    /// By TCP, encrypted.
    Tls(Encrypted),
}

/// What is encrypted and not yet sent waits in the session.
pub struct Encrypted {
    stream: Box<TlsStream<TcpStream>>,
    is_unsent: bool,
}

/// TLS ends by a message of its own (close_notify), without which the other side cannot tell the end
/// from a cut: libpq from 17 on calls a cancel request failed then. What the other side does not
/// take at once is not waited for.
impl Drop for Encrypted {
    fn drop(&mut self) {
        let stream = &mut self.stream;
        let end = unconstrained(poll_fn(|cx| Pin::new(&mut *stream).poll_shutdown(cx)));
        // It may be gone already.
        let _ = pin!(end).poll(&mut Context::from_waker(Waker::noop()));
    }
}

impl Stream {
    /// One that has been encrypted from here on.
    pub fn encrypted(stream: TlsStream<TcpStream>) -> Self {
        Self::Tls(Encrypted {
            stream: Box::new(stream),
            is_unsent: false,
        })
    }

    /// What kind it is.
    pub fn transport(&self) -> Transport {
        match self {
            Self::Tcp(_) => Transport::Clear,
            Self::Unix(_) => Transport::Unix,
            Self::Tls(_) => Transport::Tls,
        }
    }

    /// Where the other side is; `None` through a socket file.
    pub fn peer(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.peer_addr().ok(),
            Self::Unix(_) => None,
            Self::Tls(encrypted) => encrypted.stream.get_ref().0.peer_addr().ok(),
        }
    }

    /// Where this side is; `None` through a socket file.
    pub fn local(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.local_addr().ok(),
            Self::Unix(_) => None,
            Self::Tls(encrypted) => encrypted.stream.get_ref().0.local_addr().ok(),
        }
    }

    /// Which connections it is bounded together with.
    pub fn origin(&self) -> Origin {
        let system_user = |stream: &UnixStream| Some(stream.peer_cred().ok()?.uid());
        let origin = match self {
            Self::Unix(stream) => system_user(stream).map(Origin::SystemUser),
            _ => self.peer().map(|peer| Origin::Network(peer.ip().into())),
        };
        origin.unwrap_or(Origin::Unknown)
    }

    /// Whether the other side is a process of the same system user, or of root, on this machine.
    pub fn is_own_user(&self) -> bool {
        let Self::Unix(stream) = self else {
            return false;
        };
        let own = rustix::process::geteuid().as_raw();
        let is_own = |uid: u32| uid == own || uid == 0;
        stream.peer_cred().is_ok_and(|peer| is_own(peer.uid()))
    }

    /// The certificate that the other side has proved to be its own.
    pub fn certificate(&self) -> Option<&CertificateDer<'static>> {
        match self {
            Self::Tls(encrypted) => encrypted.stream.get_ref().1.peer_certificates()?.first(),
            _ => None,
        }
    }

    /// Version and cipher, if it is encrypted.
    pub fn cipher(&self) -> Option<String> {
        let Self::Tls(encrypted) = self else {
            return None;
        };
        let (_, session) = encrypted.stream.get_ref();
        let version = session.protocol_version()?;
        let suite = session.negotiated_cipher_suite()?.suite();
        Some(format!("{version:?}/{suite:?}"))
    }

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

    /// Whether everything that was written is on its way.
    pub fn is_flushed(&self) -> bool {
        !matches!(self, Self::Tls(encrypted) if encrypted.is_unsent)
    }

    /// Writes from the beginning of `output` and takes that away, or sends what is written and
    /// waits.
    pub fn poll_flush_some(
        &mut self,
        cx: &mut Context<'_>,
        output: &mut BytesMut,
    ) -> Poll<io::Result<()>> {
        if output.is_empty() {
            if let Self::Tls(encrypted) = self {
                ready!(Pin::new(&mut encrypted.stream).poll_flush(cx))?;
                encrypted.is_unsent = false;
            }
            return Poll::Ready(Ok(()));
        }
        let written = match self {
            Self::Tcp(stream) => ready!(Pin::new(stream).poll_write(cx, output))?,
            Self::Unix(stream) => ready!(Pin::new(stream).poll_write(cx, output))?,
            Self::Tls(encrypted) => {
                encrypted.is_unsent = true;
                ready!(Pin::new(&mut encrypted.stream).poll_write(cx, output))?
            }
        };
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        output.advance(written);
        Poll::Ready(Ok(()))
    }

    /// Writes and sends all of `output`.
    pub async fn flush_all(&mut self, output: &mut BytesMut) -> io::Result<()> {
        while !(output.is_empty() && self.is_flushed()) {
            poll_fn(|cx| self.poll_flush_some(cx, output)).await?;
        }
        Ok(())
    }

    /// Nothing more will be written; what comes can still be read.
    pub fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(encrypted) => Pin::new(&mut encrypted.stream).poll_shutdown(cx),
        }
    }

    fn poll_read_some(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(encrypted) => Pin::new(&mut encrypted.stream).poll_read(cx, buffer),
        }
    }
}
