//! Those who wait for a turn, and the one who was called.

use sooner_policy::{Grant, JobId, Scheduler, Time};

use super::{FlowId, FlowState};

/// How long the flow that was told to come may take before others go instead, ns.
const RETURN_NS_MAX: u64 = 1_000_000;

/// The scheduler and what it does not know.
pub(super) struct Line {
    pub(super) scheduler: Box<dyn Scheduler + Send>,
    /// Flows that could go now, and wait for their turn.
    pub(super) waiting: usize,
    /// The flow that was called and has not come back yet, and since when.
    called: Option<(FlowId, Time)>,
}

impl Line {
    pub(super) fn new(scheduler: Box<dyn Scheduler + Send>) -> Self {
        Self {
            scheduler,
            waiting: 0,
            called: None,
        }
    }

    /// The flow enters the order or leaves it.
    pub(super) fn set_ready(
        &mut self,
        flow: FlowId,
        state: &mut FlowState,
        ready: bool,
        now: Time,
    ) {
        if state.ready == ready {
            return;
        }
        state.ready = ready;
        state.waited &= ready;
        if ready {
            self.waiting += 1;
            self.scheduler.unblock(JobId(flow), now);
        } else {
            self.waiting -= 1;
            self.scheduler.block(JobId(flow), now);
            self.came(flow);
        }
    }

    /// The flow's turn now, if it is its turn.
    pub(super) fn turn_of(&mut self, flow: FlowId, now: Time) -> Option<Grant> {
        self.scheduler
            .next(now)
            .filter(|grant| grant.job == JobId(flow))
    }

    /// Calls the flow whose turn it is, unless another was called and is still on its way.
    pub(super) fn call(&mut self, now: Time) -> Option<FlowId> {
        if self.called.is_some() {
            return None;
        }
        let flow = self.scheduler.next(now)?.job.0;
        self.called = Some((flow, now));
        Some(flow)
    }

    /// The flow has come, or will not: nobody waits for it any more.
    pub(super) fn came(&mut self, flow: FlowId) {
        if self.called.is_some_and(|(called, _)| called == flow) {
            self.called = None;
        }
    }

    /// The flow that was called and did not come in time.
    pub(super) fn absent(&mut self, now: Time) -> Option<FlowId> {
        let (flow, _) = self
            .called
            .take_if(|(_, since)| now.since(*since) >= RETURN_NS_MAX)?;
        Some(flow)
    }

    /// Until when others wait for the one who was called.
    pub(super) fn call_ends_at(&self) -> Time {
        self.called
            .map_or(Time::ZERO, |(_, since)| since.after(RETURN_NS_MAX))
    }
}
