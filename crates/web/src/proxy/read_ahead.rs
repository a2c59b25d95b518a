//! A response's body on its way from the upstream: read ahead of the client up to a bound, so that
//! the backend is free early.
//!
//! A client may wait long for its turn on the uplink, and an upstream that waits with it would
//! serve no other request. So a body is read by a task of its own into memory, at most a given
//! number of bytes for each response and for all together; beyond that, one piece each. When memory
//! is full the reading stops, and the upstream's connection fills up behind it.

use crate::proxy::buffer_budget::BufferBudget;
use crate::proxy::failure_log::with_causes;
use crate::request_body::BodyError;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use sooner_http::forwarding::headers::clean_trailers;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::timeout;

/// What a piece costs beside its bytes, about.
const PIECE_BYTES: usize = 128;

/// Why a body was not read to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Truncation {
    /// The client does not want the rest.
    #[error("the client left")]
    Abandoned,
    /// The upstream paused for too long.
    #[error("the upstream paused for too long within its response")]
    Idle,
    /// The request ran for longer than its class may.
    #[error("it ran for longer than {0:?} (class.longest)")]
    RanTooLong(Duration),
    /// The upstream's connection broke, or said something wrong.
    #[error("the upstream's response broke off: {0}")]
    Broken(String),
}

/// The client's side of the body.
pub struct ReadAhead {
    buffer: Arc<Mutex<Buffer>>,
}

/// The upstream's side of the body.
pub struct Feeder {
    buffer: Arc<Mutex<Buffer>>,
}

struct Buffer {
    budget: Arc<BufferBudget>,
    pieces: VecDeque<Bytes>,
    held_bytes: usize,
    trailers: Option<HeaderMap>,
    /// What the client has not been given of the length that was announced.
    left_bytes: Option<u64>,
    /// What the upstream has not sent of it.
    owed_bytes: Option<u64>,
    end: Option<Result<(), Truncation>>,
    /// Whether the client's connection had time to send what came before the body broke off.
    has_paused: bool,
    is_abandoned: bool,
    reader: Option<Waker>,
    feeder: Option<Waker>,
}

/// The two sides of a body of `body_bytes`, if that is known.
pub fn read_ahead(budget: &Arc<BufferBudget>, body_bytes: Option<u64>) -> (Feeder, ReadAhead) {
    let buffer = Arc::new(Mutex::new(Buffer {
        budget: budget.clone(),
        pieces: VecDeque::new(),
        held_bytes: 0,
        trailers: None,
        left_bytes: body_bytes,
        owed_bytes: body_bytes,
        end: None,
        has_paused: false,
        is_abandoned: false,
        reader: None,
        feeder: None,
    }));
    let feeder = Feeder {
        buffer: buffer.clone(),
    };
    (feeder, ReadAhead { buffer })
}

fn lock(buffer: &Mutex<Buffer>) -> MutexGuard<'_, Buffer> {
    buffer.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Buffer {
    fn has_room(&self) -> bool {
        self.pieces.is_empty()
            || (self.held_bytes < self.budget.each_bytes_max && self.budget.has_room())
    }

    fn push(&mut self, piece: Bytes) -> Result<(), Truncation> {
        if let Some(owed) = &mut self.owed_bytes {
            *owed = owed
                .checked_sub(piece.len() as u64)
                .ok_or_else(|| Truncation::Broken("longer than it said".into()))?;
        }
        let cost = piece.len() + PIECE_BYTES;
        self.held_bytes += cost;
        self.budget.take(cost);
        self.pieces.push_back(piece);
        Ok(())
    }

    fn pop(&mut self) -> Option<Bytes> {
        let piece = self.pieces.pop_front()?;
        let cost = piece.len() + PIECE_BYTES;
        self.held_bytes -= cost;
        self.budget.give_back(cost);
        if let Some(left) = &mut self.left_bytes {
            *left = left.saturating_sub(piece.len() as u64);
        }
        Some(piece)
    }

    fn is_over(&self) -> bool {
        self.pieces.is_empty() && self.trailers.is_none() && self.end == Some(Ok(()))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.budget.give_back(self.held_bytes);
    }
}

impl Feeder {
    /// Reads all of `body`, which may pause for `idle` at most.
    pub async fn feed<B>(self, body: &mut B, idle: Duration) -> Result<(), Truncation>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Into<BodyError>,
    {
        let end = match self.feed_until_end(body, idle).await {
            // Over HTTP/2 the end may come after the last byte, and a client that has all of it
            // waits for nothing more.
            Err(Truncation::Abandoned) if lock(&self.buffer).owed_bytes == Some(0) => Ok(()),
            end => end,
        };
        self.end(end.clone());
        end
    }

