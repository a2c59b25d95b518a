//! Sleeping until a time, to the microsecond.
//!
//! tokio's timers count milliseconds; at 100 Mbit/s a packet takes 0.12 ms. A timerfd wakes the
//! same reactor 16 us after its deadline (median on two busy cores; p99 0.05 to 1.3 ms, by what
//! else wants the core). Deadlines are absolute, so a late wake-up does not shift the next one.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::clock::monotonic_ns;
use crate::raw;

/// A timer on the tokio reactor with deadlines in [`monotonic_ns`]; one waiter at a time.
#[derive(Debug)]
pub struct PacingTimer {
    fd: AsyncFd<OwnedFd>,
    /// The deadline the kernel knows; 0 when there is none.
    armed_ns: AtomicU64,
}

impl PacingTimer {
    /// A disarmed timer; fails outside a tokio runtime's context (panics there, as tokio does) or
    /// without descriptors.
    pub fn new() -> io::Result<PacingTimer> {
        let fd = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        Ok(PacingTimer {
            fd: raw::watch_readable(fd)?,
            armed_ns: AtomicU64::new(0),
        })
    }

    /// Returns when [`monotonic_ns`] has reached `deadline_ns`; at once when it already has.
    pub async fn sleep_until_ns(&self, deadline_ns: u64) {
        if monotonic_ns() >= deadline_ns {
            return;
        }
        self.arm(deadline_ns);
        loop {
            let mut guard = self
                .fd
                .readable()
                .await
                .expect("the runtime that owns the timer has shut down");
            if guard.try_io(|fd| self.expired(fd)).is_ok() {
                // Its one expiration is taken: the next wait need not read to find that out.
                guard.clear_ready();
                return;
            }
        }
    }

    /// The same as a poll: ready once `deadline_ns` is reached. Another deadline than at the last
    /// poll moves the timer.
    pub fn poll_sleep(&mut self, cx: &mut Context<'_>, deadline_ns: u64) -> Poll<()> {
        if monotonic_ns() >= deadline_ns {
            return Poll::Ready(());
        }
        self.arm(deadline_ns);
        loop {
            let mut guard = ready!(self.fd.poll_read_ready(cx))
                .expect("the runtime that owns the timer has shut down");
            if guard.try_io(|fd| self.expired(fd)).is_ok() {
                // Its one expiration is taken: the next wait need not read to find that out.
                guard.clear_ready();
                return Poll::Ready(());
            }
        }
    }

    /// Tells the kernel the deadline unless it knows it; what had expired before is forgotten.
    fn arm(&self, deadline_ns: u64) {
        if self.armed_ns.swap(deadline_ns, Ordering::Relaxed) == deadline_ns {
            return;
        }
        let setting = Itimerspec {
            it_interval: timespec(0),
            it_value: timespec(deadline_ns.max(1)),
        };
        timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::ABSTIME, &setting)
            .expect("a timerfd accepts any time");
    }

    /// Takes the expiration the timer has; `WouldBlock` while there is none.
    fn expired(&self, fd: &AsyncFd<OwnedFd>) -> io::Result<()> {
        rustix::io::read(fd.get_ref(), &mut [0; 8])?;
        self.armed_ns.store(0, Ordering::Relaxed);
        Ok(())
    }
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    }
}

/// Lets the kernel delay this thread's poll timeouts by at most `slack_ns` (the default is 50 000);
/// 0 counts as 1.
pub fn set_timer_slack_ns(slack_ns: u64) -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(Some(
        NonZeroU64::new(slack_ns).unwrap_or(NonZeroU64::MIN),
    ))?)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    fn block_on(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(test);
    }

    #[test]
    fn never_wakes_early() {
        block_on(async {
            let timer = PacingTimer::new().unwrap();
            for step_ns in [0, 1, 50_000, 1_000_000, 3_000_000] {
                let deadline_ns = monotonic_ns() + step_ns;
                timer.sleep_until_ns(deadline_ns).await;
                assert!(monotonic_ns() >= deadline_ns);
            }
        });
    }

    #[test]
    fn a_past_deadline_is_ready_at_once() {
        block_on(async {
            let mut timer = PacingTimer::new().unwrap();
            timer.sleep_until_ns(0).await;
            assert!(
                poll_fn(|cx| Poll::Ready(timer.poll_sleep(cx, 1)))
                    .await
                    .is_ready()
            );
        });
    }

    #[test]
    fn a_poll_may_move_the_deadline_both_ways() {
        block_on(async {
            let mut timer = PacingTimer::new().unwrap();
            let start_ns = monotonic_ns();
            let mut first = true;
            poll_fn(|cx| {
                if std::mem::take(&mut first) {
                    assert!(
                        timer
                            .poll_sleep(cx, start_ns + 3_600_000_000_000)
                            .is_pending()
                    );
                }
                timer.poll_sleep(cx, start_ns + 2_000_000)
            })
            .await;
            assert!(monotonic_ns() >= start_ns + 2_000_000);
            poll_fn(|cx| timer.poll_sleep(cx, start_ns + 4_000_000)).await;
            assert!(monotonic_ns() >= start_ns + 4_000_000);
        });
    }

    #[test]
    fn slack_is_accepted() {
        set_timer_slack_ns(1).unwrap();
        set_timer_slack_ns(0).unwrap();
    }
}
