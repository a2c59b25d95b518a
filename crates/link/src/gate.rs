//! Which connection may write, how much, and when the next one may.
//!
//! Sans-IO: events and the time come in, answers go out. A connection is a flow; a flow has at most one job, the responses it still has to
//! write. The calls of a flow: [`open`](Gate::open); [`start`](Gate::start) for every response; [`ask`](Gate::ask) before a write and
//! [`settle`](Gate::settle) after it; [`finish`](Gate::finish) when nothing is left to write; [`close`](Gate::close).
//!
//! A flow takes part in the order only from an `ask` to the `settle` after it: a flow that is not asking
//! (its client is slow, its file not read yet) never keeps the link idle. Grants are small, so the order is never wrong for longer than one.
//!
//! A connection may carry streams instead of a job of its own ([`open_stream`](Gate::open_stream)). Each stream is a flow with a job; what
//! it is granted it hands over to the connection, which writes without waiting.

mod limits;
mod line;
mod streams;

use std::collections::{BTreeMap, BTreeSet};

use sooner_policy::{Arrival, ClientId, JobId, Path, Scheduler, Time};

use crate::bucket::Bucket;
use crate::siblings::Sibling;
use crate::wire;
pub use limits::GateLimits;
use line::Line;
use streams::Streams;

/// Names a connection or a stream; chosen by the caller, never used twice, and higher for a stream that was requested later.
pub type FlowId = u64;

/// The most bytes of no response in one write: handshakes, refusals, frames of HTTP/2, upgraded connections.
const UNORDERED_BYTES_MAX: u64 = 65_536;

/// Where the names of clients begin that are connections: an address names a client by the first half of an IPv6 address,
/// and 8000::/16 is not assigned.
const NAMELESS_CLIENTS: u64 = 1 << 63;

/// What a flow may do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Write at most this many bytes, then settle.
    Go(u64),
    /// Not now; the flow will be named by [`Gate::call`].
    Wait,
}

/// Orders the writes of all flows onto one link.
pub struct Gate {
    limits: GateLimits,
    line: Line,
    bucket: Bucket,
    flows: BTreeMap<FlowId, FlowState>,
    /// Streams that handed over and have not asked again: their siblings still let them go first.
    returning: BTreeSet<FlowId>,
}

#[derive(Debug, Default)]
struct FlowState {
    has_job: bool,
    has_had_job: bool,
    /// Whether the scheduler may give it a turn.
    ready: bool,
    /// Whether it could have gone before the turn it has now.
    waited: bool,
    /// Bytes charged to the link for this connection, packet headers included, without those the kernel does not count.
    charged_bytes: u64,
    /// What its client can read nothing of before it has all of it, bytes on the wire: a record of TLS. 0 in clear text.
    record_bytes: u64,
    /// Of a connection: its client, where that is known; else the connection counts as one.
    client: Option<ClientId>,
    /// Of a connection: the network to its client, where somebody looks at it.
    path: Path,
    /// Of a stream: its connection.
    connection: Option<FlowId>,
    /// Of a connection: its streams, once it had one.
    streams: Option<Box<Streams>>,
}

impl Gate {
    /// An idle gate.
    pub fn new(limits: GateLimits, scheduler: Box<dyn Scheduler + Send>) -> Self {
        Self {
            limits,
            line: Line::new(scheduler),
            bucket: Bucket::new(limits.rate_bits_per_sec, limits.credit_ns),
            flows: BTreeMap::new(),
            returning: BTreeSet::new(),
        }
    }

    /// A connection comes in; its packets without payload are charged.
    pub fn open(&mut self, flow: FlowId, now: Time) {
        let state = FlowState {
            charged_bytes: wire::CONNECTION_BYTES - wire::UNCOUNTED_BYTES,
            ..FlowState::default()
        };
        self.flows.insert(flow, state);
        self.charge(wire::CONNECTION_BYTES, now);
    }

    /// The connection's client reads whole records of up to `record_bytes`; how its next responses are kept from silence follows that.
    ///
    /// Streams need no such word: what is handed over for one is flushed, and ends a record.
    pub fn in_records(&mut self, flow: FlowId, record_bytes: u64) {
        if let Some(state) = self.flows.get_mut(&flow) {
            // It may be cut into one packet more.
            state.record_bytes = wire::payload_cost_bytes(record_bytes) + wire::HEADER_BYTES;
        }
    }

    /// The connection is `client`'s, from its next response on: clients share alike in what the guard gives.
    pub fn of_client(&mut self, connection: FlowId, client: ClientId) {
        if let Some(state) = self.flows.get_mut(&connection) {
            state.client = Some(client);
        }
    }

