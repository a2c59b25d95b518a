//! The body of a request, whichever protocol brought it.

use crate::limits::{Limits, MeteredBody, ReceiveError, ReceiveMeter};
use crate::proxy::ClientFault;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// Any error of a body; it ends the response or the request it belongs to.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// What hyper skips of a body over HTTP/1 that is not read, bytes: what has come with its head.
const SKIPPED_BYTES_MAX: u64 = 8 << 10;

/// The body of a request, whichever protocol brought it.
pub enum RequestBody {
    /// There is none.
    Empty,
    /// Over HTTP/1.
    Http1(Http1Body),
    /// Over HTTP/2.
    Http2(crate::http2::RequestStream),
    /// One of the others, within the bounds of what a client may send.
    Metered(Box<MeteredBody<RequestBody>>),
    /// One of the others, of which the beginning was looked at.
    Looked(Box<crate::proxy::LookedBody>),
    /// One of a test.
    #[cfg(test)]
    Tested(Pin<Box<dyn Body<Data = Bytes, Error = BodyError>>>),
    /// One with a `Content-Length` above the limit; nothing of it is read.
    TooLong {
        /// The bound.
        bytes_max: u64,
    },
}

/// A body over HTTP/1, and whether it is left in the middle.
pub struct Http1Body {
    body: Incoming,
    reading: Reading,
}

/// How far a body over HTTP/1 has been read: whether more of it is to come than hyper skips.
#[derive(Debug, Clone, Default)]
pub struct Reading(Arc<AtomicBool>);

impl Http1Body {
    /// A body of which nothing is read yet, and what tells how far it is later. `is_held`: its
    /// client waits with it (`Expect: 100-continue`).
    pub fn new(body: Incoming, is_held: bool) -> (Self, Reading) {
        let length = body.size_hint().upper();
        let is_here = !is_held && length.is_some_and(|bytes| bytes <= SKIPPED_BYTES_MAX);
        let is_to_come = !is_here && !body.is_end_stream();
        let reading = Reading(Arc::new(AtomicBool::new(is_to_come)));
        let watched = reading.clone();
        (Self { body, reading }, watched)
    }
}

impl Reading {
    /// Whether it will be read no further, or not at all, though it has not ended: what follows on
    /// its connection cannot be found.
    pub fn is_left(&self) -> bool {
        self.0.load(Ordering::Relaxed) && Arc::strong_count(&self.0) == 1
    }
}

impl Body for Http1Body {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        // Nothing follows trailers, and who reads them asks for nothing more.
        let is_last = match &frame {
            Poll::Ready(Some(Ok(frame))) => frame.is_trailers(),
            Poll::Ready(None) => true,
            _ => false,
        };
        let is_over = is_last || self.body.is_end_stream();
        self.reading.0.store(!is_over, Ordering::Relaxed);
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl RequestBody {
    /// The body within `limits`; one that is over already needs none.
    pub fn metered(self, limits: &Limits) -> Self {
        if self.is_end_stream() {
            return Self::Empty;
        }
        let bytes_max = match limits.body_bytes {
            0 => u64::MAX,
            some => some,
        };
        if self.size_hint().lower() > bytes_max {
            return Self::TooLong { bytes_max };
        }
        let meter = ReceiveMeter::new(limits.receive_bytes_per_sec.into());
        Self::Metered(Box::new(MeteredBody::new(self, bytes_max, meter)))
    }

    /// From now on it may come as slowly as its client likes.
    pub fn allow_pauses(&mut self) {
        match self {
            Self::Metered(body) => body.allow_pauses(),
            Self::Looked(body) => body.allow_pauses(),
            _ => {}
        }
    }

    /// Whether it is known before the first byte that it is longer than it may be.
    pub fn is_too_long(&self) -> bool {
        matches!(self, Self::TooLong { .. })
    }

    /// Why it does not come to its end, where that is known already.
    pub fn fault(&self) -> Option<ClientFault> {
        match self {
            Self::TooLong { .. } => Some(ClientFault::TooLong),
            Self::Looked(body) => body.fault(),
            _ => None,
        }
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
            Self::Looked(body) => Pin::new(body.as_mut()).poll_frame(cx),
            #[cfg(test)]
            Self::Tested(body) => body.as_mut().poll_frame(cx),
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
            Self::Looked(body) => body.is_end_stream(),
            #[cfg(test)]
            Self::Tested(body) => body.is_end_stream(),
            Self::TooLong { .. } => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Http1(body) => body.size_hint(),
            Self::Http2(body) => body.size_hint(),
            Self::Metered(body) => body.size_hint(),
            Self::Looked(body) => body.size_hint(),
            #[cfg(test)]
            Self::Tested(body) => body.size_hint(),
            Self::TooLong { .. } => SizeHint::default(),
        }
    }
}
