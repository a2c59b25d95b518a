//! Which connection may write, how much, and when the next one may.
//!
//! Sans-IO: events and the time come in, answers go out. A connection is a flow; a flow has at most one job, the responses it still has to
//! write. The calls of a flow: [`open`](Gate::open); [`start`](Gate::start) for every response; [`ask`](Gate::ask) before a write and
//! [`settle`](Gate::settle) after it; [`finish`](Gate::finish) when nothing is left to write; [`close`](Gate::close).
//!
//! A flow takes part in the order only from an `ask` to the `settle` after it: a flow that is not asking
//! (its client is slow, its file not read yet) never keeps the link idle. Grants are small, so the order is never wrong for longer than one.

use std::collections::BTreeMap;

use sooner_policy::{Arrival, JobId, Scheduler, Time};

use crate::bucket::Bucket;
use crate::wire;

/// Names a connection.
pub type FlowId = u64;

/// How long the flow that was told to come may take before others go instead, ns.
const RETURN_NS_MAX: u64 = 1_000_000;

/// What a flow may do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Write at most this many bytes, then settle.
    Go(u64),
    /// Not now; the flow will be named by [`Gate::call`].
    Wait,
}

/// How a gate meters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateLimits {
    /// The rate at which bytes are let out.
    pub rate_bits_per_sec: u64,
    /// The most bytes in one grant.
    pub quantum_bytes: u64,
    /// How far grants may run ahead of the link, ns of its time: what keeps it busy while the next writer wakes up.
    pub ahead_ns: u64,
    /// How much time lost to late wake-ups is made up for, ns.
    pub credit_ns: u64,
}

impl GateLimits {
    /// Grants of half a millisecond: whole segments, at least one, at most 64 KiB; up to two grants or 1 ms of lateness are made up for.
    pub fn at_rate(rate_bits_per_sec: u64) -> Self {
        let half_ms_bytes = rate_bits_per_sec / 16_000;
        let segments = (half_ms_bytes / wire::SEGMENT_BYTES).clamp(1, 65_536 / wire::SEGMENT_BYTES);
        let quantum_bytes = segments * wire::SEGMENT_BYTES;
        let quantum_ns = crate::bucket::transmission_ns(
            wire::payload_cost_bytes(quantum_bytes),
            rate_bits_per_sec,
        );
        Self {
            rate_bits_per_sec,
            quantum_bytes,
            ahead_ns: 0,
            credit_ns: (2 * quantum_ns).max(1_000_000),
        }
    }

    /// A full grant with its packets' headers: the quantum in the unit in which jobs are counted.
    pub fn quantum_wire_bytes(&self) -> u64 {
        wire::payload_cost_bytes(self.quantum_bytes)
    }
}

/// Orders the writes of all flows onto one link.
pub struct Gate {
    limits: GateLimits,
    scheduler: Box<dyn Scheduler + Send>,
    bucket: Bucket,
    flows: BTreeMap<FlowId, FlowState>,
    opened: FlowId,
    /// The flow that was called and has not come back yet, and since when.
    called: Option<(FlowId, Time)>,
    waiting: usize,
    held_until: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct FlowState {
    has_job: bool,
    has_had_job: bool,
    waits: bool,
    /// Whether it was told to wait before the turn it has now.
    waited: bool,
}

impl Gate {
    /// An idle gate.
    pub fn new(limits: GateLimits, scheduler: Box<dyn Scheduler + Send>) -> Self {
        Self {
            limits,
            scheduler,
            bucket: Bucket::new(limits.rate_bits_per_sec, limits.credit_ns),
            flows: BTreeMap::new(),
            opened: 0,
            called: None,
            waiting: 0,
            held_until: Time::ZERO,
        }
    }

    /// A connection comes in; its packets without payload are charged.
    pub fn open(&mut self, now: Time) -> FlowId {
        self.bucket
            .charge(wire::CONNECTION_BYTES, self.waiting > 0, now);
        let flow = self.opened;
        self.opened += 1;
        self.flows.insert(flow, FlowState::default());
        flow
    }

    /// A response of `size_bytes` (head and body; `None` if unknown) is about to be written; returns its rank.
    ///
    /// Jobs are counted in bytes on the wire, as the ideals are; a connection's first job has its packets without payload behind it.
    pub fn start(&mut self, flow: FlowId, size_bytes: Option<u64>, class: u8, now: Time) -> u64 {
        let Some(state) = self.flows.get_mut(&flow) else {
            return 0;
        };
        let job = JobId(flow);
        let first = !std::mem::replace(&mut state.has_had_job, true);
        let opening_bytes = if first { wire::CONNECTION_BYTES } else { 0 };
        let size_bytes = size_bytes.map(|size| opening_bytes + wire::payload_cost_bytes(size));
        if state.has_job {
            self.scheduler.enlarge(job, size_bytes.unwrap_or(0), now);
        } else {
            state.has_job = true;
            self.scheduler.arrive(
                Arrival {
                    id: job,
                    class,
                    size: size_bytes,
                },
                now,
            );
            if first {
                self.scheduler.progress(job, opening_bytes, now);
            }
            self.scheduler.block(job, now);
        }
        self.scheduler.rank(job).unwrap_or(0)
    }

