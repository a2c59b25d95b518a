//! The body of a request over HTTP/2.

use super::uploads::Upload;
use crate::clock::Clock;
use crate::limits::Linger;
use crate::request_body::BodyError;
use bytes::Bytes;
use h2::RecvStream;
use hyper::body::{Body, Frame, SizeHint};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot;
use tokio::time::timeout_at;

/// A body as it comes in. The client's window opens again by what is taken from here, so a reader
/// that does not take holds the client back.
pub struct RequestStream {
    /// Taken when this is dropped.
    stream: Option<RecvStream>,
    /// Gets what is left of it then.
    rest: Option<oneshot::Sender<RecvStream>>,
    /// What is left of the length that was announced.
    left_bytes: Option<u64>,
    progress: Progress,
    /// Tells the stream's task to ask the client for the body (`100-continue`).
    wanted: Option<oneshot::Sender<()>>,
    /// Counts as long as this is there.
    _upload: Option<Upload>,
}

/// How far the body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    InData,
    BeforeTrailers,
    Over,
}

impl RequestStream {
    /// The body that comes by `stream`, `content_length` bytes long if that was announced; `wanted`
    /// is told when the body is first polled, and `rest` gets what has not been read in the end.
    pub fn new(
        stream: RecvStream,
        content_length: Option<u64>,
        wanted: Option<oneshot::Sender<()>>,
        rest: oneshot::Sender<RecvStream>,
    ) -> Self {
        Self {
            stream: Some(stream),
            rest: Some(rest),
            left_bytes: content_length,
            progress: Progress::InData,
            wanted,
            _upload: None,
        }
    }

    /// The same, which counts as this upload of its connection.
    pub fn of(mut self, upload: Option<Upload>) -> Self {
        self._upload = upload;
        self
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(None);
        };
        let data = ready!(stream.poll_data(cx));
        if let Some(Ok(bytes)) = &data {
            // Fails only for more than was received.
            let _ = stream.flow_control().release_capacity(bytes.len());
            self.left_bytes = self
                .left_bytes
                .map(|left| left.saturating_sub(bytes.len() as u64));
        }
        Poll::Ready(data)
    }
}

impl Drop for RequestStream {
    fn drop(&mut self) {
        let is_read = self.progress == Progress::Over || self.is_end_stream();
        if let (false, Some(stream), Some(rest)) = (is_read, self.stream.take(), self.rest.take()) {
            // No task waits for it where the client has left.
            let _ = rest.send(stream);
        }
    }
}

impl Body for RequestStream {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        if let Some(wanted) = this.wanted.take() {
            // No task hears it when the response has begun already.
            let _ = wanted.send(());
        }
        if this.progress == Progress::InData {
            match ready!(this.poll_data(cx)) {
                Some(Ok(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(Err(error)) => {
                    this.progress = Progress::Over;
                    return Poll::Ready(Some(Err(error.into())));
                }
                None => this.progress = Progress::BeforeTrailers,
            }
        }
        if this.progress == Progress::BeforeTrailers
            && let Some(stream) = &mut this.stream
        {
            let trailers = ready!(stream.poll_trailers(cx));
            this.progress = Progress::Over;
            return Poll::Ready(match trailers {
                Ok(trailers) => trailers.map(|trailers| Ok(Frame::trailers(trailers))),
                Err(error) => Some(Err(error.into())),
            });
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.progress == Progress::Over
            || self.stream.as_ref().is_none_or(RecvStream::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match self.left_bytes {
            Some(left_bytes) => SizeHint::with_exact(left_bytes),
            None => SizeHint::default(),
        }
    }
}

/// The most that is read of a body after its response: as much as on a connection of HTTP/1.
const DISCARDED_BYTES_MAX: u64 = 64 << 20;

/// Discards the rest of a body after its response (RFC 9113, 8.1); `rest` brings it when its reader
/// lets go of it.
///
/// A response may come before the request is over: the body is too long, or the path leads nowhere.
/// When the stream is then reset at once, clients that are still sending lose the response: curl
/// 7.88 takes the reset for a failure before it has looked at what came with it. So the rest is
/// read and thrown away, and the window opened, as HTTP/1 does with its connection; but only for a
/// while: then the stream is reset with NO_ERROR, which tells the client to keep the response.
pub async fn discard(rest: oneshot::Receiver<RecvStream>) {
    let Ok(mut stream) = rest.await else {
        return;
    };
    let clock = Clock::start();
    let mut linger = Linger::begin(DISCARDED_BYTES_MAX, clock.now());
    while !linger.is_over() {
        let piece = poll_fn(|cx| stream.poll_data(cx));
        let Ok(Some(Ok(bytes))) = timeout_at(clock.at(linger.deadline()), piece).await else {
            // All of it was here, or nothing more comes, or the client is gone.
            return;
        };
        // Fails only for more than was received.
        let _ = stream.flow_control().release_capacity(bytes.len());
        linger.received(bytes.len(), clock.now());
    }
}
