//! What is behind the lock of an uplink, and what a decision leaves to be called when the lock is
//! free.

use super::SharedLink;
use crate::pacer;
use sooner_link::LinkScheduler;
use sooner_policy::Time;
use std::sync::Arc;
use std::task::Waker;
use tokio::runtime::Handle;

/// What is behind the lock.
pub(crate) struct State {
    pub(crate) link: LinkScheduler,
    /// Until when the pacer sleeps; it must be woken for anything earlier.
    pacer_until: Option<Time>,
    /// Whether a task wakes flows at their turn.
    has_pacer: bool,
}

/// What a decision leaves to be called.
#[derive(Default)]
#[must_use = "flows wait for it"]
pub(super) struct Calls {
    pub(super) next: Option<Waker>,
    pub(super) pacer: PacerCall,
}

/// What the pacer is told.
#[derive(Default)]
pub(super) enum PacerCall {
    #[default]
    Nothing,
    /// It sleeps past the time at which it is needed.
    Wake,
    /// There is none: it is to run here.
    Start(Handle),
}

impl Calls {
    /// Makes the calls; the lock is free.
    pub(super) fn make(self, shared: &Arc<SharedLink>) {
        // Before the pacer, which then finds what the flow has done if both are on this thread.
        if let Some(waker) = self.next {
            waker.wake();
        }
        match self.pacer {
            PacerCall::Nothing => {}
            PacerCall::Wake => shared.pacer_wanted.notify_one(),
            PacerCall::Start(runtime) => pacer::start_unpaced(shared, &runtime),
        }
    }
}

impl State {
    pub(super) fn new(link: LinkScheduler) -> Self {
        Self {
            has_pacer: link.is_paced(),
            pacer_until: None,
            link,
        }
    }

    /// What is to be called after any change.
    pub(super) fn calls(&mut self, now: Time) -> Calls {
        let next = self.next_waker(now);
        let pacer = self.want_pacer(now);
        Calls { next, pacer }
    }

    /// The waker of the flow that may go next, if the link can take more.
    pub(super) fn next_waker(&mut self, now: Time) -> Option<Waker> {
        let flow = self.link.wake_next(now)?;
        self.link.take_waker(flow)
    }

    /// Notes when the pacer is needed, if it sleeps past that or is not there.
    pub(super) fn want_pacer(&mut self, now: Time) -> PacerCall {
        let Some(at) = self.link.wake_at(now) else {
            return PacerCall::Nothing;
        };
        if self.pacer_until.is_some_and(|until| until <= at) {
            return PacerCall::Nothing;
        }
        let call = if self.has_pacer {
            PacerCall::Wake
        } else if let Ok(runtime) = Handle::try_current() {
            PacerCall::Start(runtime)
        } else {
            // A flow that goes after its runtime: those who wait start the pacer on theirs.
            return PacerCall::Nothing;
        };
        (self.has_pacer, self.pacer_until) = (true, Some(at));
        call
    }

    /// The pacer goes to sleep; until when.
    pub(super) fn arm_pacer(&mut self, now: Time) -> Option<Time> {
        self.pacer_until = self.link.wake_at(now);
        self.pacer_until
    }

    /// The pacer is gone: all who wait are to ask again.
    pub(super) fn lose_pacer(&mut self) -> Vec<Waker> {
        (self.has_pacer, self.pacer_until) = (false, None);
        self.link.take_wakers()
    }
}
