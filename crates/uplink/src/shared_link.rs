//! What the handle, the flows, the streams and the pacer of one uplink share: the scheduler behind
//! a lock.
//!
//! Connections may live on several threads, each with a runtime of its own. All decide under this
//! lock, one after the other, and read the time of a decision under it: it never goes back from one
//! to the next. The lock is held for a decision and nothing else. Wakers, the pacer and observers
//! are called when it is free: to wake another thread is a system call, and an observer may ask for
//! the lock.

mod state;

use crate::auto_rate::AutoRate;
use crate::installed_bands::{BandsNews, InstalledBands};
use crate::mechanism::Metering;
use crate::observer::Observer;
use sooner_kernel::bands::Bands;
use sooner_kernel::clock::monotonic_ns;
use sooner_link::{Answer, Effects, FlowId, LinkScheduler, NextGrant, OnEnd, ResponseStart};
use sooner_policy::Time;
use state::Calls;
pub(crate) use state::State;
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
    /// Bands that were installed, there or lost; none: not any.
    band_count: Option<u8>,
    /// Apart from the scheduler: changing it asks the kernel.
    installed_bands: Mutex<InstalledBands>,
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
            state: Mutex::new(State::new(link)),
            pacer_wanted: Arc::default(),
            observer: OnceLock::new(),
            band_count: installed_bands.count(),
            installed_bands: Mutex::new(installed_bands),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // After a panic the account may be off by one response; the kernel must be put back all the
        // same.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock, and the time of what is decided under it.
    pub(crate) fn lock_at(&self) -> (MutexGuard<'_, State>, Time) {
        let state = self.lock();
        // Not before the lock: another thread may decide while this one waits for it.
        let now = now();
        (state, now)
    }

    /// The socket priority that selects a band; `None` where none were installed.
    pub(crate) fn priority_of(&self, band: u8) -> Option<u32> {
        self.band_count.map(|_| Bands::priority_of(band))
    }

    /// The socket priority that selects the last band; `None` where none were installed.
    pub(crate) fn last_priority(&self) -> Option<u32> {
        let count = self.band_count?;
        Some(Bands::priority_of(count.saturating_sub(1)))
    }

    /// The link has another rate from now on, here and on the device.
    pub(crate) fn set_rate(self: &Arc<Self>, rate_bits_per_sec: u64) {
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
    pub(crate) fn ask(
        self: &Arc<Self>,
        connection: FlowId,
        want_bytes: u64,
        waker: &Waker,
    ) -> Answer {
        if !self.is_paced {
            return Answer::Go(want_bytes);
        }
        self.decide(|state, now| {
            let answer = state.link.ask(connection, want_bytes, waker, now);
            let calls = match answer {
                Answer::Wait => Calls {
                    next: None,
                    pacer: state.want_pacer(now),
                },
                Answer::Go(_) => Calls::default(),
            };
            (answer, calls)
        })
    }

    /// Whether the stream may hand over now.
    pub(crate) fn ask_stream(
        self: &Arc<Self>,
        stream: FlowId,
        want_bytes: u64,
        waker: &Waker,
    ) -> Answer {
        self.decide(|state, now| {
            let answer = state.link.ask(stream, want_bytes, waker, now);
            let calls = match answer {
                // It may wait for its own connection, and leave the link to another.
                Answer::Wait => state.calls(now),
                Answer::Go(_) => Calls::default(),
            };
            (answer, calls)
        })
    }

    /// The stream handed over `written_bytes` of its grant.
    pub(crate) fn settle_stream(self: &Arc<Self>, stream: FlowId, written_bytes: u64) {
        self.decide(|state, now| {
            state.link.settle_stream(stream, written_bytes, now);
            // A stream that handed over comes back at once for more; one that gave its turn back
            // may not.
            let gives_back = written_bytes == 0;
            let next = gives_back.then(|| state.next_waker(now)).flatten();
            let pacer = state.want_pacer(now);
            ((), Calls { next, pacer })
        });
    }

    /// The connection opens a stream.
    pub(crate) fn open_stream(&self, connection: FlowId) -> FlowId {
        let (mut state, now) = self.lock_at();
        state.link.open_stream(connection, now)
    }

    /// Wakes the flow that may go next, and has the pacer wake the one after.
    pub(crate) fn wake_next(self: &Arc<Self>) {
        self.change(|_, _| ());
    }

    /// Changes something under the lock and wakes the flow that may go next.
    pub(crate) fn change<R>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut LinkScheduler, Time) -> R,
    ) -> R {
        self.decide(|state, now| {
            let result = change(&mut state.link, now);
            (result, state.calls(now))
        })
    }

    /// Decides under the lock, and makes the calls that follow when it is free.
    fn decide<R>(self: &Arc<Self>, decide: impl FnOnce(&mut State, Time) -> (R, Calls)) -> R {
        let (result, calls) = {
            let (mut state, now) = self.lock_at();
            decide(&mut state, now)
        };
        calls.make(self);
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
        let (started, now) = {
            let (mut state, now) = self.lock_at();
            if body_done {
                state.link.body_done(flow);
            }
            (state.link.start(flow, response, on_end, now), now)
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
                observer.ended(ended.job, now(), &ended.report);
            }
            (ended.on_end)(ended.report);
        }
    }

    /// The pacer goes to sleep; until when.
    pub(crate) fn arm_pacer(&self) -> Option<Time> {
        let (mut state, now) = self.lock_at();
        state.arm_pacer(now)
    }

    /// What goes next now, and the link's rate.
    pub(crate) fn next_grant(&self) -> (Option<NextGrant>, u64, Time) {
        let (mut state, now) = self.lock_at();
        let rate_bits_per_sec = state.link.rate_bits_per_sec().unwrap_or(u64::MAX);
        (state.link.next_grant(now), rate_bits_per_sec, now)
    }

    /// The pacer's runtime has ended. All who wait ask again, and the first who is told to wait
    /// starts another pacer.
    pub(crate) fn lose_pacer(&self) {
        let wakers = self.lock().lose_pacer();
        wakers.into_iter().for_each(Waker::wake);
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
