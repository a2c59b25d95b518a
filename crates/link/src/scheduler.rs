//! The order in which connections and streams write onto one link.
//!
//! Sans-IO: events and the time come in as values, decisions and the next wake-up go out. Nothing
//! here reads a clock, waits, or keeps a socket.
//!
//! A flow is a connection, or a stream of a connection that carries several responses at a time.
//! Both are one record in one table. A flow has at most one job for the policy: the responses that
//! it still has to write. The calls of a connection, in their order:
//!
//! 1. [`open`](LinkScheduler::open) once.
//! 2. [`start`](LinkScheduler::start) for every response, before its first byte.
//! 3. [`ask`](LinkScheduler::ask) before a write; after [`Answer::Go`] and the write,
//!    [`settle`](LinkScheduler::settle). After [`Answer::Wait`] nothing is written until the flow
//!    is woken. [`sent`](LinkScheduler::sent) and [`account`](LinkScheduler::account) correct the
//!    charge.
//! 4. [`body_done`](LinkScheduler::body_done) when a body has given its last byte, and
//!    [`flushed`](LinkScheduler::flushed) when everything is written: responses end here.
//! 5. [`close`](LinkScheduler::close) once; it closes the streams as well.
//!
//! The calls of a stream: [`open_stream`](LinkScheduler::open_stream), `start`, then `ask` and
//! [`settle_stream`](LinkScheduler::settle_stream) for every piece that is handed over to the
//! connection; [`finish_stream`](LinkScheduler::finish_stream) when all is handed over,
//! [`stream_written`](LinkScheduler::stream_written) when the connection has written the last of
//! it, or `close`. A connection with streams writes without waiting: its streams waited before.
//!
//! After any call the driver asks [`wake_at`](LinkScheduler::wake_at) and at that time calls
//! [`wake_next`](LinkScheduler::wake_next), which names the flow to wake. Waking early is harmless,
//! and so is any call for a flow that is gone.
//!
//! A flow takes part in the order only from an `ask` to the `settle` after it: a flow that does not
//! ask (its client is slow, its file not read yet) never keeps the link idle. Grants are small, so
//! the order is never wrong for longer than one. Above kernel bands, which order what lies ahead of
//! the link, a grant may be an eighth of what remains, and a response waits for what lies there in
//! its own band and in those before, not for what lies behind.

mod account;
mod audit;
mod config;
mod flow;
mod paths;
mod responses;
mod streams;
mod turns;
mod writes;

use crate::band_chooser::BandChooser;
use crate::bucket::Lanes;
use crate::siblings::StreamRule;
use crate::wire;
pub use account::{EndedResponse, OnEnd, StartedResponse};
use audit::Audit;
pub use config::{LinkConfig, LinkLimits, Pacing};
use flow::Flow;
use sooner_policy::{JobId, Payer, PolicyName, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::task::Waker;
pub use turns::NextGrant;
use turns::Turns;

/// Names a connection or a stream: never used twice, and higher for a stream that was requested
/// later.
pub type FlowId = u64;

/// What a flow may do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Write at most this many bytes, then settle.
    Go(u64),
    /// Not now; [`LinkScheduler::wake_next`] will name the flow.
    Wait,
}

/// What is left for the driver to do after a call.
#[derive(Default)]
pub struct Effects {
    /// Responses that are over.
    pub ended: Vec<EndedResponse>,
    /// Streams that wait on a connection that is gone.
    pub wakers: Vec<Waker>,
}

/// Orders the writes of all flows onto one link.
pub struct LinkScheduler {
    policy: Option<PolicyName>,
    rate_bits_per_sec: Option<u64>,
    stream_rule: StreamRule,
    /// Whether all writes wait for the link; without pacing only streams are ordered.
    is_paced: bool,
    limits: LinkLimits,
    bands: Option<BandChooser>,
    lanes: Lanes,
    turns: Turns,
    flows: BTreeMap<FlowId, Flow>,
    /// Streams that handed over and have not asked again: their siblings still let them go first.
    returning: BTreeSet<FlowId>,
    opened: FlowId,
    started: u64,
    /// Written for responses; the frames around streams belong to none.
    response_bytes: u64,
    /// Written to sockets.
    socket_bytes: u64,
    /// When the last snapshot was taken, and what had been charged to the link by then.
    last_snapshot: (Time, u64),
    audit: Audit,
}

impl LinkScheduler {
    /// An idle link.
    pub fn new(config: LinkConfig, now: Time) -> Self {
        let is_paced = config.pacing.is_some();
        let Pacing { limits, guard } = config.pacing.unwrap_or_else(Pacing::of_streams_only);
        let policy = config.policy.unwrap_or(PolicyName::Fair);
        let quantum = limits.quantum_wire_bytes();
        let scheduler = if config.by_client {
            policy.scheduler_by_payer(quantum, guard)
        } else {
            policy.scheduler(quantum, guard)
        };
        let bands = config.bands.as_ref().map_or(1, BandChooser::count);
        Self {
            policy: config.policy,
            rate_bits_per_sec: config.rate_bits_per_sec,
            stream_rule: config.stream_rule,
            is_paced,
            limits,
            bands: config.bands,
            lanes: Lanes::new(limits.rate_bits_per_sec, bands),
            turns: Turns::new(scheduler),
            flows: BTreeMap::new(),
            returning: BTreeSet::new(),
            opened: 0,
            started: 0,
            response_bytes: 0,
            socket_bytes: 0,
            last_snapshot: (now, 0),
            audit: Audit::default(),
        }
    }

