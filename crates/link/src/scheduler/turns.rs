//! Turns: which flow may write now, and which is woken for the next one.

use super::flow::Flow;
use super::{Answer, FlowId, LinkScheduler};
use crate::siblings::Sibling;
use crate::wire;
use sooner_policy::{Grant, JobId, Scheduler, Time};
use std::task::Waker;

/// How long a flow that was woken may take to ask before others go instead, ns.
const RETURN_NS_MAX: u64 = 1_000_000;
/// The most bytes of no response in one write: handshakes, refusals, frames of HTTP/2, upgraded
/// connections.
const UNORDERED_BYTES_MAX: u64 = 65_536;

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
        let flow = self.scheduler.next(now)?.job.0;
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
        self.pass_over_absent(now);
        self.answer(flow, connection, want_bytes, waker, now)
    }

    /// The flow to wake now, if one waits and the link can take more.
    pub fn wake_next(&mut self, now: Time) -> Option<FlowId> {
        self.pass_over_absent(now);
        if self.opens_at() > now {
            return None;
        }
        self.expect_no_longer(now);
        self.turns.wake_next(now)
    }

    /// Takes the waker that the flow left when it was told to wait.
    pub fn take_waker(&mut self, flow: FlowId) -> Option<Waker> {
        self.flows.get_mut(&flow)?.waker.take()
    }

    /// When [`wake_next`](Self::wake_next) should be tried next; `None` while no flow waits that
    /// could go.
    pub fn wake_at(&self) -> Option<Time> {
        if self.turns.waiting > 0 {
            return Some(self.opens_at().max(self.turns.return_ends_at()));
        }
        // Siblings wait for a stream that may not come back.
        (!self.returning.is_empty()).then(|| self.opens_at())
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
        let quantum_bytes = if connection.is_some() {
            self.limits.stream_quantum_bytes()
        } else {
            self.limits.quantum_bytes
        };
        let grant = if self.opens_at() <= now {
            self.turns.turn_of(flow, now)
        } else {
            None
        };
        let backed_up_ns = self.backed_up_ns(connection, now);
        let Some(record) = self.flows.get_mut(&flow) else {
            return Answer::Wait;
        };
        let Some(grant) = grant else {
            record.has_waited = record.is_ready;
            record.wait(waker, backed_up_ns, now);
            return Answer::Wait;
        };
        record.account.end_wait(backed_up_ns, now);
        let within_bytes = wire::payload_within_bytes(grant.max_amount);
        let granted_bytes = want_bytes.min(within_bytes).min(quantum_bytes);
        self.audit.grant(&mut record.granted_bytes, granted_bytes);
        Answer::Go(granted_bytes)
    }

    /// From when on the link can take more.
    fn opens_at(&self) -> Time {
        let free_at_ns = self.bucket.free_at().as_ns();
        Time::from_ns(free_at_ns.saturating_sub(self.limits.ahead_ns))
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
