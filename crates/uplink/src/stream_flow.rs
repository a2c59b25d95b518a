//! A stream of a connection as the server sees it: a response that asks before it hands its payload to the HTTP/2 engine.
//!
//! The calls, for every stream: [`StreamFlow::start`]; then, whenever there is payload that the stream's and the connection's flow-control
//! windows allow, [`StreamFlow::poll_grant`] and [`StreamFlow::settle`]; [`StreamFlow::finished`] when everything was handed over. All from
//! the thread that drives the connection, and not from within it, so that what was settled is written before the connection's next flush.

use std::sync::Arc;
use std::task::{Context, Poll};

use crate::flow::{JobReport, ResponseStart};
use crate::gate::{Answer, FlowId};
use crate::shared::Shared;
use crate::siblings::StreamOrder;

/// A stream's handle; dropping it gives the response up, unless it is finished.
pub struct StreamFlow {
    shared: Arc<Shared>,
    id: FlowId,
    is_finished: bool,
}

impl StreamFlow {
    pub(crate) fn open(shared: Arc<Shared>, connection: FlowId) -> Self {
        let id = shared.open_stream(connection);
        Self {
            shared,
            id,
            is_finished: false,
        }
    }

    /// The stream's response comes; `on_end` is called once, when it is written, given up, or its connection is gone.
    ///
    /// Its size for the policy is the body alone: head and frames pass without a grant.
    pub fn start(&self, response: ResponseStart, on_end: impl FnOnce(JobReport) + Send + 'static) {
        let now = self.shared.now();
        let started = self
            .shared
            .lock()
            .start(self.id, response, Box::new(on_end), now);
        self.shared.report_start(started, now);
    }

    /// How much of `want_bytes` of payload may be handed over now, at least 1; [`settle`](Self::settle) must follow. Pending while others go
    /// first or the connection has enough to send. Wanting nothing is granted at once and needs no `settle`.
    pub fn poll_grant(&mut self, cx: &mut Context<'_>, want_bytes: u64) -> Poll<u64> {
        if want_bytes == 0 {
            return Poll::Ready(0);
        }
        match self.shared.ask_stream(self.id, want_bytes, cx.waker()) {
            Answer::Go(bytes) => Poll::Ready(bytes),
            Answer::Wait => Poll::Pending,
        }
    }

    /// `written_bytes` of the grant were handed over; 0 gives the turn back.
    pub fn settle(&mut self, written_bytes: u64) {
        self.shared.settle_stream(self.id, written_bytes);
    }

    /// Everything was handed over (at once if there is no body): the response ends when the connection has written it.
    pub fn finished(&mut self) {
        if !std::mem::replace(&mut self.is_finished, true) {
            self.shared.finish_stream(self.id);
        }
    }

    /// The stream's class from now on, and its order among its siblings; before or after the start (whose class then holds), as often as the
    /// client likes.
    pub fn set_urgency(&mut self, class: u8, order: StreamOrder) {
        self.shared.set_urgency(self.id, class, order);
    }
}

impl Drop for StreamFlow {
    fn drop(&mut self) {
        if !self.is_finished {
            self.shared.close_stream(self.id);
        }
    }
}
