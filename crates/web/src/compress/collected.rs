//! The beginning of a body, collected before its head is sent, and the rest of it.

use crate::body::Source;
use crate::request_body::BodyError;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How the collecting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// All of the body is here, and nothing else.
    Whole,
    /// As much as is collected is here, or the body ends otherwise.
    Part,
    /// The source paused, or trickled for long enough.
    Paused,
}

/// A body of which the beginning is here.
pub struct Collected {
    pieces: VecDeque<Bytes>,
    bytes: usize,
    last: Option<Result<HeaderMap, BodyError>>,
    rest: Source,
}

impl Collected {
    /// Nothing is here yet of `rest`.
    pub fn new(rest: Source) -> Self {
        Self {
            pieces: VecDeque::new(),
            bytes: 0,
            last: None,
            rest,
        }
    }

    /// Collects until `bytes_max` are here, the body ends, nothing comes for `pause`, or `held_max`
    /// have passed.
    pub async fn collect(
        &mut self,
        bytes_max: usize,
        pause: Duration,
        held_max: Duration,
    ) -> Beginning {
        let held_until = Instant::now() + held_max;
        while self.bytes < bytes_max {
            if self.rest.is_end() {
                return Beginning::Whole;
            }
            let due = held_until.min(Instant::now() + pause);
            let next = poll_fn(|cx| self.rest.poll_frame(cx));
            match timeout_at(due, next).await {
                Err(_) => return Beginning::Paused,
                Ok(None) => return Beginning::Whole,
                Ok(Some(Err(error))) => {
                    self.last = Some(Err(error));
                    return Beginning::Part;
                }
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(piece) => {
                        self.bytes += piece.len();
                        self.pieces.push_back(piece);
                    }
                    Err(frame) => {
                        self.last = frame.into_trailers().ok().map(Ok);
                        return Beginning::Part;
                    }
                },
            }
        }
        if self.rest.is_end() {
            Beginning::Whole
        } else {
            Beginning::Part
        }
    }

    /// How many bytes are here.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What is here, which is then not given as the body any more.
    pub fn take(&mut self) -> VecDeque<Bytes> {
        self.bytes = 0;
        std::mem::take(&mut self.pieces)
    }

    /// The body as it came.
    pub fn into_source(self) -> Source {
        Source::stream(Box::pin(self))
    }
}

impl Body for Collected {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(piece) = self.pieces.pop_front() {
            self.bytes -= piece.len();
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match self.last.take() {
            Some(Ok(trailers)) => Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => self.rest.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.last.is_none() && self.rest.is_end()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = match &self.last {
            None => self.rest.len(),
            Some(_) => None,
        };
        rest.map_or_else(SizeHint::default, |rest| {
            SizeHint::with_exact(rest + self.bytes as u64)
        })
    }
}
