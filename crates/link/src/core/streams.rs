//! Streams: from their opening to the flush that ends their responses.

use sooner_policy::{GuardLimits, PolicyName, Time};

use super::record::FlowRecord;
use super::{Core, Ended};
use crate::gate::{FlowId, Gate, GateLimits};
use crate::siblings::StreamOrder;
use crate::siblings::StreamRule;

/// A stream that was opened.
pub struct OpenedStream {
    pub stream: FlowId,
    /// Whether it is the first of an uplink without pacing, so that nobody watches over those who are called yet.
    pub wants_pacer: bool,
}

impl Core {
    /// The connection opens a stream; on a connection that is gone it is never told to wait.
    pub fn open_stream(&mut self, connection: FlowId, now: Time) -> OpenedStream {
        let stream = self.new_name();
        let path = self.path_of(connection);
        let Some(record) = self.flows.get_mut(&connection) else {
            return OpenedStream {
                stream,
                wants_pacer: false,
            };
        };
        let streams = record.streams.get_or_insert_default();
        streams.present.insert(stream);
        let client = record.client;
        self.flows.insert(stream, FlowRecord::new(Some(connection)));
        let wants_pacer = self.gate.is_none();
        let policy = self.order.policy;
        let gate = self.gate.get_or_insert_with(|| gate_without_rate(policy));
        if !gate.knows(connection) {
            gate.open(connection, now);
            gate.observe(connection, path, now);
            if let Some(client) = client {
                gate.of_client(connection, client);
            }
        }
        gate.open_stream(connection, stream);
        OpenedStream {
            stream,
            wants_pacer,
        }
    }

    /// The stream was granted a turn and handed over `written_bytes`; 0 gives the turn back.
    pub fn settle_stream(&mut self, stream: FlowId, written_bytes: u64, now: Time) {
        let Some(record) = self.flows.get_mut(&stream) else {
            return;
        };
        record.sent_bytes += written_bytes;
        self.response_bytes += written_bytes;
        if let Some(gate) = &mut self.gate {
            gate.settle_stream(stream, written_bytes, now);
        }
    }

    /// The stream's urgency and its order among its siblings, as the client wants them now.
    pub fn set_urgency(&mut self, stream: FlowId, urgency: u8, order: StreamOrder, now: Time) {
        let order = match self.order.streams {
            StreamRule::Standard => order,
            StreamRule::Size => StreamOrder::BySize,
        };
        if let Some(gate) = &mut self.gate {
            gate.set_urgency(stream, urgency, order, now);
        }
    }

    /// The stream has handed over everything and wants no more turns; its response is not over yet.
    pub fn finish_stream(&mut self, stream: FlowId, now: Time) {
        let Some(record) = self.flows.get_mut(&stream) else {
            return;
        };
        if let Some(gate) = &mut self.gate {
            record.end_wait(gate.backed_up_ns(stream, now), now);
            gate.close(stream, now);
        }
        let responses = record.responses.iter_mut();
        responses.for_each(|response| response.body_done = true);
    }

    /// The engine has written the last of what the stream handed over; its response ends at the connection's next flush.
    pub fn stream_written(&mut self, stream: FlowId) {
        let connection = self.flows.get(&stream).and_then(|record| record.connection);
        if let Some(connection) = connection.and_then(|flow| self.flows.get_mut(&flow))
            && let Some(streams) = &mut connection.streams
        {
            streams.written.push(stream);
        }
    }

    /// The stream is given up.
    pub fn close_stream(&mut self, stream: FlowId, now: Time) -> Vec<Ended> {
        let ended = self.end(stream, false, now);
        if let Some(gate) = &mut self.gate {
            gate.close(stream, now);
        }
        self.forget_stream(stream);
        ended
    }

    /// Ends the responses that are written now that the connection has flushed.
    pub(super) fn end_written_streams(
        &mut self,
        connection: FlowId,
        ended: &mut Vec<Ended>,
        now: Time,
    ) {
        if let Some(gate) = &mut self.gate {
            gate.flushed(connection, now);
        }
        let record = self.flows.get_mut(&connection);
        let Some(streams) = record.and_then(|record| record.streams.as_mut()) else {
            return;
        };
        for stream in std::mem::take(&mut streams.written) {
            ended.append(&mut self.end(stream, true, now));
            self.forget_stream(stream);
        }
    }

    fn forget_stream(&mut self, stream: FlowId) {
        let record = self.flows.remove(&stream);
        let connection = record.and_then(|record| record.connection);
        if let Some(connection) = connection.and_then(|flow| self.flows.get_mut(&flow))
            && let Some(streams) = &mut connection.streams
        {
            streams.present.remove(&stream);
        }
    }
}

/// The order among streams where no link is metered: the policy's if one was given, else in turns as other servers do.
fn gate_without_rate(policy: Option<PolicyName>) -> Gate {
    let limits = GateLimits::without_rate();
    let quantum = limits.quantum_wire_bytes();
    let guard = GuardLimits::with_turn(quantum);
    let policy = policy.unwrap_or(PolicyName::Fair);
    Gate::new(limits, policy.scheduler(quantum, Some(guard)))
}
