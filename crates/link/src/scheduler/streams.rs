//! The streams of a connection: jobs of their own that share a socket.
//!
//! A stream is granted what it may hand over to its connection, and is charged for it at once; the
//! connection then writes without waiting, and is charged only for what its streams have not paid
//! yet: frames, heads, TLS records. What was paid and never sent is lost with the connection.
//!
//! A stream takes part in the order while it asks, its connection is not backed up ([`SendBuffer`])
//! and its siblings let it ([`Siblings`]). So the starvation guard's promises hold for the stream
//! of a connection that may go: a stream that waits for a sibling is not starved by others, and
//! once it may go it keeps the age it has.
//!
//! [`SendBuffer`]: crate::send_buffer::SendBuffer
//! [`Siblings`]: crate::siblings::Siblings

use super::flow::{Flow, Stream, Streams};
use super::{FlowId, LinkScheduler};
use crate::siblings::{Sibling, StreamOrder, StreamRule};
use crate::wire;
use sooner_policy::{JobId, Time};

impl Streams {
    /// Whether the stream waits, and its turn is up to the policy alone.
    pub(super) fn may_go(&self, stream: FlowId, sibling: &Sibling) -> bool {
        !self.send_buffer.is_backed_up() && self.siblings.may_go(stream, sibling)
    }
}

impl LinkScheduler {
    /// The connection opens a stream; on a connection that is gone it is never told to wait.
    pub fn open_stream(&mut self, connection: FlowId, now: Time) -> FlowId {
        let stream = self.new_name();
        let Some(flow) = self.flows.get_mut(&connection) else {
            return stream;
        };
        let streams = flow.streams.get_or_insert_default();
        streams.present.insert(stream);
        if !flow.is_ordered {
            self.order_connection(connection, now);
        }
        self.flows.insert(stream, Flow::stream(connection));
        stream
    }

    /// The stream was granted a turn and handed over `written_bytes` of payload (0 gives the turn
    /// back); it must ask again for more.
    pub fn settle_stream(&mut self, stream: FlowId, written_bytes: u64, now: Time) {
        let Some(flow) = self.flows.get_mut(&stream) else {
            return;
        };
        flow.account.sent_bytes += written_bytes;
        self.response_bytes += written_bytes;
        let Some(Stream {
            connection,
            sibling,
        }) = flow.stream.filter(|_| flow.is_ordered)
        else {
            return;
        };
        self.audit.settle(&mut flow.granted_bytes, written_bytes);
        if written_bytes > 0 {
            flow.wrote_at = Some(now);
            let cost_bytes = wire::payload_cost_bytes(written_bytes);
            let credit_ns = self.limits.credit_of(self.turns.is_late(flow));
            let band = flow.granted_band;
            self.lanes.charge(band, cost_bytes, credit_ns, now);
            let leaves_at = self.lanes.free_at(band);
            let scheduler = &mut self.turns.scheduler;
            scheduler.progress(JobId(stream), cost_bytes, now);
            if let Some(flow) = self.flows.get_mut(&connection) {
                flow.prepay(written_bytes, cost_bytes);
                flow.paid_bytes += cost_bytes;
                flow.leaves_at = leaves_at;
            }
            self.review_send_buffer(connection, now);
        }
        // One that handed over comes back at once for more, if it has more: its siblings wait for
        // that.
        let streams = self.streams_of(connection);
        let is_missed = streams.is_some_and(|streams| streams.siblings.has_behind(&sibling));
        let returns = written_bytes > 0 && is_missed;
        if returns {
            self.returning.insert(stream);
        }
        let settle = |sibling: &mut Sibling| sibling.settle(written_bytes, returns);
        self.reorder(stream, settle, now);
        self.check();
    }

    /// The stream's urgency and its order among its siblings, as the client wants them now.
    pub fn set_urgency(&mut self, stream: FlowId, urgency: u8, order: StreamOrder, now: Time) {
        let order = match self.stream_rule {
            StreamRule::Standard => order,
            StreamRule::Size => StreamOrder::BySize,
        };
        let change = |sibling: &mut Sibling| {
            sibling.urgency = urgency;
            sibling.order = order;
        };
        self.reorder(stream, change, now);
        self.check();
    }

