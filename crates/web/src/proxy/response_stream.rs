//! A response's body as it comes from a server, to its true end.
//!
//! Over HTTP/2 a server may reset a stream with NO_ERROR behind a whole response, so that the rest
//! of the request is not sent (RFC 9113, 8.1). The library takes every such reset for the end of
//! the body, also one that comes before the end: in the middle of the response.

use crate::request_body::BodyError;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use sooner_http::forwarding::request::Protocol;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use thiserror::Error;

/// Why a body over HTTP/2 is not whole, though the library says so.
#[derive(Debug, Error)]
#[error("its stream was reset before its end, with NO_ERROR")]
struct ResetEarly;

/// The body of a response, with an error where it is not whole.
pub struct ResponseStream {
    body: Incoming,
    protocol: Protocol,
}

impl ResponseStream {
    /// What comes over a connection of `protocol`.
    pub fn new(body: Incoming, protocol: Protocol) -> Self {
        Self { body, protocol }
    }

    /// Whether a body that gives nothing more is whole: its end came, or all of its length.
    fn is_whole(&self) -> bool {
        self.protocol == Protocol::Http1
            || self.body.is_end_stream()
            || self.body.size_hint().exact() == Some(0)
    }
}

impl Body for ResponseStream {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(match frame {
            None if !self.is_whole() => Some(Err(ResetEarly.into())),
            frame => frame.map(|frame| frame.map_err(Into::into)),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
