//! One HTTP/2 connection from its first byte to its last.

use super::bounds::{Bounds, CONNECTION_WINDOW_BYTES, LINGER_BYTES_MAX};
use super::cork::Cork;
use super::priorities::Priorities;
use super::stream::{ActiveStream, ConnectionState};
use super::tap::{Tap, TapEvents};
use crate::limits::{CloseReason, LingeringStream};
use crate::metrics::Protocol;
use crate::peer::ConnectionContext;
use bytes::Bytes;
use h2::Reason;
use hyper::StatusCode;
use sooner_http::frames::Violation;
use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_local;
use tokio::time::{Sleep, sleep, timeout};

/// How long a client that is answered may take to hear that its connection ends: a round trip, and
/// some patience. After it this side shuts down, and the client is lingered for.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Serves HTTP/2 on `io`, which must begin with the client's preface, until either side ends it.
/// When `stop` is ready, or the connection is asked to end, it drains: no more requests are taken,
/// and those that were are answered. Must run in a `LocalSet`.
pub async fn serve<Io>(
    io: Io,
    context: ConnectionContext,
    bounds: Bounds,
    stop: impl Future<Output = ()>,
) -> Result<(), h2::Error>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let priorities = Priorities::new(bounds.streams_max as usize);
    let tap_events = TapEvents {
        priorities: Rc::new(RefCell::new(priorities)),
        unwritten: Rc::default(),
        malformed: Rc::default(),
    };
    let cork = Cork::default();
    let handle = context.handle.clone();
    // A client sends frames at any time: as long as it receives, it opens windows.
    handle.activity().set_sending(true);
    let io = LingeringStream::new(io, handle.activity().clone(), LINGER_BYTES_MAX);
    let tap = Tap::new(io, tap_events.clone(), cork.clone(), bounds.head_bytes_max);
    let handshake = bounds.handshake(tap);
    let connection = tokio::select! {
        done = timeout(bounds.preface_time, handshake) => match done {
            Ok(connection) => connection,
            Err(_) => return Ok(()),
        },
        _ = handle.closing() => return Ok(()),
    };
    // A connection that was made ahead of its requests may wait for them as any other.
    handle.idle();
    let mut driver = Driver {
        connection: connection?,
        shared: Rc::new(ConnectionState::new(context, bounds, tap_events)),
        cork,
        window_bytes: CONNECTION_WINDOW_BYTES,
        is_ending: false,
        drain_timer: None,
    };
    {
        let mut drain = pin!(async {
            tokio::select! {
                () = stop => CloseReason::Idle,
                reason = handle.closing() => reason,
            }
        });
        let ended = poll_fn(|cx| match driver.poll(cx) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => drain.as_mut().poll(cx).map(|reason| match reason {
                CloseReason::Idle if handle.activity().is_lingering() => Some(Ok(())),
                CloseReason::Idle => None,
                CloseReason::SlowHead | CloseReason::Left => Some(Ok(())),
            }),
        });
        if let Some(result) = ended.await {
            return result;
        }
    }
    driver.drain();
    poll_fn(|cx| driver.poll(cx)).await
}

struct Driver<Io> {
    connection: h2::server::Connection<Tap<LingeringStream<Io>>, Bytes>,
    shared: Rc<ConnectionState>,
    /// In while there may be more to write.
    cork: Cork,
    /// The most of request bodies that the client may send ahead.
    window_bytes: u32,
    /// The client has been told that it breaks the rules.
    is_ending: bool,
    /// How long a client without requests may take to go.
    drain_timer: Option<Pin<Box<Sleep>>>,
}

impl<Io: AsyncRead + AsyncWrite + Unpin> Driver<Io> {
    /// Takes up requests and moves bytes until the connection ends.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        self.cork.put_in();
        loop {
            let window_bytes = self.shared.uploads.window_bytes();
            if window_bytes != self.window_bytes {
                self.window_bytes = window_bytes;
                self.connection.set_target_window_size(window_bytes);
            }
            let accepted = self.connection.poll_accept(cx);
            for _ in 0..self.shared.tap_events.malformed.take() {
                let ConnectionContext { service, peer, .. } = &self.shared.context;
                let status = StatusCode::BAD_REQUEST;
                service.unreadable_request(peer, Protocol::Http2, status);
            }
            match accepted {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    self.cork.put_in();
                    let has_body = !request.body().is_end_stream();
                    let upload = has_body.then(|| self.shared.uploads.begin());
                    let stream = ActiveStream::begin(&self.shared, respond, upload);
                    spawn_local(stream.respond(request));
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Pending if self.end_on_violation() => {}
                // Once more, so that what was collected is written.
                Poll::Pending if self.cork.is_in() => self.cork.pull(),
                Poll::Pending if self.close_drained(cx) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Ends the connection of a client that breaks the rules; returns whether it did so now.
    fn end_on_violation(&mut self) -> bool {
        let Some(reason) = self.violation() else {
            return false;
        };
        let is_new = !std::mem::replace(&mut self.is_ending, true);
        if is_new {
            self.connection.abrupt_shutdown(reason);
        }
        is_new
    }

    /// The error code for what the client did, if it did something.
    fn violation(&self) -> Option<Reason> {
        if self.shared.has_too_many_resets() {
            return Some(Reason::ENHANCE_YOUR_CALM);
        }
        match self.shared.tap_events.priorities.borrow().violation()? {
            Violation::TooManyFrames => Some(Reason::ENHANCE_YOUR_CALM),
            Violation::TooShort => Some(Reason::FRAME_SIZE_ERROR),
            Violation::NotOnStreamZero | Violation::NoSuchStream | Violation::TooManyIdle => {
                Some(Reason::PROTOCOL_ERROR)
            }
        }
    }

    /// Drains: takes no more requests than those on their way, and ends when all are answered.
    fn drain(&mut self) {
        self.connection.graceful_shutdown();
        self.drain_timer = Some(Box::pin(sleep(DRAIN_TIME)));
    }

    /// Shuts the connection down when its client was told to go, has nothing left to wait for, and
    /// does not go; returns whether it did so now. As long as something of a response is unwritten
    /// there is no end but that of the server's grace.
    fn close_drained(&mut self, cx: &mut Context<'_>) -> bool {
        while let Some(drain_timer) = &mut self.drain_timer
            && drain_timer.as_mut().poll(cx).is_ready()
        {
            if !self.shared.has_unwritten_responses() {
                self.drain_timer = None;
                self.connection.abrupt_shutdown(Reason::NO_ERROR);
                return true;
            }
            drain_timer.set(sleep(DRAIN_TIME));
        }
        false
    }
}
