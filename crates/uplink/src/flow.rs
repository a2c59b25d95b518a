//! A connection as the server sees it: it tells what is coming and hears how it went.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sooner_policy::ClientId;

use crate::gate::FlowId;
use crate::shared::Shared;
use crate::stream_flow::StreamFlow;

/// A response that is about to be written.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResponseStart {
    /// Bytes of the body, if known.
    pub body_bytes: Option<u64>,
    /// Bytes of the head; an estimate will do.
    pub head_bytes: u32,
    /// What is written around head and body: TLS records ([`crate::wire::tls_overhead_bytes`]), chunk sizes, frames; an estimate will do.
    pub overhead_bytes: u64,
    /// Its class, across all connections: 0 goes before 1, whatever the policy says. What a client says must not decide it.
    pub class: u8,
    /// Whether another protocol follows, for as long as the connection lasts (status 101). Each of its bursts, from a write to the flush
    /// that leaves nothing to write, is then a job of its own: as one job it would be the oldest of all for ever, and of the lowest
    /// rank after all it ever sent.
    pub is_tunnel: bool,
}

impl ResponseStart {
    /// Everything that will be written, bytes, if known.
    pub fn size_bytes(&self) -> Option<u64> {
        let around_bytes = u64::from(self.head_bytes).saturating_add(self.overhead_bytes);
        self.body_bytes
            .map(|body_bytes| body_bytes.saturating_add(around_bytes))
    }
}

/// How a response went: the fields that say why it took as long as it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobReport {
    /// Time the response was ready to be written and others went, ns.
    pub wait_ns: u64,
    /// The rest of its time, ns: being written, or waiting for its own client.
    pub service_ns: u64,
    /// Bytes written for it, head included; of a stream, the payload of its DATA frames.
    pub sent_bytes: u64,
    /// The policy in force.
    pub policy: &'static str,
    /// Its rank when it started; lower goes first.
    pub rank_at_start: u64,
    /// Bytes written for other responses between its start and its end.
    pub bytes_of_others_meanwhile: u64,
    /// Whether all of it was handed to the kernel.
    pub completed: bool,
}

impl JobReport {
    /// Of a response whose connection was gone before its first byte.
    pub(crate) fn never_sent(policy: &'static str) -> Self {
        Self {
            wait_ns: 0,
            service_ns: 0,
            sent_bytes: 0,
            policy,
            rank_at_start: 0,
            bytes_of_others_meanwhile: 0,
            completed: false,
        }
    }
}

/// A connection's handle for the code that makes responses.
#[derive(Clone)]
pub struct Flow {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: FlowId,
    pub(crate) signals: Signals,
}

/// What the code that makes responses tells the socket of the same connection without the uplink's lock.
#[derive(Clone, Default)]
pub(crate) struct Signals(Arc<SignalBits>);

#[derive(Default)]
struct SignalBits {
    body_done: AtomicBool,
    has_streams: AtomicBool,
    /// Whether a response has begun; kept only where somebody looks.
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
    /// What the connection writes from now on are TLS records of up to `payload_bytes`, of which the client can read nothing before it has
    /// all of it.
    pub fn in_records(&self, payload_bytes: u64) {
        self.shared
            .lock()
            .in_records(self.id, payload_bytes + crate::wire::TLS_RECORD_BYTES);
    }

    /// The connection is `client`'s, from its next response on: what the starvation guard gives is shared by clients, not by
    /// connections or responses. Without this word the connection counts as a client.
    pub fn of_client(&self, client: ClientId) {
        self.shared.lock().of_client(self.id, client);
    }

    /// A response comes; `on_end` is called once, when it is written or its connection is gone.
    ///
    /// `101 Switching Protocols` with [`ResponseStart::is_tunnel`] lasts as long as its connection, and what the other protocol writes takes
    /// its turns. Without, it is a response like others, over when it is flushed; what is then written belongs to no response, is written at
    /// once, and is charged.
    pub fn start(&self, response: ResponseStart, on_end: impl FnOnce(JobReport) + Send + 'static) {
        let body_done = self.signals.take_body_done();
        if self.shared.asks_for_paths {
            self.signals.set_begun();
        }
        let now = self.shared.now();
        let started = {
            let mut core = self.shared.lock();
            if body_done {
                core.body_done(self.id);
            }
            core.start(self.id, response, Box::new(on_end), now)
        };
        self.shared.report_start(started, now);
    }

    /// The body of the response started last has given its last frame, or was dropped.
    pub fn body_done(&self) {
        self.signals.set_body_done();
    }

    /// The connection carries several responses at a time: a handle for one of them. The connection itself then announces none, and its
    /// socket never waits.
    ///
    /// Streams are to be opened in the order in which they were requested, within a tokio runtime.
    pub fn open_stream(&self) -> StreamFlow {
        self.signals.set_has_streams();
        StreamFlow::open(self.shared.clone(), self.id)
    }
}
