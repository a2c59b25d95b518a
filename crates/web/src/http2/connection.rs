//! One HTTP/2 connection from its first byte to its last.

use super::Connected;
use super::bounds::{Bounds, LINGER_BYTES_MAX};
use super::cork::Cork;
use super::priorities::Priorities;
use super::stream::{Exchange, Shared};
use super::tap::{Listeners, Tap};
use crate::limits::{CloseReason, Lingering};
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

/// How long a client that is answered may take to hear that its connection ends: a round trip, and some patience. After it this side shuts
/// down, and the client is lingered for.
const FAREWELL: Duration = Duration::from_secs(2);

/// Serves HTTP/2 on `io`, which must begin with the client's preface, until either side ends it. When `stop` is ready, or the guest is to
/// go, no more requests are taken, and those that were are answered. Must run in a `LocalSet`.
pub async fn serve<Io>(
    io: Io,
    connected: Connected,
    bounds: Bounds,
    stop: impl Future<Output = ()>,
) -> Result<(), h2::Error>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let priorities = Priorities::new(bounds.streams_max as usize);
    let listeners = Listeners {
        priorities: Rc::new(RefCell::new(priorities)),
        unwritten: Rc::default(),
        malformed: Rc::default(),
    };
    let cork = Cork::default();
    let guest = connected.guest.clone();
    // A client sends frames at any time: as long as it receives, it opens windows.
    guest.activity().set_sending(true);
    let io = Lingering::new(io, guest.activity().clone(), LINGER_BYTES_MAX);
    let tap = Tap::new(io, listeners.clone(), cork.clone(), bounds.head_bytes_max);
    let handshake = bounds.handshake(tap);
    let connection = tokio::select! {
        done = timeout(bounds.preface_time, handshake) => match done {
            Ok(connection) => connection,
            Err(_) => return Ok(()),
        },
        _ = guest.closing() => return Ok(()),
    };
    // A connection that was made ahead of its requests may wait for them as any other.
    guest.idle();
    let mut driver = Driver {
        connection: connection?,
        shared: Rc::new(Shared::new(connected, bounds, listeners)),
        cork,
        is_ending: false,
        farewell: None,
    };
    {
        let mut leave = pin!(async {
            tokio::select! {
                () = stop => CloseReason::Idle,
                reason = guest.closing() => reason,
            }
        });
        let ended = poll_fn(|cx| match driver.poll(cx) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => leave.as_mut().poll(cx).map(|reason| match reason {
                CloseReason::Idle if guest.activity().is_leaving() => Some(Ok(())),
                CloseReason::Idle => None,
                CloseReason::SlowHead => Some(Ok(())),
            }),
        });
        if let Some(result) = ended.await {
            return result;
        }
    }
    driver.leave();
    poll_fn(|cx| driver.poll(cx)).await
}

struct Driver<Io> {
    connection: h2::server::Connection<Tap<Lingering<Io>>, Bytes>,
    shared: Rc<Shared>,
    /// In while there may be more to write.
    cork: Cork,
    /// It has been told that it breaks the rules.
    is_ending: bool,
    /// How long a client without requests may take to go.
    farewell: Option<Pin<Box<Sleep>>>,
}

impl<Io: AsyncRead + AsyncWrite + Unpin> Driver<Io> {
    /// Takes up requests and moves bytes until the connection ends.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        self.cork.put_in();
        loop {
            let accepted = self.connection.poll_accept(cx);
            for _ in 0..self.shared.listeners.malformed.take() {
                let Connected { service, peer, .. } = &self.shared.connected;
                service.unreadable_request(peer, StatusCode::BAD_REQUEST);
            }
            match accepted {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    self.cork.put_in();
                    let exchange = Exchange::begin(&self.shared, respond);
                    spawn_local(exchange.answer(request));
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Pending if self.end_offender() => {}
                // Once more, so that what was collected is written.
                Poll::Pending if self.cork.is_in() => self.cork.pull(),
                Poll::Pending if self.see_off(cx) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Ends the connection of a client that breaks the rules; returns whether it did so now.
    fn end_offender(&mut self) -> bool {
        let Some(reason) = self.offence() else {
            return false;
        };
        let is_new = !std::mem::replace(&mut self.is_ending, true);
        if is_new {
            self.connection.abrupt_shutdown(reason);
        }
        is_new
    }

    /// The error code for what the client did, if it did something.
    fn offence(&self) -> Option<Reason> {
        if self.shared.has_cancelled_too_much() {
            return Some(Reason::ENHANCE_YOUR_CALM);
        }
        match self.shared.listeners.priorities.borrow().violation()? {
            Violation::TooManyFrames => Some(Reason::ENHANCE_YOUR_CALM),
            Violation::TooShort => Some(Reason::FRAME_SIZE_ERROR),
            Violation::NotOnStreamZero | Violation::NoSuchStream | Violation::TooManyIdle => {
                Some(Reason::PROTOCOL_ERROR)
            }
        }
    }

    /// Takes no more requests than those on their way, and ends when all are answered.
    fn leave(&mut self) {
        self.connection.graceful_shutdown();
        self.farewell = Some(Box::pin(sleep(FAREWELL)));
    }

    /// Shuts the connection down when its client was told to go, has nothing left to wait for, and does not go; returns whether it did so
    /// now. As long as something of a response is unwritten there is no end but that of the server's grace.
    fn see_off(&mut self, cx: &mut Context<'_>) -> bool {
        while let Some(farewell) = &mut self.farewell
            && farewell.as_mut().poll(cx).is_ready()
        {
            if !self.shared.has_unwritten_responses() {
                self.farewell = None;
                self.connection.abrupt_shutdown(Reason::NO_ERROR);
                return true;
            }
            farewell.set(sleep(FAREWELL));
        }
        false
    }
}
