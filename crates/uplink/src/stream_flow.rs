//! A stream of a connection as the server sees it: a response that asks before it hands its payload
//! to the HTTP/2 engine.
//!
//! The calls, for every stream: [`StreamFlow::start`]; then, whenever there is payload that the
//! stream's and the connection's flow-control windows allow, [`StreamFlow::poll_grant`] and
//! [`StreamFlow::settle`]; [`StreamFlow::finished`] when everything was handed over. All from the
//! thread that drives the connection, and not from within it, so that what was settled is written
//! before the connection's next flush.
//!
//! What was handed over is not sent yet: an engine drops what it holds of a stream that the client
//! resets. So the response ends only when what the engine writes was seen to hold its last byte
//! ([`FinishedStream::written`]), and with the flush after that.

use crate::shared_link::SharedLink;
use sooner_link::{Answer, FlowId, JobReport, ResponseStart, StreamOrder};
use std::sync::Arc;
use std::task::{Context, Poll};

/// A stream's handle; dropping it gives the response up.
pub struct StreamFlow {
    stream: FinishedStream,
}

/// The handle of a stream that handed over everything; dropping it gives up what was not written.
pub struct FinishedStream {
    shared: Arc<SharedLink>,
    id: FlowId,
    is_written: bool,
}

impl StreamFlow {
    pub(crate) fn open(shared: Arc<SharedLink>, connection: FlowId) -> Self {
        let id = shared.open_stream(connection);
        Self {
            stream: FinishedStream {
                shared,
                id,
                is_written: false,
            },
        }
    }

    /// The stream's response comes; `on_end` is called once, when it is written, given up, or its
    /// connection is gone.
    ///
    /// Its size for the policy is the body alone: head and frames pass without a grant.
    pub fn start(&self, response: ResponseStart, on_end: impl FnOnce(JobReport) + Send + 'static) {
        let FinishedStream { shared, id, .. } = &self.stream;
        shared.start(*id, response, Box::new(on_end), false);
    }

    /// How much of `want_bytes` of payload may be handed over now, at least 1;
    /// [`settle`](Self::settle) must follow. Pending while others go first or the connection has
    /// enough to send. Wanting nothing is granted at once and needs no `settle`.
    pub fn poll_grant(&mut self, cx: &mut Context<'_>, want_bytes: u64) -> Poll<u64> {
        if want_bytes == 0 {
            return Poll::Ready(0);
        }
        let FinishedStream { shared, id, .. } = &self.stream;
        match shared.ask_stream(*id, want_bytes, cx.waker()) {
            Answer::Go(bytes) => Poll::Ready(bytes),
            Answer::Wait => Poll::Pending,
        }
    }

    /// `written_bytes` of the grant were handed over; 0 gives the turn back.
    pub fn settle(&mut self, written_bytes: u64) {
        let FinishedStream { shared, id, .. } = &self.stream;
        shared.settle_stream(*id, written_bytes);
    }

    /// The response is `additional_bytes` larger than was estimated.
    pub fn enlarge(&mut self, additional_bytes: u64) {
        let FinishedStream { shared, id, .. } = &self.stream;
        shared.change(|link, now| link.enlarge(*id, additional_bytes, now));
    }

    /// Everything was handed over (at once if there is no body): there is nothing left to wait for
    /// but that it is written.
    pub fn finished(self) -> FinishedStream {
        let FinishedStream { shared, id, .. } = &self.stream;
        shared.change(|link, now| link.finish_stream(*id, now));
        self.stream
    }

    /// The stream's urgency from now on, 0 first, and its order among those of the same urgency:
    /// both among the streams of its connection only. Before or after the start, as often as the
    /// client likes.
    pub fn set_urgency(&mut self, urgency: u8, order: StreamOrder) {
        let FinishedStream { shared, id, .. } = &self.stream;
        shared.change(|link, now| link.set_urgency(*id, urgency, order, now));
    }
}

impl FinishedStream {
    /// The last of it was written to the connection: the response ends, completed, at the
    /// connection's next flush.
    pub fn written(mut self) {
        self.is_written = true;
        self.shared.lock().link.stream_written(self.id);
    }
}

impl Drop for FinishedStream {
    fn drop(&mut self) {
        if !self.is_written {
            let effects = self.shared.change(|link, now| link.close(self.id, now));
            self.shared.conclude(effects);
        }
    }
}