    /// A response of `size_bytes` (head and body; `None` if unknown) is about to be written; returns its rank. `class` is what
    /// the server says of it; it goes before the rank, whoever the client is.
    ///
    /// Jobs are counted in bytes on the wire, as the ideals are; a connection's first job has its packets without payload behind it.
    pub fn start(&mut self, flow: FlowId, size_bytes: Option<u64>, class: u8, now: Time) -> u64 {
        let (path, client) = (self.path_of(flow), self.client_of(flow));
        let Some(state) = self.flows.get_mut(&flow) else {
            return 0;
        };
        let job = JobId(flow);
        let first = !std::mem::replace(&mut state.has_had_job, true) && state.connection.is_none();
        let opening_bytes = if first { wire::CONNECTION_BYTES } else { 0 };
        let size_bytes = size_bytes.map(|size| opening_bytes + wire::payload_cost_bytes(size));
        let scheduler = &mut self.line.scheduler;
        if state.has_job {
            scheduler.enlarge(job, size_bytes.unwrap_or(0), now);
        } else {
            state.has_job = true;
            let arrival = Arrival {
                id: job,
                class,
                size: size_bytes,
                trickle: state.record_bytes,
                client: Some(client),
            };
            scheduler.arrive(arrival, now);
            if path != Path::default() {
                scheduler.observe(job, path, now);
            }
            if first {
                scheduler.progress(job, opening_bytes, now);
            }
            scheduler.block(job, now);
        }
        self.rank(flow).unwrap_or(0)
    }

    /// The network to the connection's client is known to be `path`: what it has to write, and what its streams have, may rank otherwise.
    pub fn observe(&mut self, connection: FlowId, path: Path, now: Time) {
        let Some(state) = self.flows.get_mut(&connection) else {
            return;
        };
        if std::mem::replace(&mut state.path, path) == path {
            return;
        }
        self.line.scheduler.observe(JobId(connection), path, now);
        for stream in self.streams_on(connection) {
            self.line.scheduler.observe(JobId(stream), path, now);
        }
    }

    /// The flow has `want_bytes` to write; a stream, to hand over.
    pub fn ask(&mut self, flow: FlowId, want_bytes: u64, now: Time) -> Answer {
        self.line.came(flow);
        let Some(state) = self.flows.get_mut(&flow) else {
            return Answer::Go(want_bytes);
        };
        if !state.has_job {
            // Small, or not ours to order; charged when it is settled.
            return Answer::Go(want_bytes.min(UNORDERED_BYTES_MAX));
        }
        let quantum_bytes = match state.connection {
            None => {
                self.line.set_ready(flow, state, true, now);
                self.limits.quantum_bytes
            }
            Some(connection) => {
                let asks = |sibling: &mut Sibling| {
                    sibling.waits = true;
                    sibling.returns = false;
                };
                self.returning.remove(&flow);
                self.reorder(connection, flow, asks, now);
                self.limits.stream_quantum_bytes()
            }
        };
        self.pass_over_the_absent(now);
        if self.open_at() <= now
            && let Some(grant) = self.line.turn_of(flow, now)
        {
            let within_bytes = wire::payload_within_bytes(grant.max_amount);
            return Answer::Go(want_bytes.min(within_bytes).min(quantum_bytes));
        }
        if let Some(state) = self.flows.get_mut(&flow) {
            state.waited = state.ready;
        }
        Answer::Wait
    }

    /// The connection was granted a turn and wrote `written_bytes` (0 if its socket took nothing), after which `sent_bytes` more than before
    /// have left its socket; it must ask again for more.
    ///
    /// The two differ where the client's window or the congestion window is shut: what lies in the socket does not occupy the link yet, and
    /// is charged when it goes ([`Gate::sent`]).
    pub fn settle(&mut self, flow: FlowId, written_bytes: u64, sent_bytes: u64, now: Time) {
        let Some(state) = self.flows.get_mut(&flow) else {
            return;
        };
        let mut cost_bytes = wire::payload_cost_bytes(sent_bytes);
        if let Some(streams) = &mut state.streams {
            streams.handover.written(written_bytes, sent_bytes);
            cost_bytes -= streams.prepaid_of(cost_bytes);
        }
        if cost_bytes > 0 {
            let late = state.waited || self.line.waiting > usize::from(state.ready);
            state.charged_bytes += cost_bytes;
            self.bucket.charge(cost_bytes, late, now);
        }
        if state.has_job {
            if written_bytes > 0 {
                let served_bytes = wire::payload_cost_bytes(written_bytes);
                self.line.scheduler.progress(JobId(flow), served_bytes, now);
            }
            self.line.set_ready(flow, state, false, now);
        }
        if state.streams.is_some() {
            self.review(flow, now);
        }
    }

    /// `sent_bytes` that the connection had written before have left its socket by themselves.
    pub fn sent(&mut self, flow: FlowId, sent_bytes: u64, now: Time) {
        let Some(state) = self.flows.get_mut(&flow) else {
            return;
        };
        let mut cost_bytes = wire::payload_cost_bytes(sent_bytes);
        if let Some(streams) = &mut state.streams {
            streams.handover.sent(sent_bytes);
            cost_bytes -= streams.prepaid_of(cost_bytes);
        }
        state.charged_bytes += cost_bytes;
        self.charge(cost_bytes, now);
        self.review(flow, now);
    }

