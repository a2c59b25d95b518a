//! A request body that ends with an error when it gets too long, or comes too slowly.

use super::receive_meter::ReceiveMeter;
use crate::clock::Clock;
use crate::request_body::BodyError;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use sooner_policy::Time;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use thiserror::Error;
use tokio::time::{Sleep, sleep_until};

/// What is wrong with a request body.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ReceiveError {
    /// It is longer than it may be; status 413.
    #[error("the request body is longer than {bytes_max} bytes")]
    TooLong {
        /// The bound.
        bytes_max: u64,
    },
    /// The client sends it too slowly; status 408.
    #[error("the request body comes slower than {bytes_per_sec} bytes a second")]
    TooSlow {
        /// The bound.
        bytes_per_sec: u64,
    },
}

/// A body within bounds.
pub struct MeteredBody<B> {
    body: B,
    meter: ReceiveMeter,
    bytes_max: u64,
    left_bytes: u64,
    clock: Clock,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<B> MeteredBody<B> {
    /// `body`, up to `bytes_max` bytes, as fast as `meter` demands.
    pub fn new(body: B, bytes_max: u64, meter: ReceiveMeter) -> Self {
        Self {
            body,
            meter,
            bytes_max,
            left_bytes: bytes_max,
            clock: Clock::start(),
            timer: None,
        }
    }

    /// From now on it may come as slowly as its client likes.
    pub fn allow_pauses(&mut self) {
        self.meter = ReceiveMeter::new(0);
        self.timer = None;
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn count(&mut self, bytes: usize) -> Result<(), ReceiveError> {
        self.meter.received(bytes, self.now());
        self.left_bytes =
            self.left_bytes
                .checked_sub(bytes as u64)
                .ok_or(ReceiveError::TooLong {
                    bytes_max: self.bytes_max,
                })?;
        Ok(())
    }

    /// Ready when the client was too slow.
    fn poll_too_slow(&mut self, cx: &mut Context<'_>) -> Poll<ReceiveError> {
        self.meter.wait(self.now());
        let Some(deadline) = self.meter.deadline() else {
            return Poll::Pending;
        };
        let deadline = self.clock.at(deadline);
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(ReceiveError::TooSlow {
            bytes_per_sec: self.meter.bytes_per_sec(),
        })
    }
}

impl<B> Body for MeteredBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Pending => this
                .poll_too_slow(cx)
                .map(|too_slow| Some(Err(too_slow.into()))),
            Poll::Ready(Some(Ok(frame))) => {
                let counted = this.count(frame.data_ref().map_or(0, Bytes::len));
                Poll::Ready(Some(counted.map(|()| frame).map_err(Into::into)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(None) => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use std::collections::VecDeque;
    use std::convert::Infallible;

    /// Gives its pieces, and then nothing more.
    struct Stalling(VecDeque<&'static str>);

    impl Body for Stalling {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.0.pop_front() {
                Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece.into())))),
                None => Poll::Pending,
            }
        }
    }

    fn collect(bytes_max: u64, patience_ns: u64) -> String {
        let meter = ReceiveMeter::with_patience(1_000_000_000, patience_ns);
        let body = MeteredBody::new(Stalling(["abc", "de"].into()), bytes_max, meter);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let error = runtime.block_on(body.collect()).err().unwrap();
        error.to_string()
    }

    #[test]
    fn a_body_that_stalls_ends() {
        assert_eq!(
            collect(5, 20_000_000),
            "the request body comes slower than 1000000000 bytes a second"
        );
    }

    #[test]
    fn a_body_that_is_too_long_ends_at_once() {
        assert_eq!(
            collect(4, u64::MAX),
            "the request body is longer than 4 bytes"
        );
    }
}
