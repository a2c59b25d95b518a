//! A connection as the server sees it: it tells what is coming and hears how it went.

use crate::shared_link::SharedLink;
use crate::stream_flow::StreamFlow;
use sooner_link::{FlowId, JobReport, ResponseStart, wire};
use sooner_policy::Payer;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A connection's handle for the code that makes responses.
#[derive(Clone)]
pub struct Flow {
    pub(crate) shared: Arc<SharedLink>,
    pub(crate) id: FlowId,
    pub(crate) signals: Signals,
}

/// What the code that makes responses tells the socket of the same connection without the uplink's
/// lock.
#[derive(Clone, Default)]
pub(crate) struct Signals(Arc<SignalBits>);

#[derive(Default)]
struct SignalBits {
    body_done: AtomicBool,
    has_streams: AtomicBool,
    /// Whether a response has begun; kept only where the policy asks for paths.
    begun: AtomicBool,
}

impl Signals {
    /// Whether the body of the response started last is done; said by the body.
    pub(crate) fn is_body_done(&self) -> bool {
        self.0.body_done.load(Ordering::Relaxed)
    }

    pub(crate) fn take_body_done(&self) -> bool {
        self.0.body_done.swap(false, Ordering::Relaxed)
    }

    fn set_body_done(&self) {
        self.0.body_done.store(true, Ordering::Relaxed);
    }

    /// Whether a response has begun since this was last asked.
    pub(crate) fn take_begun(&self) -> bool {
        self.0.begun.swap(false, Ordering::Relaxed)
    }

    fn set_begun(&self) {
        self.0.begun.store(true, Ordering::Relaxed);
    }

    /// Whether the connection has or had streams.
    pub(crate) fn has_streams(&self) -> bool {
        self.0.has_streams.load(Ordering::Relaxed)
    }

    fn set_has_streams(&self) {
        self.0.has_streams.store(true, Ordering::Relaxed);
    }
}

impl Flow {
    /// What the connection writes from now on are TLS records of up to `payload_bytes`, of which
    /// the client can read nothing before it has all of it.
    pub fn in_records(&self, payload_bytes: u64) {
        self.shared
            .lock()
            .link
            .in_records(self.id, payload_bytes + wire::TLS_RECORD_BYTES);
    }

    /// The connection is `client`'s, from its next response on: what the starvation guard gives is
    /// shared by clients, not by connections or responses, and where the order is by client this
    /// one is charged. Without this word the connection counts as a client.
    pub fn of_client(&self, client: Payer) {
        self.shared.lock().link.of_client(self.id, client);
    }

    /// A response comes; `on_end` is called once, when it is written or its connection is gone.
    ///
    /// `101 Switching Protocols` with [`ResponseStart::is_tunnel`] lasts as long as its connection,
    /// and what the other protocol writes takes its turns. Without, it is a response like others,
    /// over when it is flushed; what is then written belongs to no response, is written at once,
    /// and is charged.
    pub fn start(&self, response: ResponseStart, on_end: impl FnOnce(JobReport) + Send + 'static) {
        let body_done = self.signals.take_body_done();
        if self.shared.asks_for_paths {
            self.signals.set_begun();
        }
        let on_end = Box::new(on_end);
        self.shared.start(self.id, response, on_end, body_done);
    }

    /// The response started last is `additional_bytes` larger than was estimated.
    pub fn enlarge(&self, additional_bytes: u64) {
        self.shared
            .change(|link, now| link.enlarge(self.id, additional_bytes, now));
    }

    /// The body of the response started last has given its last frame, or was dropped.
    pub fn body_done(&self) {
        self.signals.set_body_done();
    }

    /// The connection carries several responses at a time: a handle for one of them. The connection
    /// itself then announces none, and its socket never waits.
    ///
    /// Streams are to be opened in the order in which they were requested, and ask within a tokio
    /// runtime.
    pub fn open_stream(&self) -> StreamFlow {
        self.signals.set_has_streams();
        StreamFlow::open(self.shared.clone(), self.id)
    }
}