    /// The kernel counted `wire_bytes` for the connection in all; what was not charged yet (retransmissions, acknowledgements) is.
    pub fn account(&mut self, flow: FlowId, wire_bytes: u64, now: Time) {
        let Some(state) = self.flows.get_mut(&flow) else {
            return;
        };
        let uncharged_bytes = wire_bytes.saturating_sub(state.charged_bytes);
        state.charged_bytes += uncharged_bytes;
        self.charge(uncharged_bytes, now);
    }

    /// Everything of the flow's job is written, or given up.
    pub fn finish(&mut self, flow: FlowId, now: Time) {
        self.leave(flow, now);
        if let Some(state) = self.flows.get_mut(&flow)
            && state.has_job
        {
            state.has_job = false;
            self.line.scheduler.depart(JobId(flow), now);
        }
    }

    /// The connection is gone, and its streams with it; or a stream is.
    pub fn close(&mut self, flow: FlowId, now: Time) {
        for stream in self.streams_on(flow) {
            self.close(stream, now);
        }
        self.finish(flow, now);
        self.line.came(flow);
        let connection = self.flows.remove(&flow).and_then(|state| state.connection);
        if let Some(streams) = connection.and_then(|connection| self.streams_of(connection)) {
            streams.siblings.close(flow);
        }
    }

    /// `wire_bytes` went out that no grant accounts for: retransmissions, acknowledgements, other traffic.
    pub fn charge(&mut self, wire_bytes: u64, now: Time) {
        self.bucket.charge(wire_bytes, self.line.waiting > 0, now);
    }

    /// No grants before `until`: the kernel still holds enough, whatever was charged.
    pub fn hold_until(&mut self, until: Time) {
        self.bucket.busy_until(until.after(self.limits.ahead_ns));
    }

    /// The flow to wake now, if one waits and the link can take more.
    pub fn call(&mut self, now: Time) -> Option<FlowId> {
        self.pass_over_the_absent(now);
        if self.open_at() > now {
            return None;
        }
        self.expect_no_longer(now);
        self.line.call(now)
    }

    /// When [`call`](Self::call) should be tried next; `None` while nobody waits who could go.
    pub fn wake_at(&self) -> Option<Time> {
        if self.line.waiting > 0 {
            return Some(self.open_at().max(self.line.call_ends_at()));
        }
        // Siblings wait for a stream that may not come back.
        (!self.returning.is_empty()).then(|| self.open_at())
    }

    /// The rank of the flow's job now, lower first; `None` while it has none.
    pub fn rank(&self, flow: FlowId) -> Option<u64> {
        self.line.scheduler.rank(JobId(flow))
    }

    /// The number of flows that could go and wait for a turn.
    pub fn waiting(&self) -> usize {
        self.line.waiting
    }

    /// The number of open connections and streams.
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }

    /// Whether the connection or stream was opened here and is not closed.
    pub fn knows(&self, flow: FlowId) -> bool {
        self.flows.contains_key(&flow)
    }

    /// Everything charged to the link so far, bytes.
    pub fn charged_bytes(&self) -> u64 {
        self.bucket.charged_bytes()
    }

    /// The client of a connection, or of a stream's connection.
    fn client_of(&self, flow: FlowId) -> ClientId {
        let connection = self.flows.get(&flow).and_then(|state| state.connection);
        let connection = connection.unwrap_or(flow);
        let client = self.flows.get(&connection).and_then(|state| state.client);
        client.unwrap_or(ClientId(NAMELESS_CLIENTS | connection))
    }

    /// The network to the client of a connection, or of a stream's connection.
    fn path_of(&self, flow: FlowId) -> Path {
        let of = |flow| self.flows.get(&flow);
        let state = of(flow);
        let connection = state.and_then(|state| state.connection).and_then(of);
        connection
            .or(state)
            .map_or_else(Path::default, |state| state.path)
    }

    fn open_at(&self) -> Time {
        let free_at = self
            .bucket
            .free_at()
            .as_ns()
            .saturating_sub(self.limits.ahead_ns);
        Time::from_ns(free_at)
    }

    /// A flow that was called and does not come loses its place until it asks again.
    fn pass_over_the_absent(&mut self, now: Time) {
        if let Some(absent) = self.line.absent(now) {
            self.leave(absent, now);
        }
    }

    /// The flow wants nothing until it asks again.
    fn leave(&mut self, flow: FlowId, now: Time) {
        let Some(state) = self.flows.get_mut(&flow) else {
            return;
        };
        match state.connection {
            None => self.line.set_ready(flow, state, false, now),
            Some(connection) => {
                let leaves = |sibling: &mut Sibling| {
                    sibling.waits = false;
                    sibling.returns = false;
                };
                self.returning.remove(&flow);
                self.reorder(connection, flow, leaves, now);
            }
        }
    }
}
