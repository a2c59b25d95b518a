//! What the handle, the flows, the streams and the pacer have in common.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;

use sooner_kernel::clock::monotonic_ns;
use sooner_policy::Time;
use tokio::sync::Notify;

use crate::mechanism::Setup;
use crate::observer::Observer;
use crate::pacer;
use sooner_link::JobReport;
use sooner_link::StreamOrder;
use sooner_link::core::{Core, Ended, OnEnd, Outcome, Started};
use sooner_link::gate::{Answer, FlowId};

/// What [`Core::start`] says.
type StartResult = Result<Started, (OnEnd, JobReport)>;

/// The core behind its lock, and what needs no lock.
pub(crate) struct Shared {
    core: Mutex<Core>,
    /// Whether writes wait for grants.
    pub(crate) paced: bool,
    /// Whether the policy wants to know the networks to the clients.
    pub(crate) asks_for_paths: bool,
    /// Whether sockets are marked for kernel bands.
    pub(crate) marks: bool,
    pub(crate) pacer_wanted: Arc<Notify>,
    pub(crate) observer: OnceLock<Arc<dyn Observer>>,
    setup: Setup,
}

impl Shared {
    pub(crate) fn new(core: Core, setup: Setup) -> Self {
        Self {
            paced: core.gate.is_some(),
            asks_for_paths: core.asks_for_paths(),
            marks: core.marks.is_some(),
            core: Mutex::new(core),
            pacer_wanted: Arc::default(),
            observer: OnceLock::new(),
            setup,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        // After a panic the account may be off by one response; the kernel must be put back all the same.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Time {
        now()
    }

    pub(crate) fn priority_of(&self, band: u8) -> Option<u32> {
        self.setup.priority_of(band)
    }

    pub(crate) fn last_priority(&self) -> Option<u32> {
        self.setup.last_priority()
    }

    pub(crate) fn ask(&self, flow: FlowId, want_bytes: u64, waker: &Waker) -> Answer {
        if !self.paced {
            return Answer::Go(want_bytes);
        }
        let mut core = self.lock();
        let answer = core.ask(flow, want_bytes, waker, self.now());
        if answer == Answer::Wait {
            self.want_pacer(&mut core);
        }
        answer
    }

    /// The connection opens a stream; within a tokio runtime.
    pub(crate) fn open_stream(self: &Arc<Self>, connection: FlowId) -> FlowId {
        let opened = self.lock().open_stream(connection, self.now());
        if opened.wants_pacer {
            tokio::spawn(pacer::watch(Arc::downgrade(self)));
        }
        opened.stream
    }

    pub(crate) fn ask_stream(&self, stream: FlowId, want_bytes: u64, waker: &Waker) -> Answer {
        let (answer, next) = {
            let mut core = self.lock();
            let now = self.now();
            match core.ask(stream, want_bytes, waker, now) {
                Answer::Wait => {
                    // It may wait for its own connection, and leave the link to another.
                    let next = core.call(now);
                    self.want_pacer(&mut core);
                    (Answer::Wait, next)
                }
                go => (go, None),
            }
        };
        wake(next);
        answer
    }

    pub(crate) fn settle_stream(&self, stream: FlowId, written_bytes: u64) {
        let next = {
            let mut core = self.lock();
            let now = self.now();
            core.settle_stream(stream, written_bytes, now);
            // Who handed over comes back at once for more; who gave the turn back may not.
            let next = (written_bytes == 0).then(|| core.call(now)).flatten();
            self.want_pacer(&mut core);
            next
        };
        wake(next);
    }

    pub(crate) fn set_urgency(&self, stream: FlowId, urgency: u8, order: StreamOrder) {
        self.change(|core, now| core.set_urgency(stream, urgency, order, now));
    }

    pub(crate) fn finish_stream(&self, stream: FlowId) {
        self.change(|core, now| core.finish_stream(stream, now));
    }

    pub(crate) fn stream_written(&self, stream: FlowId) {
        self.lock().stream_written(stream);
    }

    pub(crate) fn close_stream(&self, stream: FlowId) {
        let ended = self.change(|core, now| core.close_stream(stream, now));
        self.report(ended);
    }

    pub(crate) fn hold_until(&self, until: Time) {
        if let Some(gate) = &mut self.lock().gate {
            gate.hold_until(until);
        }
    }

    /// Wakes the flow whose turn it is, and sees to it that somebody wakes the one after.
    pub(crate) fn call_next(&self) {
        self.change(|_, _| ());
    }

    /// Changes something under the lock and wakes the flow whose turn came with it.
    fn change<R>(&self, change: impl FnOnce(&mut Core, Time) -> R) -> R {
        let (result, next) = {
            let mut core = self.lock();
            let now = self.now();
            let result = change(&mut core, now);
            let next = core.call(now);
            self.want_pacer(&mut core);
            (result, next)
        };
        wake(next);
        result
    }

    /// Tells the observer of a response that begins, or its owner that it has ended before.
    pub(crate) fn report_start(&self, result: StartResult, now: Time) {
        match result {
            Ok(started) => {
                if let Some(observer) = self.observer.get() {
                    observer.started(started.job, started.wire_bytes, now);
                }
            }
            Err((on_end, report)) => on_end(report),
        }
    }

    /// Does what was left to do after the lock.
    pub(crate) fn conclude(&self, outcome: Outcome) {
        outcome.wakers.into_iter().for_each(Waker::wake);
        self.report(outcome.ended);
    }

    fn report(&self, ended: Vec<Ended>) {
        for ended in ended {
            if let Some(observer) = self.observer.get() {
                observer.ended(ended.job, self.now(), &ended.report);
            }
            (ended.on_end)(ended.report);
        }
    }

    /// The pacer goes to sleep; until when.
    pub(crate) fn arm_pacer(&self) -> Option<Time> {
        let mut core = self.lock();
        core.pacer_until = core.gate.as_ref().and_then(|gate| gate.wake_at());
        core.pacer_until
    }

    /// Wakes the pacer if it sleeps past the time at which it is needed.
    fn want_pacer(&self, core: &mut Core) {
        let Some(at) = core.gate.as_ref().and_then(|gate| gate.wake_at()) else {
            return;
        };
        if core.pacer_until.is_none_or(|until| at < until) {
            core.pacer_until = Some(at);
            self.pacer_wanted.notify_one();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The pacer finds nobody to pace, and ends.
        self.pacer_wanted.notify_one();
    }
}

/// The time of every decision under tokio.
pub(crate) fn now() -> Time {
    Time::from_ns(monotonic_ns())
}

fn wake(next: Option<Waker>) {
    if let Some(waker) = next {
        waker.wake();
    }
}