    /// Whether the length was announced.
    pub fn has_length(&self) -> bool {
        lock(&self.buffer).owed_bytes.is_some()
    }

    async fn feed_until_end<B>(&self, body: &mut B, idle: Duration) -> Result<(), Truncation>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Into<BodyError>,
    {
        while !body.is_end_stream() {
            self.room().await?;
            let frame = tokio::select! {
                biased;
                cut = self.abandoned() => return Err(cut),
                frame = timeout(idle, next_frame(body)) => frame.map_err(|_| Truncation::Idle)?,
            };
            match frame {
                Some(Ok(frame)) => self.push(frame)?,
                Some(Err(error)) => return Err(Truncation::Broken(with_causes(&*error.into()))),
                None => break,
            }
        }
        match lock(&self.buffer).owed_bytes {
            Some(owed) if owed > 0 => Err(Truncation::Broken("shorter than it said".into())),
            _ => Ok(()),
        }
    }

    /// Waits until another piece may be held.
    async fn room(&self) -> Result<(), Truncation> {
        poll_fn(|cx| {
            let mut buffer = lock(&self.buffer);
            if buffer.is_abandoned {
                return Poll::Ready(Err(Truncation::Abandoned));
            }
            if buffer.has_room() {
                return Poll::Ready(Ok(()));
            }
            buffer.feeder = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Waits until the client leaves.
    async fn abandoned(&self) -> Truncation {
        poll_fn(|cx| {
            let mut buffer = lock(&self.buffer);
            if buffer.is_abandoned {
                return Poll::Ready(Truncation::Abandoned);
            }
            buffer.feeder = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    fn push(&self, frame: Frame<Bytes>) -> Result<(), Truncation> {
        let reader = {
            let mut buffer = lock(&self.buffer);
            match frame.into_data() {
                Ok(piece) if piece.is_empty() => {}
                Ok(piece) => buffer.push(piece)?,
                Err(frame) => {
                    if let Ok(mut trailers) = frame.into_trailers() {
                        clean_trailers(&mut trailers);
                        buffer.trailers = Some(trailers);
                    }
                }
            }
            buffer.reader.take()
        };
        wake(reader);
        Ok(())
    }

    fn end(&self, end: Result<(), Truncation>) {
        let reader = {
            let mut buffer = lock(&self.buffer);
            buffer.end = Some(end);
            buffer.reader.take()
        };
        wake(reader);
    }
}

impl Drop for Feeder {
    /// A task that was dropped ends the body as broken, or its client would wait without end.
    fn drop(&mut self) {
        if lock(&self.buffer).end.is_none() {
            self.end(Err(Truncation::Broken("given up".into())));
        }
    }
}

async fn next_frame<B: Body + Unpin>(body: &mut B) -> Option<Result<Frame<B::Data>, B::Error>> {
    poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Body for ReadAhead {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut buffer = lock(&self.buffer);
        if let Some(piece) = buffer.pop() {
            let feeder = buffer.feeder.take();
            drop(buffer);
            wake(feeder);
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match &buffer.end {
            // An error ends the connection with all that is not on its way.
            Some(Err(_)) if !buffer.has_paused => {
                buffer.has_paused = true;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            None => {
                buffer.reader = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(Err(cut)) => Poll::Ready(Some(Err(cut.clone().into()))),
            Some(Ok(())) => Poll::Ready(
                buffer
                    .trailers
                    .take()
                    .map(|trailers| Ok(Frame::trailers(trailers))),
            ),
        }
    }

    fn is_end_stream(&self) -> bool {
        lock(&self.buffer).is_over()
    }

    fn size_hint(&self) -> SizeHint {
        let buffer = lock(&self.buffer);
        let left_bytes = match (buffer.left_bytes, &buffer.end) {
            (Some(left), _) => Some(left),
            // All is here already: the length is known after all. With trailers it must not be
            // said, or they could not be sent.
            (None, Some(Ok(()))) if buffer.trailers.is_none() => {
                Some(buffer.pieces.iter().map(|piece| piece.len() as u64).sum())
            }
            (None, _) => None,
        };
        left_bytes.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        let feeder = {
            let mut buffer = lock(&self.buffer);
            buffer.is_abandoned = true;
            buffer.pieces.clear();
            let held_bytes = std::mem::take(&mut buffer.held_bytes);
            buffer.budget.give_back(held_bytes);
            buffer.feeder.take()
        };
        wake(feeder);
    }
}

#[cfg(test)]
mod tests;