    /// The flow has `want_bytes` to write.
    pub fn ask(&mut self, flow: FlowId, want_bytes: u64, now: Time) -> Answer {
        let Some(state) = self.flows.get(&flow).copied() else {
            return Answer::Go(want_bytes);
        };
        if self.called.is_some_and(|(called, _)| called == flow) {
            self.called = None;
        }
        if !state.has_job {
            // What belongs to no response (a refusal, an interim answer) is small, and charged when it is settled.
            return Answer::Go(want_bytes.min(self.limits.quantum_bytes));
        }
        if !state.waits {
            self.set_waits(flow, true, now);
        }
        self.pass_over_the_absent(now);
        match self.scheduler.next(now) {
            Some(grant) if grant.job == JobId(flow) && self.open_at() <= now => Answer::Go(
                want_bytes
                    .min(wire::payload_within_bytes(grant.max_amount))
                    .min(self.limits.quantum_bytes),
            ),
            _ => {
                if let Some(state) = self.flows.get_mut(&flow) {
                    state.waited = true;
                }
                Answer::Wait
            }
        }
    }

    /// The flow was granted a turn and wrote `written_bytes` (0 if its socket took nothing), after which `sent_bytes` more than before have
    /// left its socket; it must ask again for more.
    ///
    /// The two differ where the client's window or the congestion window is shut: what lies in the socket does not occupy the link yet, and
    /// is charged when it goes ([`Gate::sent`]).
    pub fn settle(&mut self, flow: FlowId, written_bytes: u64, sent_bytes: u64, now: Time) {
        if sent_bytes > 0 {
            let waited = self.flows.get(&flow).is_some_and(|state| state.waited);
            let cost_bytes = wire::payload_cost_bytes(sent_bytes);
            self.bucket
                .charge(cost_bytes, waited || self.waiting > 1, now);
        }
        if written_bytes > 0 {
            let cost_bytes = wire::payload_cost_bytes(written_bytes);
            self.scheduler.progress(JobId(flow), cost_bytes, now);
        }
        self.set_waits(flow, false, now);
    }

    /// `sent_bytes` that had been written before have left their socket by themselves.
    pub fn sent(&mut self, sent_bytes: u64, now: Time) {
        self.charge(wire::payload_cost_bytes(sent_bytes), now);
    }

    /// Everything of the flow's job is written, or given up.
    pub fn finish(&mut self, flow: FlowId, now: Time) {
        self.set_waits(flow, false, now);
        if let Some(state) = self.flows.get_mut(&flow)
            && state.has_job
        {
            state.has_job = false;
            self.scheduler.depart(JobId(flow), now);
        }
    }

    /// The connection is gone.
    pub fn close(&mut self, flow: FlowId, now: Time) {
        self.finish(flow, now);
        self.flows.remove(&flow);
        if self.called.is_some_and(|(called, _)| called == flow) {
            self.called = None;
        }
    }

    /// `wire_bytes` went out that no grant accounts for: retransmissions, acknowledgements, other traffic.
    pub fn charge(&mut self, wire_bytes: u64, now: Time) {
        self.bucket.charge(wire_bytes, self.waiting > 0, now);
    }

    /// No grants before `until`: the kernel still holds enough.
    pub fn hold_until(&mut self, until: Time) {
        self.held_until = self.held_until.max(until);
    }

    /// The flow to wake now, if one waits and the link can take more.
    pub fn call(&mut self, now: Time) -> Option<FlowId> {
        self.pass_over_the_absent(now);
        if self.open_at() > now || self.called.is_some() {
            return None;
        }
        let flow = self.scheduler.next(now)?.job.0;
        self.called = Some((flow, now));
        Some(flow)
    }

    /// When [`call`](Self::call) should be tried next; `None` while nobody waits.
    pub fn wake_at(&self) -> Option<Time> {
        if self.waiting == 0 {
            return None;
        }
        let returned_by = self
            .called
            .map_or(Time::ZERO, |(_, since)| since.after(RETURN_NS_MAX));
        Some(self.open_at().max(returned_by))
    }

    /// The rank of the flow's job now, lower first; `None` while it has none.
    pub fn rank(&self, flow: FlowId) -> Option<u64> {
        self.scheduler.rank(JobId(flow))
    }

    /// The number of flows that wait for a turn.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// The number of open connections.
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }

    fn open_at(&self) -> Time {
        let free_at = self
            .bucket
            .free_at()
            .as_ns()
            .saturating_sub(self.limits.ahead_ns);
        Time::from_ns(free_at).max(self.held_until)
    }

    /// A flow that was called and does not come loses its place until it asks again.
    fn pass_over_the_absent(&mut self, now: Time) {
        if let Some((called, since)) = self.called
            && now.since(since) >= RETURN_NS_MAX
        {
            self.called = None;
            self.set_waits(called, false, now);
        }
    }

    fn set_waits(&mut self, flow: FlowId, waits: bool, now: Time) {
        let Some(state) = self.flows.get_mut(&flow) else {
            return;
        };
        if !state.has_job || state.waits == waits {
            return;
        }
        state.waits = waits;
        state.waited &= waits;
        if waits {
            self.waiting += 1;
            self.scheduler.unblock(JobId(flow), now);
        } else {
            self.waiting -= 1;
            self.scheduler.block(JobId(flow), now);
        }
    }
}
