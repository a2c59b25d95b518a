//! Sends the body of one response, turn by turn. The order of the steps is the point; see the
//! [module](super).

use super::body_source::{BodySource, Filled};
use super::priorities::Subscription;
use super::response::remove_connection_fields;
use super::windows::{Closed, Windows};
use crate::request_body::BodyError;
use bytes::Bytes;
use h2::{Reason, SendStream};
use hyper::HeaderMap;
use sooner_http::priority::Signal;
use sooner_link::StreamOrder;
use sooner_uplink::StreamFlow;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use thiserror::Error;

/// Body bytes in one turn, if the uplink grants so much; the library makes frames of them.
const TURN_BYTES_MAX: usize = 64 << 10;

/// Why a response was not sent to its end.
#[derive(Debug, Error)]
pub enum SendError {
    /// The client took the request back, or is gone.
    #[error("the client cancelled it")]
    Unwanted,
    /// The client's window stayed shut.
    #[error("the client read nothing for too long")]
    Stalled,
    /// The body ended with an error.
    #[error("its body broke off: {0}")]
    Broken(BodyError),
}

/// Tells the uplink where `flow` stands among the streams of its connection.
pub fn set_urgency(flow: &mut StreamFlow, signal: Signal) {
    let order = match signal.incremental {
        None => StreamOrder::BySize,
        Some(false) => StreamOrder::InSequence,
        Some(true) => StreamOrder::Shared,
    };
    flow.set_urgency(signal.urgency, order);
}

/// Everything that sends one body.
pub struct BodySender {
    /// The stream in the HTTP/2 library.
    pub stream: SendStream<Bytes>,
    /// The response in the uplink.
    pub flow: StreamFlow,
    /// News of its priority.
    pub subscription: Subscription,
    /// Its priority as it is now.
    pub signal: Signal,
    /// What is known of the client's windows.
    pub windows: Windows,
}

/// What a turn came to.
enum Turn {
    /// Something was sent; there is more.
    Used,
    /// Nothing could be sent: there is something else to wait for.
    GivenBack,
    /// The response is over.
    Last,
}

impl BodySender {
    /// Gives all of `body` to the library; returns the stream in the uplink, which has handed over
    /// everything.
    pub async fn send(mut self, mut body: BodySource) -> Result<StreamFlow, SendError> {
        loop {
            match poll_fn(|cx| self.poll_piece(cx, &mut body)).await {
                Ok(true) => return Ok(self.flow),
                Ok(false) => {}
                Err(SendError::Broken(error)) => {
                    let_others_run().await;
                    self.stream.send_reset(Reason::INTERNAL_ERROR);
                    return Err(SendError::Broken(error));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for one turn and uses it; ready with whether it was the last.
    fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut BodySource,
    ) -> Poll<Result<bool, SendError>> {
        self.follow_priority(cx);
        if self.stream.poll_reset(cx).is_ready() {
            return Poll::Ready(Err(SendError::Unwanted));
        }
        loop {
            if body.is_to_be_awaited() {
                match ready!(body.poll_fill(TURN_BYTES_MAX, cx)) {
                    Ok(Filled::WithData) => {}
                    Ok(Filled::Ended(trailers)) => {
                        return Poll::Ready(self.end(trailers).map(|()| true));
                    }
                    Err(error) => return Poll::Ready(Err(SendError::Broken(error))),
                }
            }
            if let Some(growth_bytes) = body.take_growth() {
                self.flow.enlarge(growth_bytes);
            }
            let wanted_bytes = body.wanted_bytes(TURN_BYTES_MAX);
            ready!(self.poll_window(wanted_bytes, cx))?;
            let granted_bytes = ready!(self.flow.poll_grant(cx, wanted_bytes as u64));
            match self.use_turn(cx, body, granted_bytes as usize)? {
                Turn::Used => return Poll::Ready(Ok(false)),
                Turn::Last => return Poll::Ready(Ok(true)),
                Turn::GivenBack => {}
            }
        }
    }

    /// Sends what the windows allow of `granted_bytes`, and tells the uplink how much that was.
    fn use_turn(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut BodySource,
        granted_bytes: usize,
    ) -> Result<Turn, SendError> {
        let allowed_bytes = self.windows.reserve(&mut self.stream, granted_bytes);
        if allowed_bytes == 0 {
            self.flow.settle(0);
            return Ok(Turn::GivenBack);
        }
        match body.poll_fill(allowed_bytes, cx) {
            Poll::Ready(Ok(Filled::WithData)) => self.send_piece(body, allowed_bytes),
            Poll::Ready(Ok(Filled::Ended(trailers))) => {
                self.give_back();
                self.end(trailers).map(|()| Turn::Last)
            }
            Poll::Ready(Err(error)) => {
                self.give_back();
                Err(SendError::Broken(error))
            }
            Poll::Pending => {
                self.give_back();
                Ok(Turn::GivenBack)
            }
        }
    }

    fn send_piece(
        &mut self,
        body: &mut BodySource,
        allowed_bytes: usize,
    ) -> Result<Turn, SendError> {
        let (bytes, is_last) = body.take(allowed_bytes);
        let sent_bytes = bytes.len() as u64;
        let sent = self.stream.send_data(bytes, is_last);
        // What was reserved and not used is for the siblings.
        self.stream.reserve_capacity(0);
        self.flow.settle(sent_bytes);
        match sent {
            Ok(()) if is_last => Ok(Turn::Last),
            Ok(()) => Ok(Turn::Used),
            Err(_) => Err(SendError::Unwanted),
        }
    }

    fn give_back(&mut self) {
        self.stream.reserve_capacity(0);
        self.flow.settle(0);
    }

    /// Ready when a turn of `wanted_bytes` could be used.
    fn poll_window(
        &mut self,
        wanted_bytes: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), SendError>> {
        let open = ready!(self.windows.poll_open(&mut self.stream, wanted_bytes, cx));
        Poll::Ready(open.map_err(|closed| match closed {
            Closed::Reset => SendError::Unwanted,
            Closed::Stalled => {
                self.stream.send_reset(Reason::CANCEL);
                SendError::Stalled
            }
        }))
    }

    /// Takes over a new priority from the client.
    fn follow_priority(&mut self, cx: &mut Context<'_>) {
        if let Some(priority) = self.subscription.take(cx) {
            self.signal = self.signal.updated(priority);
            set_urgency(&mut self.flow, self.signal);
        }
    }

    /// Ends the stream with `trailers` or an empty frame, which need neither window nor turn.
    fn end(&mut self, trailers: Option<HeaderMap>) -> Result<(), SendError> {
        let ended = match trailers {
            Some(mut trailers) => {
                remove_connection_fields(&mut trailers);
                self.stream.send_trailers(trailers)
            }
            None => self.stream.send_data(Bytes::new(), true),
        };
        ended.map_err(|_| SendError::Unwanted)
    }
}

/// A reset takes back what the connection has not written, the head too: it writes while this waits.
async fn let_others_run() {
    let mut has_waited = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
