//! What the handle, the flows, the streams and the pacer of one uplink share: the scheduler behind
//! a lock.
//!
//! A process has one thread for all connections, so the lock is never contended; it is there
//! because hyper's upgraded connections must be `Send`. Observers and wakers are called after it is
//! released.

use crate::auto_rate::AutoRate;
use crate::installed_bands::{BandsNews, InstalledBands};
use crate::mechanism::Metering;
use crate::observer::Observer;
use crate::pacer;
use sooner_kernel::clock::monotonic_ns;
use sooner_link::{Answer, Effects, FlowId, LinkScheduler, NextGrant, OnEnd, ResponseStart};
use sooner_policy::Time;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use tokio::sync::Notify;

/// The scheduler of one uplink behind its lock, and what needs no lock.
pub(crate) struct SharedLink {
    state: Mutex<State>,
    /// Whether writes wait for grants.
    pub(crate) is_paced: bool,
    /// Whether the policy wants to know the networks to the clients.
    pub(crate) asks_for_paths: bool,
    /// Whether sockets are marked for kernel bands.
    pub(crate) marks_bands: bool,
    pub(crate) pacer_wanted: Arc<Notify>,
    pub(crate) observer: OnceLock<Arc<dyn Observer>>,
    /// Finds the link's rate; none: it was given.
    pub(crate) auto_rate: Option<AutoRate>,
    metering: Metering,
    /// What of a link's limits every write asks for; it changes with the rate.
    unsent_bytes_max: AtomicU32,
    /// Apart from the scheduler: changing it asks the kernel.
    installed_bands: Mutex<InstalledBands>,
}

/// What is behind the lock.
pub(crate) struct State {
    pub(crate) link: LinkScheduler,
    /// Until when the pacer sleeps; it must be woken for anything earlier.
    pacer_until: Option<Time>,
    /// Whether a task wakes flows at their turn.
    has_pacer: bool,
}

impl SharedLink {
    pub(crate) fn new(
        link: LinkScheduler,
        installed_bands: InstalledBands,
        metering: Metering,
        auto_rate: Option<AutoRate>,
    ) -> Self {
        Self {
            auto_rate,
            metering,
            unsent_bytes_max: link.unsent_bytes_max().into(),
            is_paced: link.is_paced(),
            asks_for_paths: link.asks_for_paths(),
            marks_bands: link.chooses_bands(),
            state: Mutex::new(State {
                has_pacer: link.is_paced(),
                pacer_until: None,
                link,
            }),
            pacer_wanted: Arc::default(),
            observer: OnceLock::new(),
            installed_bands: Mutex::new(installed_bands),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // After a panic the account may be off by one response; the kernel must be put back all the
        // same.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Time {
        now()
    }

    pub(crate) fn priority_of(&self, band: u8) -> Option<u32> {
        self.bands().priority_of(band)
    }

    pub(crate) fn last_priority(&self) -> Option<u32> {
        self.bands().last_priority()
    }

    /// The link has another rate from now on, here and on the device.
    pub(crate) fn set_rate(&self, rate_bits_per_sec: u64) {
        // A device that is gone carries nothing at any rate.
        let _ = self.bands().set_rate(rate_bits_per_sec);
        let limits = self.metering.limits(rate_bits_per_sec);
        let unsent_bytes_max = self.change(|link, _| {
            link.set_limits(limits);
            link.unsent_bytes_max()
        });
        self.unsent_bytes_max
            .store(unsent_bytes_max, Ordering::Relaxed);
    }

    /// Unsent bytes that a socket may hold which no streams share.
    pub(crate) fn unsent_bytes_max(&self) -> u32 {
        self.unsent_bytes_max.load(Ordering::Relaxed)
    }

    /// What has left the device, where bands count it.
    pub(crate) fn device_bytes(&self) -> Option<u64> {
        self.bands().sent_bytes()
    }

    /// Whether the bands are there that were installed; what has changed of that.
    pub(crate) fn review_bands(&self) -> Option<BandsNews> {
        self.bands().review(self.is_paced)
    }

    /// Why there are no bands where they were installed.
    pub(crate) fn bands_trouble(&self) -> Option<BandsNews> {
        self.bands().trouble(self.is_paced)
    }

    fn bands(&self) -> MutexGuard<'_, InstalledBands> {
        // The kernel must be put back whatever happened.
        self.installed_bands
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the connection may write now; without pacing it always may.
    pub(crate) fn ask(&self, connection: FlowId, want_bytes: u64, waker: &Waker) -> Answer {
        if !self.is_paced {
            return Answer::Go(want_bytes);
        }
        let mut state = self.lock();
        let answer = state.link.ask(connection, want_bytes, waker, self.now());
        if answer == Answer::Wait {
            self.want_pacer(&mut state);
        }
        answer
    }

    /// Whether the stream may hand over now.
    pub(crate) fn ask_stream(&self, stream: FlowId, want_bytes: u64, waker: &Waker) -> Answer {
        let (answer, next) = {
            let mut state = self.lock();
            let now = self.now();
            let answer = state.link.ask(stream, want_bytes, waker, now);
            let next = if answer == Answer::Wait {
                // It may wait for its own connection, and leave the link to another.
                let next = state.next_waker(now);
                self.want_pacer(&mut state);
                next
            } else {
                None
            };
            (answer, next)
        };
        wake(next);
        answer
    }

    /// The stream handed over `written_bytes` of its grant.
    pub(crate) fn settle_stream(&self, stream: FlowId, written_bytes: u64) {
        let next = {
            let mut state = self.lock();
            let now = self.now();
            state.link.settle_stream(stream, written_bytes, now);
            // A stream that handed over comes back at once for more; one that gave its turn back
            // may not.
            let gives_back = written_bytes == 0;
            let next = gives_back.then(|| state.next_waker(now)).flatten();
            self.want_pacer(&mut state);
            next
        };
        wake(next);
    }

    /// The connection opens a stream; within a tokio runtime.
    pub(crate) fn open_stream(self: &Arc<Self>, connection: FlowId) -> FlowId {
        let mut state = self.lock();
        let stream = state.link.open_stream(connection, self.now());
        if !std::mem::replace(&mut state.has_pacer, true) {
            tokio::spawn(pacer::run_unpaced(Arc::downgrade(self)));
        }
        stream
    }

    /// Wakes the flow that may go next, and has the pacer wake the one after.
    pub(crate) fn wake_next(&self) {
        self.change(|_, _| ());
    }

    /// Changes something under the lock and wakes the flow that may go next.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut LinkScheduler, Time) -> R) -> R {
        let (result, next) = {
            let mut state = self.lock();
            let now = self.now();
            let result = change(&mut state.link, now);
            let next = state.next_waker(now);
            self.want_pacer(&mut state);
            (result, next)
        };
        wake(next);
        result
    }