    /// The link is metered otherwise from now on; what was charged stays charged. Where a policy
    /// counts in turns, its turns stay as they were at the start.
    pub fn set_limits(&mut self, limits: LinkLimits) {
        assert!(
            self.rate_bits_per_sec.is_some(),
            "a link without a limit stays without one"
        );
        self.rate_bits_per_sec = Some(limits.rate_bits_per_sec);
        if !self.is_paced {
            return;
        }
        self.limits = limits;
        self.lanes.set_rate(limits.rate_bits_per_sec);
    }

    /// The rate of the link, if there is a limit.
    pub fn rate_bits_per_sec(&self) -> Option<u64> {
        self.rate_bits_per_sec
    }

    /// Charged to the link so far, with packet headers; without pacing what was given to sockets.
    pub fn sent_wire_bytes(&self) -> u64 {
        if self.is_paced {
            self.charged_bytes()
        } else {
            wire::payload_cost_bytes(self.socket_bytes)
        }
    }

    /// A connection comes in; where the link is paced its packets without payload are charged.
    pub fn open(&mut self, now: Time) -> FlowId {
        let connection = self.new_name();
        self.flows.insert(connection, Flow::connection());
        if self.is_paced {
            self.order_connection(connection, now);
        }
        connection
    }

    /// The connection's client reads whole records of up to `record_bytes`; how its next responses
    /// are kept from silence follows that.
    ///
    /// Streams need no such word: what is handed over for one is flushed, and ends a record.
    pub fn in_records(&mut self, connection: FlowId, record_bytes: u64) {
        if let Some(flow) = self.flows.get_mut(&connection) {
            // It may be cut into one packet more.
            flow.record_bytes = wire::payload_cost_bytes(record_bytes) + wire::HEADER_BYTES;
        }
    }

    /// The connection is `client`'s, from its next response on: clients share alike in what the
    /// guard gives, and where the least used goes first it is charged. Without this word the
    /// connection counts as a client.
    pub fn of_client(&mut self, connection: FlowId, client: Payer) {
        if let Some(flow) = self.flows.get_mut(&connection) {
            flow.client = Some(client);
        }
    }

    /// The connection is gone, and with it what was not written, its streams' as well; or a stream
    /// is given up.
    pub fn close(&mut self, flow: FlowId, now: Time) -> Effects {
        let mut effects = Effects {
            ended: self.end_responses(flow, false, now),
            wakers: Vec::new(),
        };
        for stream in self.streams_on(flow) {
            effects
                .ended
                .append(&mut self.end_responses(stream, false, now));
            self.stop_ordering(stream, now);
            let stream = self.flows.remove(&stream);
            effects
                .wakers
                .extend(stream.and_then(|stream| stream.waker));
        }
        self.settle_payment(flow, true, now);
        self.stop_ordering(flow, now);
        self.remove(flow);
        self.check();
        effects
    }

    /// Whether writes wait for the link.
    pub fn is_paced(&self) -> bool {
        self.is_paced
    }

    /// Unsent bytes that a connection's socket may hold before it counts as not writable: none, so
    /// that what is written is on its way, but where long grants lie ahead of the link.
    pub fn unsent_bytes_max(&self) -> u32 {
        let LinkLimits {
            quantum_bytes,
            long_grant_bytes,
            ..
        } = self.limits;
        if self.is_paced && long_grant_bytes > quantum_bytes {
            // A socket that is full calls when it holds less than half.
            u32::try_from(4 * long_grant_bytes).unwrap_or(u32::MAX)
        } else {
            1
        }
    }

    /// Whether kernel bands are chosen.
    pub fn chooses_bands(&self) -> bool {
        self.bands.is_some()
    }

    /// The rank of the flow's job now, lower first; `None` while it has none.
    pub fn rank(&self, flow: FlowId) -> Option<u64> {
        self.turns.scheduler.rank(JobId(flow))
    }

    /// The number of flows that could go and wait for a turn.
    pub fn waiting(&self) -> usize {
        self.turns.waiting()
    }

    /// The number of open connections and streams.
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }

    /// Everything charged to the link so far, bytes.
    pub fn charged_bytes(&self) -> u64 {
        self.lanes.charged_bytes()
    }

    fn new_name(&mut self) -> FlowId {
        let flow = self.opened;
        self.opened += 1;
        flow
    }

    /// The connection's writes are charged and its jobs ordered from now on.
    fn order_connection(&mut self, connection: FlowId, now: Time) {
        if let Some(flow) = self.flows.get_mut(&connection) {
            flow.is_ordered = true;
            flow.charged_bytes = wire::CONNECTION_BYTES - wire::UNCOUNTED_BYTES;
            self.charge(wire::CONNECTION_BYTES, now);
        }
    }

    /// The flow's job leaves the policy, and the flow the order.
    fn stop_ordering(&mut self, flow: FlowId, now: Time) {
        self.finish_job(flow, now);
        self.turns.clear_woken(flow);
        if let Some(flow) = self.flows.get_mut(&flow) {
            flow.is_ordered = false;
            self.audit.settle(&mut flow.granted_bytes, 0);
        }
    }

    /// Forgets a flow, and its connection that it was there.
    fn remove(&mut self, flow: FlowId) {
        let stream = self.flows.remove(&flow).and_then(|flow| flow.stream);
        if let Some(streams) = stream.and_then(|stream| self.streams_of(stream.connection)) {
            streams.present.remove(&flow);
        }
    }
}
