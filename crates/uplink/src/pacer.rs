//! The task that wakes the next writer when the link can take more.

use crate::shared_link::SharedLink;
use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::qdisc::BacklogProbe;
use sooner_kernel::timer::PacingTimer;
use sooner_link::transmission_ns;
use sooner_policy::Time;
use std::sync::Weak;
use std::time::Duration;

/// The longest wait for the device's queue to drain, ns. Others' traffic may always keep that queue
/// long; then grants still pass, one after each such wait, and every promise of the guard holds at
/// that pace.
const HOLD_NS_MAX: u64 = 10_000_000;

/// The loop closed on the device's own queue: while more than `limit_bytes` are still inside the
/// host, the next grant is held back.
///
/// This sees what no account of our own can: other programs' traffic on the same device, and a link
/// slower than it was said to be.
pub(crate) struct Backlog {
    pub(crate) probe: BacklogProbe,
    pub(crate) limit_bytes: u64,
    pub(crate) rate_bits_per_sec: u64,
}

impl Backlog {
    /// Until when to hold, if the device's queue is too long; a device that stops answering holds
    /// nothing.
    fn hold_until(&mut self, now: Time) -> Option<Time> {
        let excess_bytes = self
            .probe
            .backlog_bytes()
            .ok()?
            .checked_sub(self.limit_bytes + 1)?
            + 1;
        let drain_ns = transmission_ns(excess_bytes, self.rate_bits_per_sec);
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
        let now = Time::from_ns(monotonic_ns());
        let backlog = backlog.as_mut().filter(|_| !held);
        let hold_until = backlog.and_then(|backlog| backlog.hold_until(now));
        held = hold_until.is_some();
        match hold_until {
            Some(until) => strong.lock().link.hold_until(until),
            None => strong.wake_next(),
        }
    }
}

/// Without pacing there is no link to wait for, only streams that were woken and do not ask. Runs
/// until the uplink is dropped.
pub(crate) async fn run_unpaced(shared: Weak<SharedLink>) {
    loop {
        let Some(strong) = shared.upgrade() else {
            return;
        };
        let wake_at = strong.arm_pacer();
        let notified = strong.pacer_wanted.clone();
        drop(strong);
        let Some(at) = wake_at else {
            notified.notified().await;
            continue;
        };
        let delay_ns = at.since(Time::from_ns(monotonic_ns()));
        if delay_ns > 0 {
            tokio::select! {
                () = notified.notified() => continue,
                () = tokio::time::sleep(Duration::from_nanos(delay_ns)) => {}
            }
        }
        if let Some(strong) = shared.upgrade() {
            strong.wake_next();
        }
    }
}
