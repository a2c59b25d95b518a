//! What is kept of a connection or a stream beside the gate: who to wake, and the account of its responses.

use std::collections::{BTreeSet, VecDeque};
use std::task::Waker;

use sooner_policy::{ClientId, Time};

use super::OnEnd;
use crate::gate::FlowId;
use crate::path::PathEstimate;

/// A connection or a stream.
#[derive(Default)]
pub(super) struct FlowRecord {
    pub(super) waker: Option<Waker>,
    pub(super) responses: VecDeque<Response>,
    waits_since: Option<WaitStart>,
    waited_ns: u64,
    pub(super) sent_bytes: u64,
    /// What had been sent when the present job began.
    pub(super) job_from_bytes: u64,
    /// Bytes promised by `start`, sent or not; `None` once a size was unknown.
    pub(super) promised_bytes: Option<u64>,
    pub(super) has_had_response: bool,
    pub(super) band: Option<u8>,
    /// Of a connection that speaks another protocol by now.
    pub(super) tunnel: Option<Tunnel>,
    /// Of a connection: its client, where that is known.
    pub(super) client: Option<ClientId>,
    /// Of a connection: the network to its client, where somebody looks at it.
    pub(super) path: Option<Box<PathEstimate>>,
    /// Of a stream: its connection.
    pub(super) connection: Option<FlowId>,
    /// Of a connection: its streams.
    pub(super) streams: Option<Box<StreamRecords>>,
}

/// A connection on which every burst of bytes is a job.
#[derive(Clone, Copy)]
pub(super) struct Tunnel {
    pub(super) class: u8,
    /// Between a write and the flush after it.
    pub(super) is_in_burst: bool,
}

/// The streams of a connection.
#[derive(Default)]
pub(super) struct StreamRecords {
    /// Those that are open, or finished and not flushed.
    pub(super) present: BTreeSet<FlowId>,
    /// Those of which everything is written; their responses end at the next flush.
    pub(super) written: Vec<FlowId>,
}

/// A response from its start to its end.
pub(super) struct Response {
    pub(super) job: u64,
    pub(super) on_end: OnEnd,
    pub(super) started_at: Time,
    pub(super) rank_at_start: u64,
    pub(super) body_done: bool,
    pub(super) waited_before_ns: u64,
    pub(super) sent_before_bytes: u64,
    pub(super) all_sent_before_bytes: u64,
}

/// When a wait began, and for how long the connection had been backed up by then.
#[derive(Clone, Copy)]
struct WaitStart {
    at: Time,
    backed_up_ns: u64,
}

impl FlowRecord {
    /// Nothing was promised on it yet; a stream of `connection`, or a connection.
    pub(super) fn new(connection: Option<FlowId>) -> Self {
        Self {
            promised_bytes: Some(0),
            connection,
            ..Self::default()
        }
    }

    /// Time during which its own connection is backed up does not count: nobody else is waited for.
    pub(super) fn begin_wait(&mut self, waker: &Waker, backed_up_ns: u64, now: Time) {
        self.waits_since.get_or_insert(WaitStart {
            at: now,
            backed_up_ns,
        });
        match &mut self.waker {
            Some(kept) => kept.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    pub(super) fn end_wait(&mut self, backed_up_ns: u64, now: Time) {
        self.waited_ns = self.waited_ns_at(backed_up_ns, now);
        self.waits_since = None;
    }

    pub(super) fn waited_ns_at(&self, backed_up_ns: u64, now: Time) -> u64 {
        let waits_ns = self.waits_since.map_or(0, |start| {
            let backed_up_ns = backed_up_ns.saturating_sub(start.backed_up_ns);
            now.since(start.at).saturating_sub(backed_up_ns)
        });
        self.waited_ns + waits_ns
    }

    /// Whether there is something to send now, or will be shortly.
    pub(super) fn has_job(&self) -> bool {
        !self.responses.is_empty() && self.tunnel.is_none_or(|tunnel| tunnel.is_in_burst)
    }

    /// Everything was flushed: whatever comes next is another job.
    pub(super) fn end_job(&mut self) {
        self.job_from_bytes = self.sent_bytes;
        if let Some(tunnel) = &mut self.tunnel {
            tunnel.is_in_burst = false;
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.waits_since.is_some()
    }

    /// Bytes of the present job still to be sent, if the size is known.
    pub(super) fn remaining_bytes(&self) -> Option<u64> {
        self.promised_bytes
            .map(|promised| promised.saturating_sub(self.sent_bytes))
    }

    /// Bytes sent of the present job.
    pub(super) fn attained_bytes(&self) -> u64 {
        self.sent_bytes - self.job_from_bytes
    }

    /// The size of the present job in bytes, if it is known.
    pub(super) fn size_bytes(&self) -> Option<u64> {
        self.promised_bytes
            .map(|promised| promised.saturating_sub(self.job_from_bytes))
    }
}
