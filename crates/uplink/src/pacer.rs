//! The task that wakes the next writer when the link can take more.

use crate::mechanism::queued_bytes_max;
use crate::shared_link::{SharedLink, now};
use sooner_kernel::qdisc::BacklogProbe;
use sooner_kernel::timer::PacingTimer;
use sooner_link::{Ahead, NextGrant, transmission_ns};
use sooner_policy::Time;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::yield_now;

/// The longest wait for the device's queue to drain, ns. Others' traffic may always keep that queue
/// long; then grants still pass, one after each such wait, and every promise of the guard holds at
/// that pace.
const HOLD_NS_MAX: u64 = 10_000_000;
/// Between two looks at bands while little waits there, ns: each is a question of its own, and they
/// put in order what others send meanwhile.
const BANDS_LOOK_NS: u64 = 20_000_000;

/// The loop closed on the device's own queue: while more than may lie ahead of the link are still
/// inside the host, the next grant is held back.
///
/// This sees what no account of our own can: other programs' traffic on the same device, and a link
/// slower than it was said to be. With bands only what waits in the next grant's band and in those
/// before is of interest.
pub(crate) struct Backlog {
    pub(crate) probe: BacklogProbe,
    /// Whether it asks for the bands.
    pub(crate) has_bands: bool,
    /// When it may be asked again.
    pub(crate) look_at: Time,
    /// How much may lie ahead of the link; none: one grant.
    pub(crate) ahead: Option<Ahead>,
}

impl Backlog {
    /// Until when to hold, if the device's queue is too long; a device that stops answering holds
    /// nothing.
    fn hold_until(&mut self, next: NextGrant, rate_bits_per_sec: u64, now: Time) -> Option<Time> {
        if now < self.look_at {
            return None;
        }
        let own_bytes = Ahead::Ns(next.ahead_ns).bytes(rate_bits_per_sec);
        let limit_bytes = queued_bytes_max(rate_bits_per_sec, self.ahead).max(own_bytes);
        let backlog_bytes = self.probe.backlog_bytes(next.band).ok()?;
        let Some(excess_bytes) = backlog_bytes
            .checked_sub(limit_bytes)
            .filter(|more| *more > 0)
        else {
            if self.has_bands {
                self.look_at = now.after(BANDS_LOOK_NS);
            }
            return None;
        };
        let drain_ns = transmission_ns(excess_bytes, rate_bits_per_sec);
        Some(now.after(drain_ns.clamp(50_000, HOLD_NS_MAX)))
    }
}

/// Runs until the uplink is dropped.
pub(crate) async fn run(
    shared: Weak<SharedLink>,
    timer: PacingTimer,
    mut backlog: Option<Backlog>,
) {
    let mut held = false;
    loop {
        let Some(strong) = shared.upgrade() else {
            return;
        };
        let wake_at = strong.arm_pacer();
        let notified = strong.pacer_wanted.clone();
        drop(strong);
        match wake_at {
            None => notified.notified().await,
            Some(at) => tokio::select! {
                () = notified.notified() => continue,
                () = timer.sleep_until_ns(at.as_ns()) => {}
            },
        }
        let Some(strong) = shared.upgrade() else {
            return;
        };
        let (next, rate_bits_per_sec, now) = strong.next_grant();
        let backlog = backlog.as_mut().filter(|_| !held);
        let hold = backlog.zip(next).and_then(|(backlog, next)| {
            let until = backlog.hold_until(next, rate_bits_per_sec, now)?;
            Some((next, until))
        });
        held = hold.is_some();
        match hold {
            Some((next, until)) => strong.lock().link.hold_until(next, until),
            None => strong.wake_next(),
        }
        drop(strong);
        // A flow of this thread that was woken writes first, so that the timer is set once a grant:
        // not for the case that it does not come, and then for the next. One of another thread may
        // ask later. Until it does, `wake_at` lies as far ahead as it has time to come back, so
        // this loop sleeps. When it then needs the pacer earlier, it sees that under the lock,
        // where `arm_pacer` has noted the sleep, and wakes it.
        yield_now().await;
    }
}

/// Without pacing there is no link to wait for, only streams that were woken and do not ask: one
/// task for all threads, on the runtime of the stream that first waits.
pub(crate) fn start_unpaced(shared: &Arc<SharedLink>, runtime: &Handle) {
    runtime.spawn(Unpaced(Arc::downgrade(shared)).run());
}

/// The task without pacing. Its runtime may end before the uplink does.
struct Unpaced(Weak<SharedLink>);

impl Unpaced {
    /// Runs until the uplink is dropped.
    async fn run(self) {
        loop {
            let Some(strong) = self.0.upgrade() else {
                return;
            };
            let wake_at = strong.arm_pacer();
            let notified = strong.pacer_wanted.clone();
            drop(strong);
            let Some(at) = wake_at else {
                notified.notified().await;
                continue;
            };
            let delay_ns = at.since(now());
            if delay_ns > 0 {
                tokio::select! {
                    () = notified.notified() => continue,
                    () = tokio::time::sleep(Duration::from_nanos(delay_ns)) => {}
                }
            }
            if let Some(strong) = self.0.upgrade() {
                strong.wake_next();
            }
            // Other threads may make work for this loop without end; the flows of this thread have
            // their turns in between.
            yield_now().await;
        }
    }
}

impl Drop for Unpaced {
    fn drop(&mut self) {
        if let Some(strong) = self.0.upgrade() {
            strong.lose_pacer();
        }
    }
}
