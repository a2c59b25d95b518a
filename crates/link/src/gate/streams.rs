//! The streams of a connection: jobs of their own that share a socket.
//!
//! A stream is granted what it may hand over to its connection, and is charged for it at once; the connection then writes without waiting,
//! and is charged only for what its streams have not paid yet: frames, heads, TLS records. What was paid and never sent is lost with the
//! connection.
//!
//! A stream takes part in the order while it asks, its connection is not backed up ([`Handover`]) and its siblings let it
//! ([`Siblings`]). So the starvation guard's promises hold for the stream of a connection that may go: a stream that waits for a sibling is
//! not starved by others, and once it may go it keeps the age it has.

use sooner_policy::{JobId, Time};

use super::{FlowId, FlowState, Gate};
use crate::handover::Handover;
use crate::siblings::{Sibling, Siblings, StreamOrder};
use crate::wire;

/// What a connection with streams has beyond one without.
#[derive(Debug, Default)]
pub(super) struct Streams {
    pub(super) siblings: Siblings,
    pub(super) handover: Handover,
    /// Charged when streams handed over, and not sent yet, bytes on the wire.
    prepaid_bytes: u64,
}

impl Streams {
    /// How much of `cost_bytes` was paid in advance; it is used up.
    pub(super) fn prepaid_of(&mut self, cost_bytes: u64) -> u64 {
        let covered_bytes = cost_bytes.min(self.prepaid_bytes);
        self.prepaid_bytes -= covered_bytes;
        covered_bytes
    }

    fn may_go(&self, stream: FlowId) -> bool {
        !self.handover.is_backed_up() && self.siblings.may_go(stream)
    }
}

impl Gate {
    /// The connection opens a stream; no effect if the connection is gone, and the stream may then hand over at once.
    pub fn open_stream(&mut self, connection: FlowId, stream: FlowId) {
        let Some(state) = self.flows.get_mut(&connection) else {
            return;
        };
        let streams = state.streams.get_or_insert_default();
        streams.siblings.open(stream);
        let state = FlowState {
            connection: Some(connection),
            ..FlowState::default()
        };
        self.flows.insert(stream, state);
    }

    /// The stream was granted a turn and handed over `written_bytes` of payload (0 gives the turn back); it must ask again for more.
    pub fn settle_stream(&mut self, stream: FlowId, written_bytes: u64, now: Time) {
        let Some(state) = self.flows.get_mut(&stream) else {
            return;
        };
        let Some(connection) = state.connection else {
            return;
        };
        if written_bytes > 0 {
            let cost_bytes = wire::payload_cost_bytes(written_bytes);
            let late = state.waited || self.line.waiting > usize::from(state.ready);
            self.bucket.charge(cost_bytes, late, now);
            self.line.scheduler.progress(JobId(stream), cost_bytes, now);
            self.prepay(connection, written_bytes, cost_bytes);
            self.review(connection, now);
        }
        // One that handed over comes back at once for more, if it has more: its siblings wait for that.
        let streams = self.streams_of(connection);
        let is_missed = streams.is_some_and(|streams| streams.siblings.has_behind(stream));
        let returns = written_bytes > 0 && is_missed;
        if returns {
            self.returning.insert(stream);
        }
        let settle = |sibling: &mut Sibling| {
            sibling.attained_bytes = sibling.attained_bytes.saturating_add(written_bytes);
            sibling.waits = false;
            sibling.returns = returns;
        };
        self.reorder(connection, stream, settle, now);
    }

    /// The link can take more: streams that handed over and did not come back hold up no sibling.
    pub(super) fn expect_no_longer(&mut self, now: Time) {
        for stream in std::mem::take(&mut self.returning) {
            let connection = self.flows.get(&stream).and_then(|state| state.connection);
            if let Some(connection) = connection {
                self.reorder(connection, stream, |sibling| sibling.returns = false, now);
            }
        }
    }

    /// The connection flushed.
    pub fn flushed(&mut self, connection: FlowId, now: Time) {
        if let Some(streams) = self.streams_of(connection) {
            streams.handover.flushed();
            self.review(connection, now);
        }
    }

    /// The client changed its mind: among its siblings the stream has another urgency, or another order.
    pub fn set_urgency(&mut self, stream: FlowId, urgency: u8, order: StreamOrder, now: Time) {
        let Some(connection) = self.flows.get(&stream).and_then(|state| state.connection) else {
            return;
        };
        let change = |sibling: &mut Sibling| {
            sibling.urgency = urgency;
            sibling.order = order;
        };
        self.reorder(connection, stream, change, now);
    }

    /// For how long in all the stream's connection was backed up, ns.
    pub fn backed_up_ns(&self, stream: FlowId, now: Time) -> u64 {
        let connection = self.flows.get(&stream).and_then(|state| state.connection);
        connection
            .and_then(|connection| self.flows.get(&connection)?.streams.as_deref())
            .map_or(0, |streams| streams.handover.backed_up_ns_at(now))
    }

    /// Changes a stream among its siblings and lets those go whose turn has come with it.
    pub(super) fn reorder(
        &mut self,
        connection: FlowId,
        stream: FlowId,
        change: impl FnOnce(&mut Sibling),
        now: Time,
    ) {
        let Some(streams) = self.streams_of(connection) else {
            return;
        };
        let touched = streams.siblings.change(stream, change);
        self.refresh(connection, stream, now);
        for touched in touched {
            self.refresh(connection, touched, now);
            if touched != stream
                && let Some(state) = self.flows.get_mut(&touched)
            {
                // Its turn came by what another did: it was there before.
                state.waited = state.ready;
            }
        }
    }

    /// Looks whether the connection has become backed up or is no longer, which stops or starts all its streams.
    pub(super) fn review(&mut self, connection: FlowId, now: Time) {
        let limit_bytes = self.limits.quantum_bytes;
        let Some(streams) = self.streams_of(connection) else {
            return;
        };
        let is_backed_up = streams.handover.has_enough(limit_bytes);
        if !streams.handover.note_backed_up(is_backed_up, now) {
            return;
        }
        let waiting: Vec<FlowId> = streams.siblings.waiting().collect();
        for stream in waiting {
            self.refresh(connection, stream, now);
        }
    }

    pub(super) fn streams_of(&mut self, connection: FlowId) -> Option<&mut Streams> {
        self.flows.get_mut(&connection)?.streams.as_deref_mut()
    }

    /// The names of the connection's streams.
    pub(super) fn streams_on(&mut self, connection: FlowId) -> Vec<FlowId> {
        self.streams_of(connection)
            .map_or_else(Vec::new, |streams| streams.siblings.all().collect())
    }

    fn prepay(&mut self, connection: FlowId, written_bytes: u64, cost_bytes: u64) {
        if let Some(state) = self.flows.get_mut(&connection)
            && let Some(streams) = &mut state.streams
        {
            state.charged_bytes += cost_bytes;
            streams.prepaid_bytes += cost_bytes;
            streams.handover.handed(written_bytes);
        }
    }

    /// Puts the stream into the order, or takes it out.
    fn refresh(&mut self, connection: FlowId, stream: FlowId, now: Time) {
        let streams = self
            .flows
            .get(&connection)
            .and_then(|state| state.streams.as_deref());
        let ready = streams.is_some_and(|streams| streams.may_go(stream));
        if let Some(state) = self.flows.get_mut(&stream) {
            self.line.set_ready(stream, state, ready, now);
        }
    }
}