    /// The stream has handed over everything and wants no more turns; its response is not over yet.
    pub fn finish_stream(&mut self, stream: FlowId, now: Time) {
        let connection = self.connection_of_stream(stream);
        let backed_up_ns = self.backed_up_ns(connection, now);
        if let Some(flow) = self.flows.get_mut(&stream) {
            flow.account.end_wait(backed_up_ns, now);
            flow.account.end_bodies();
            self.stop_ordering(stream, now);
            self.check();
        }
    }

    /// The connection has written the last of what the stream handed over: the stream's response
    /// ends at the connection's next flush.
    pub fn stream_written(&mut self, stream: FlowId) {
        let connection = self.connection_of_stream(stream);
        if let Some(streams) = connection.and_then(|connection| self.streams_of(connection)) {
            streams.written.push(stream);
        }
    }

    /// The link can take more: streams that handed over and did not come back hold up no sibling.
    pub(super) fn expect_no_longer(&mut self, now: Time) {
        for stream in std::mem::take(&mut self.returning) {
            self.reorder(stream, |sibling| sibling.returns = false, now);
        }
    }

    /// For how long in all a stream's connection was backed up, ns; 0 for a connection.
    pub(super) fn backed_up_ns(&self, connection: Option<FlowId>, now: Time) -> u64 {
        connection
            .and_then(|connection| self.flows.get(&connection)?.streams.as_deref())
            .map_or(0, |streams| streams.send_buffer.backed_up_ns_at(now))
    }

    pub(super) fn connection_of_stream(&self, stream: FlowId) -> Option<FlowId> {
        let stream = self.flows.get(&stream)?.stream?;
        Some(stream.connection)
    }

    /// Changes a stream among its siblings and lets its siblings go where that gives them their
    /// turn.
    pub(super) fn reorder(&mut self, stream: FlowId, change: impl FnOnce(&mut Sibling), now: Time) {
        let flow = self.flows.get_mut(&stream).filter(|flow| flow.is_ordered);
        let Some(on) = flow.and_then(|flow| flow.stream.as_mut()) else {
            return;
        };
        let (connection, before) = (on.connection, on.sibling);
        change(&mut on.sibling);
        let after = on.sibling;
        let Some(streams) = self.streams_of(connection) else {
            return;
        };
        let affected = streams.siblings.change(stream, &before, &after);
        self.refresh(connection, stream, now);
        for sibling in affected {
            self.refresh(connection, sibling, now);
            if let Some(flow) = self.flows.get_mut(&sibling) {
                // Its turn came by what another did: it was there before.
                flow.has_waited = flow.is_ready;
            }
        }
    }

    /// Looks whether the connection has become backed up or is no longer, which stops or starts all
    /// its streams.
    pub(super) fn review_send_buffer(&mut self, connection: FlowId, now: Time) {
        let limit_bytes = self.limits.quantum_bytes;
        let Some(streams) = self.streams_of(connection) else {
            return;
        };
        let is_backed_up = streams.send_buffer.has_enough(limit_bytes);
        if !streams.send_buffer.note_backed_up(is_backed_up, now) {
            return;
        }
        for stream in streams.siblings.waiting() {
            self.refresh(connection, stream, now);
        }
    }

    pub(super) fn streams_of(&mut self, connection: FlowId) -> Option<&mut Streams> {
        self.flows.get_mut(&connection)?.streams.as_deref_mut()
    }

    /// The names of the connection's streams.
    pub(super) fn streams_on(&mut self, connection: FlowId) -> Vec<FlowId> {
        self.streams_of(connection)
            .map_or_else(Vec::new, |streams| {
                streams.present.iter().copied().collect()
            })
    }

    /// Puts the stream into the order, or takes it out.
    fn refresh(&mut self, connection: FlowId, stream: FlowId, now: Time) {
        let connection = self.flows.get(&connection);
        let streams = connection.and_then(|connection| connection.streams.as_deref());
        let on = self.flows.get(&stream).and_then(|flow| flow.stream);
        let may_go = streams.zip(on);
        let may_go = may_go.is_some_and(|(streams, on)| streams.may_go(stream, &on.sibling));
        if let Some(flow) = self.flows.get_mut(&stream) {
            self.turns.set_ready(stream, flow, may_go, now);
        }
    }
}
