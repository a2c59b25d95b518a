//! The body of one response, cut into pieces of the size that may be sent.

use crate::body::Source;
use crate::request_body::BodyError;
use bytes::Bytes;
use hyper::HeaderMap;
use std::task::{Context, Poll, ready};

/// What is left of a body.
pub struct BodySource {
    source: Source,
    chunk: Bytes,
    /// Nothing is known to be at hand: it is to be waited for before a turn is requested.
    is_to_be_awaited: bool,
}

/// What came of a look at the source.
#[derive(Debug)]
pub enum Filled {
    /// There are bytes to send.
    WithData,
    /// There are none, and never will be; but maybe trailers.
    Ended(Option<HeaderMap>),
}

impl BodySource {
    /// What `source` has to give.
    pub fn new(source: Source) -> Self {
        let is_to_be_awaited = source.is_awaited();
        Self {
            source,
            chunk: Bytes::new(),
            is_to_be_awaited,
        }
    }

    /// Whether the source is to be polled before a turn is requested: a backend may be silent for
    /// hours, a disk is slow, and a turn that is not used is time of the link. What is at hand is
    /// not read before its turn, because until then it would only use memory.
    pub fn is_to_be_awaited(&self) -> bool {
        self.chunk.is_empty() && self.is_to_be_awaited
    }

    /// Ready when there are bytes to send, or it is known that there are none. Of a file no more is
    /// read than `bytes`: whatever waits in a stream for its turn is memory that its client holds,
    /// and a client has many streams.
    pub fn poll_fill(
        &mut self,
        bytes: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Filled, BodyError>> {
        while self.chunk.is_empty() {
            self.source.set_chunk_bytes(bytes);
            self.is_to_be_awaited = true;
            let Some(frame) = ready!(self.source.poll_frame(cx)).transpose()? else {
                return Poll::Ready(Ok(Filled::Ended(None)));
            };
            match frame.into_data() {
                Ok(chunk) => self.chunk = chunk,
                Err(frame) => {
                    let trailers = frame.into_trailers().ok();
                    return Poll::Ready(Ok(Filled::Ended(trailers)));
                }
            }
        }
        self.is_to_be_awaited = self.source.is_awaited();
        Poll::Ready(Ok(Filled::WithData))
    }

    /// How many bytes more than estimated there will be; see [`Source::take_growth`].
    pub fn take_growth(&mut self) -> Option<u64> {
        self.source.take_growth()
    }

    /// How many bytes a turn could be used for, `bytes_max` at most; at least one.
    pub fn wanted_bytes(&self, bytes_max: usize) -> usize {
        let at_hand = self.chunk.len() as u64;
        let left = self.source.len().map(|left| at_hand + left);
        let wanted = left.unwrap_or(at_hand.max(1)).min(bytes_max as u64);
        (wanted as usize).max(1)
    }

    /// Takes up to `bytes_max` of the bytes that there are; the second value says whether nothing
    /// comes after them, not even trailers.
    pub fn take(&mut self, bytes_max: usize) -> (Bytes, bool) {
        let taken = self.chunk.split_to(self.chunk.len().min(bytes_max));
        (taken, self.chunk.is_empty() && self.source.is_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt, Full};
    use hyper::body::{Body, Frame};
    use std::pin::Pin;
    use std::task::Waker;

    fn fill(body: &mut BodySource) -> Filled {
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(filled) = body.poll_fill(100, &mut cx) else {
            panic!("nothing to wait for");
        };
        filled.unwrap()
    }

    #[test]
    fn pieces_are_as_large_as_turns() {
        let mut body = BodySource::new(Source::Memory(Bytes::from_static(b"abcdefg")));
        assert!(!body.is_to_be_awaited());
        assert_eq!(body.wanted_bytes(5), 5);
        assert!(matches!(fill(&mut body), Filled::WithData));
        assert_eq!(body.take(5), (Bytes::from_static(b"abcde"), false));
        assert_eq!(body.wanted_bytes(5), 2);
        assert!(matches!(fill(&mut body), Filled::WithData));
        assert_eq!(body.take(5), (Bytes::from_static(b"fg"), true));
        assert!(matches!(fill(&mut body), Filled::Ended(None)));
    }

    #[test]
    fn a_backend_is_waited_for_before_a_turn_is_asked_for() {
        let mut body = BodySource::new(Source::stream(Box::pin(Silent)));
        assert!(body.is_to_be_awaited());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(body.poll_fill(100, &mut cx).is_pending());
        assert!(body.is_to_be_awaited());
        let full = Full::new(Bytes::from_static(b"abc")).map_err(BodyError::from);
        let mut body = BodySource::new(Source::stream(Box::pin(full)));
        assert!(matches!(fill(&mut body), Filled::WithData));
        assert!(!body.is_to_be_awaited(), "now there is something");
        assert_eq!(body.wanted_bytes(10), 3);
        assert_eq!(body.take(10).0, "abc");
    }

    struct Silent;

    impl Body for Silent {
        type Data = Bytes;
        type Error = BodyError;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
            Poll::Pending
        }
    }
}
