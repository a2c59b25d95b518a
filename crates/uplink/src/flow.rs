//! A connection as the server sees it: it tells what is coming and hears how it went.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::gate::FlowId;
use crate::uplink::Shared;

/// A response that is about to be written.
#[derive(Clone, Copy, Debug)]
pub struct ResponseStart {
    /// Bytes of the body, if known.
    pub body_bytes: Option<u64>,
    /// Bytes of the head; an estimate will do.
    pub head_bytes: u32,
    /// Its class; 0 goes before 1.
    pub class: u8,
}

/// How a response went: the fields that say why it took as long as it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobReport {
    /// Time the response was ready to be written and others went, ns.
    pub wait_ns: u64,
    /// The rest of its time, ns: being written, or waiting for its own client.
    pub service_ns: u64,
    /// Bytes written for it, head included.
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
    pub(crate) body_done: BodyDone,
}

/// Whether the body of the response started last is done; said by the body, heard by the stream, without the uplink's lock.
#[derive(Clone, Default)]
pub(crate) struct BodyDone(Arc<AtomicBool>);

impl BodyDone {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Flow {
    /// A response comes; `on_end` is called once, when it is written or its connection is gone.
    pub fn start(&self, response: ResponseStart, on_end: impl FnOnce(JobReport) + Send + 'static) {
        let body_done = self.body_done.take();
        let now = self.shared.now();
        let gone = {
            let mut core = self.shared.lock();
            if body_done {
                core.body_done(self.id);
            }
            core.start(self.id, response, Box::new(on_end), now)
        };
        if let Some((on_end, report)) = gone {
            on_end(report);
        }
    }

    /// The body of the response started last has given its last frame, or was dropped.
    pub fn body_done(&self) {
        self.body_done.0.store(true, Ordering::Relaxed);
    }
}
