//! What passes between the protocols and those who answer: a request's body, who asks, and an answer that has not been sent.

use crate::access_log::Remote;
use crate::body::Source;
use crate::limits::{Limits, MeteredBody, ReceiveError, ReceiveMeter};
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::{HeaderMap, StatusCode};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// Any error of a body; it ends the response or the request it belongs to.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// Who asks, and over what.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The client as log lines name it.
    pub named: Arc<Remote>,
    /// The client's address, after the PROXY protocol where that is on.
    pub remote: SocketAddr,
    /// The address the client connected to.
    pub local: SocketAddr,
    /// What TLS found out; `None` in clear text.
    pub tls: Option<Arc<TlsPeer>>,
}

/// What the TLS handshake said.
#[derive(Debug, Clone, Default)]
pub struct TlsPeer {
    /// The name the client asked for (SNI).
    pub server_name: Option<String>,
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// The subject of the client's certificate, if it showed one that was accepted.
    pub client_subject: Option<String>,
}

impl Peer {
    /// A client at `remote` that connected to `local`.
    pub fn new(remote: SocketAddr, local: SocketAddr, tls: Option<TlsPeer>) -> Self {
        Self {
            named: Arc::new(Remote::new(remote, tls.as_ref())),
            remote,
            local,
            tls: tls.map(Arc::new),
        }
    }

    /// The scheme of the URLs this peer sees.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

/// The body of a request, whichever protocol brought it.
pub enum RequestBody {
    /// There is none.
    Empty,
    /// Over HTTP/1.
    Http1(Incoming),
    /// Over HTTP/2.
    Http2(crate::http2::RequestStream),
    /// One of the others, within the bounds of what a client may send.
    Metered(Box<MeteredBody<RequestBody>>),
    /// One that says itself that it is longer than bodies may be; nothing of it is read.
    TooLong {
        /// The bound.
        bytes_max: u64,
    },
}

impl RequestBody {
    /// The body within `limits`; one that is over already needs none.
    pub fn metered(self, limits: &Limits) -> Self {
        if self.is_end_stream() {
            return Self::Empty;
        }
        let bytes_max = limits.body_bytes;
        if self.size_hint().lower() > bytes_max {
            return Self::TooLong { bytes_max };
        }
        let meter = ReceiveMeter::new(limits.receive_bytes_per_sec.into());
        Self::Metered(Box::new(MeteredBody::new(self, bytes_max, meter)))
    }

    /// Whether it is known before the first byte that it is longer than it may be.
    pub fn is_too_long(&self) -> bool {
        matches!(self, Self::TooLong { .. })
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Empty => Poll::Ready(None),
            Self::Http1(body) => Pin::new(body)
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(Into::into))),
            Self::Http2(body) => Pin::new(body).poll_frame(cx),
            Self::Metered(body) => Pin::new(body.as_mut()).poll_frame(cx),
            Self::TooLong { bytes_max } => {
                let bytes_max = *bytes_max;
                Poll::Ready(Some(Err(ReceiveError::TooLong { bytes_max }.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Http1(body) => body.is_end_stream(),
            Self::Http2(body) => body.is_end_stream(),
            Self::Metered(body) => body.is_end_stream(),
            Self::TooLong { .. } => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Http1(body) => body.size_hint(),
            Self::Http2(body) => body.size_hint(),
            Self::Metered(body) => body.size_hint(),
            Self::TooLong { .. } => SizeHint::default(),
        }
    }
}

/// An extension of requests that ask to switch protocols: while a clone of it lives, the client's connection counts as one, though HTTP
/// has ended on it.
#[derive(Clone)]
pub struct Stay {
    _open: Arc<oneshot::Sender<()>>,
}

/// Waits for the end of a [`Stay`].
pub struct Stayed(oneshot::Receiver<()>);

impl Stay {
    /// A stay, and who waits for its end.
    pub fn begin() -> (Self, Stayed) {
        let (stay, stayed) = oneshot::channel();
        let stay = Self {
            _open: Arc::new(stay),
        };
        (stay, Stayed(stayed))
    }
}

impl Stayed {
    /// Waits until nobody stays.
    pub async fn end(self) {
        // Nothing is ever sent: it ends when the last sending side is dropped.
        let _ = self.0.await;
    }
}

/// A response that has not been sent.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// All headers but those that depend on the connection and on the clock.
    pub headers: HeaderMap,
    /// The body.
    pub source: Source,
}