    /// A response begins on `flow`; `body_done`: the body before it has ended. Tells the observer,
    /// or the response's owner that it has ended before it began.
    pub(crate) fn start(
        &self,
        flow: FlowId,
        response: ResponseStart,
        on_end: OnEnd,
        body_done: bool,
    ) {
        let now = self.now();
        let started = {
            let mut state = self.lock();
            if body_done {
                state.link.body_done(flow);
            }
            state.link.start(flow, response, on_end, now)
        };
        match started {
            Ok(started) => {
                if let Some(observer) = self.observer.get() {
                    observer.started(started.job, started.wire_bytes, now);
                }
            }
            Err((on_end, report)) => on_end(report),
        }
    }

    /// Does what was left to do after the lock.
    pub(crate) fn conclude(&self, effects: Effects) {
        effects.wakers.into_iter().for_each(Waker::wake);
        for ended in effects.ended {
            if let Some(observer) = self.observer.get() {
                observer.ended(ended.job, self.now(), &ended.report);
            }
            (ended.on_end)(ended.report);
        }
    }

    /// The pacer goes to sleep; until when.
    pub(crate) fn arm_pacer(&self) -> Option<Time> {
        let mut state = self.lock();
        state.pacer_until = state.link.wake_at(self.now());
        state.pacer_until
    }

    /// What goes next, and the link's rate.
    pub(crate) fn next_grant(&self, now: Time) -> (Option<NextGrant>, u64) {
        let link = &mut self.lock().link;
        let rate_bits_per_sec = link.rate_bits_per_sec().unwrap_or(u64::MAX);
        (link.next_grant(now), rate_bits_per_sec)
    }

    /// Wakes the pacer if it sleeps past the time at which it is needed.
    fn want_pacer(&self, state: &mut State) {
        let Some(at) = state.link.wake_at(self.now()) else {
            return;
        };
        if state.pacer_until.is_none_or(|until| at < until) {
            state.pacer_until = Some(at);
            self.pacer_wanted.notify_one();
        }
    }
}

impl State {
    /// The waker of the flow that may go next, if the link can take more.
    fn next_waker(&mut self, now: Time) -> Option<Waker> {
        let flow = self.link.wake_next(now)?;
        self.link.take_waker(flow)
    }
}

impl Drop for SharedLink {
    fn drop(&mut self) {
        // The pacer finds nothing to pace, and ends.
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
