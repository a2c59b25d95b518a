//! Turns: which flow may write now, and which is woken for the next one.

use super::flow::Flow;
use super::{Answer, FlowId, LinkLimits, LinkScheduler};
use crate::bucket::transmission_ns;
use crate::siblings::Sibling;
use crate::wire;
use sooner_policy::{Grant, JobId, Scheduler, Time};
use std::task::Waker;

/// How long a flow that was woken may take to ask before others go instead, ns.
const RETURN_NS_MAX: u64 = 1_000_000;
/// The most bytes of no response in one write: handshakes, refusals, frames of HTTP/2, upgraded
/// connections.
const UNORDERED_BYTES_MAX: u64 = 65_536;

/// What goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextGrant {
    /// Its kernel band; 0 without bands.
    pub band: u8,
    /// How far it may run ahead of the link, ns.
    pub ahead_ns: u64,
}

/// The policy, and what it does not know.
pub(super) struct Turns {
    pub(super) scheduler: Box<dyn Scheduler + Send>,
    /// Flows that could go now, and wait for their turn.
    waiting: usize,
    /// The flow that was woken and has not asked yet, and since when.
    woken: Option<(FlowId, Time)>,
}

impl Turns {
    pub(super) fn new(scheduler: Box<dyn Scheduler + Send>) -> Self {
        Self {
            scheduler,
            waiting: 0,
            woken: None,
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The flow enters the order or leaves it.
    pub(super) fn set_ready(&mut self, id: FlowId, flow: &mut Flow, ready: bool, now: Time) {
        if flow.is_ready == ready {
            return;
        }
        flow.is_ready = ready;
        flow.has_waited &= ready;
        if ready {
            self.waiting += 1;
            self.scheduler.unblock(JobId(id), now);
        } else {
            assert!(self.waiting > 0, "a flow that leaves the order was in it");
            self.waiting -= 1;
            self.scheduler.block(JobId(id), now);
            self.clear_woken(id);
        }
    }

    /// Whether the flow could have gone before, or others wait beside it: then time that the link
    /// lost is made up for.
    pub(super) fn is_late(&self, flow: &Flow) -> bool {
        flow.has_waited || self.waiting > usize::from(flow.is_ready)
    }

    /// The flow has asked, or will not: others need not wait for it.
    pub(super) fn clear_woken(&mut self, flow: FlowId) {
        self.woken.take_if(|(woken, _)| *woken == flow);
    }

    /// The flow that the policy wants to go now, and whether that is owed to it.
    fn next(&mut self, now: Time) -> Option<(FlowId, bool)> {
        let grant = self.scheduler.next(now)?;
        Some((grant.job.0, grant.is_owed))
    }

    /// The flow's turn now, if it is its turn.
    fn turn_of(&mut self, flow: FlowId, now: Time) -> Option<Grant> {
        let grant = self.scheduler.next(now);
        grant.filter(|grant| grant.job == JobId(flow))
    }

    /// The flow to wake, unless another was woken and is still on its way.
    fn wake_next(&mut self, now: Time) -> Option<FlowId> {
        if self.woken.is_some() {
            return None;
        }
        let (flow, _) = self.next(now)?;
        self.woken = Some((flow, now));
        Some(flow)
    }

    /// The flow that was woken and did not ask in time.
    fn take_absent(&mut self, now: Time) -> Option<FlowId> {
        let is_absent = |since: Time| now.since(since) >= RETURN_NS_MAX;
        let (flow, _) = self.woken.take_if(|(_, since)| is_absent(*since))?;
        Some(flow)
    }

    /// Until when others wait for the flow that was woken.
    fn return_ends_at(&self) -> Time {
        self.woken
            .map_or(Time::ZERO, |(_, since)| since.after(RETURN_NS_MAX))
    }
}

impl LinkScheduler {
    /// Whether the flow may write `want_bytes` now, or a stream hand them over; if not, its waker
    /// is kept.
    pub fn ask(&mut self, flow: FlowId, want_bytes: u64, waker: &Waker, now: Time) -> Answer {
        self.check();
        self.turns.clear_woken(flow);
        let Some(record) = self.flows.get_mut(&flow) else {
            return Answer::Go(want_bytes);
        };
        if record.tunnel.is_some_and(|tunnel| !tunnel.is_in_burst) {
            self.begin_burst(flow, now);
            return self.ask(flow, want_bytes, waker, now);
        }
        if !record.is_ordered || !record.has_job {
            record.account.end_wait(0, now);
            record.granted_band = record.band.unwrap_or(0);
            // Small, or not ours to order; charged when it is settled.
            let most_bytes = if record.is_ordered {
                UNORDERED_BYTES_MAX
            } else {
                u64::MAX
            };
            return Answer::Go(want_bytes.min(most_bytes));
        }
        let connection = record.stream.map(|stream| stream.connection);
        if connection.is_some() {
            self.returning.remove(&flow);
            self.reorder(flow, Sibling::wait, now);
        } else {
            self.turns.set_ready(flow, record, true, now);
        }
        self.note_return(flow, now);
        self.pass_over_absent(now);
        self.answer(flow, connection, want_bytes, waker, now)
    }

    /// The flow to wake now, if one waits and the link can take more.
    pub fn wake_next(&mut self, now: Time) -> Option<FlowId> {
        self.pass_over_absent(now);
        if self.next_opens_at(now)? > now {
            return None;
        }
        self.expect_no_longer(now);
        self.turns.wake_next(now)
    }

    /// What goes next, if anything waits.
    pub fn next_grant(&mut self, now: Time) -> Option<NextGrant> {
        let (flow, is_owed) = self.turns.next(now)?;
        Some(NextGrant {
            band: self.band_of(flow, is_owed, now),
            ahead_ns: self.ahead_ns(flow),
        })
    }

    /// No grant before `until` to what waits in the band of `next` or behind: the kernel still
    /// holds enough, whatever was charged.
    pub fn hold_until(&mut self, next: NextGrant, until: Time) {
        self.lanes.busy_until(next.band, until.after(next.ahead_ns));
    }

    /// Takes the waker that the flow left when it was told to wait.
    pub fn take_waker(&mut self, flow: FlowId) -> Option<Waker> {
        self.flows.get_mut(&flow)?.waker.take()
    }

    /// Takes the wakers of all flows that were told to wait, where nothing is left that watches
    /// [`wake_at`](Self::wake_at): they are to ask again.
    pub fn take_wakers(&mut self) -> Vec<Waker> {
        let flows = self.flows.values_mut();
        flows.filter_map(|flow| flow.waker.take()).collect()
    }

    /// When [`wake_next`](Self::wake_next) should be tried next; `None` while no flow waits that
    /// could go.
    pub fn wake_at(&mut self, now: Time) -> Option<Time> {
        let opens_at = self.next_opens_at(now)?;
        Some(opens_at.max(self.turns.return_ends_at()))
    }

    /// From when on the link can take more of what goes next.
    fn next_opens_at(&mut self, now: Time) -> Option<Time> {
        let next = self.turns.next(now);
        // Siblings wait for a stream that may not come back.
        let returning = || self.returning.first().map(|flow| (*flow, false));
        let (flow, is_owed) = next.or_else(returning)?;
        Some(self.opens_at(flow, is_owed, now))
    }

    /// Grants a flow that waits its turn, or keeps its waker; a stream's is of `connection`.
    fn answer(
        &mut self,
        flow: FlowId,
        connection: Option<FlowId>,
        want_bytes: u64,
        waker: &Waker,
        now: Time,
    ) -> Answer {
        let quantum_bytes = self.grant_bytes(flow);
        let grant = self.turns.turn_of(flow, now);
        let grant = grant.filter(|grant| self.opens_at(flow, grant.is_owed, now) <= now);
        let backed_up_ns = self.backed_up_ns(connection, now);
        let band = self.band_of(flow, grant.is_some_and(|grant| grant.is_owed), now);
        let Some(record) = self.flows.get_mut(&flow) else {
            return Answer::Wait;
        };
        let Some(grant) = grant else {
            record.has_waited = record.is_ready;
            record.wait(waker, backed_up_ns, now);
            return Answer::Wait;
        };
        record.account.end_wait(backed_up_ns, now);
        (record.is_owed, record.granted_band) = (grant.is_owed, band);
        let within_bytes = wire::payload_within_bytes(grant.max_amount);
        let granted_bytes = want_bytes.min(within_bytes).min(quantum_bytes);
        self.audit.grant(&mut record.granted_bytes, granted_bytes);
        Answer::Go(granted_bytes)
    }

    /// From when on the link can take more of the flow.
    fn opens_at(&self, flow: FlowId, is_owed: bool, now: Time) -> Time {
        let free_at_ns = self.lanes.free_at(self.band_of(flow, is_owed, now)).as_ns();
        Time::from_ns(free_at_ns.saturating_sub(self.ahead_ns(flow)))
    }

    /// How far the flow's grants may run ahead of the link, ns.
    fn ahead_ns(&self, flow: FlowId) -> u64 {
        let LinkLimits {
            rate_bits_per_sec,
            ahead_ns,
            ..
        } = self.limits;
        let grant_bytes = self.grant_bytes(flow);
        let grant_ns = if grant_bytes > self.limits.quantum_bytes {
            transmission_ns(wire::payload_cost_bytes(grant_bytes), rate_bits_per_sec)
        } else {
            0
        };
        ahead_ns.max(grant_ns)
    }

    /// The most payload that the flow gets at a time. Above bands that is an eighth of a long
    /// response, so that one as long waits no longer for it, and two packets at least, as TCP keeps
    /// them in the device; streams share a socket, in which nothing orders them.
    fn grant_bytes(&self, flow: FlowId) -> u64 {
        let LinkLimits {
            quantum_bytes,
            long_grant_bytes,
            ..
        } = self.limits;
        let Some(record) = self.flows.get(&flow) else {
            return quantum_bytes;
        };
        if record.stream.is_some() {
            return self.limits.stream_quantum_bytes();
        }
        let Some(bands) = &self.bands else {
            return quantum_bytes;
        };
        let Some(length_bytes) = bands.length_bytes(record.band_input(record.path)) else {
            return quantum_bytes;
        };
        let segments = (length_bytes / 8 / wire::SEGMENT_BYTES).max(2);
        let bytes = segments.saturating_mul(wire::SEGMENT_BYTES);
        bytes.max(quantum_bytes).min(long_grant_bytes)
    }

    /// A flow that asks again as soon as it has written could have gone all the time: what a late
    /// wake-up has lost is more than its first grant.
    fn note_return(&mut self, flow: FlowId, now: Time) {
        if let Some(record) = self.flows.get_mut(&flow) {
            let returns = |at: Time| now.since(at) < RETURN_NS_MAX;
            record.has_waited |= record.is_ready && record.wrote_at.is_some_and(returns);
        }
    }

    /// A flow that was woken and does not ask loses its turn until it asks again.
    fn pass_over_absent(&mut self, now: Time) {
        if let Some(absent) = self.turns.take_absent(now) {
            self.leave(absent, now);
        }
    }

    /// The flow wants nothing until it asks again.
    pub(super) fn leave(&mut self, flow: FlowId, now: Time) {
        let record = self.flows.get_mut(&flow);
        let Some(record) = record.filter(|record| record.is_ordered) else {
            return;
        };
        if record.stream.is_some() {
            self.returning.remove(&flow);
            self.reorder(flow, Sibling::leave, now);
        } else {
            self.turns.set_ready(flow, record, false, now);
        }
    }
}
