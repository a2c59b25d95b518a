//! The one clock: CLOCK_MONOTONIC as nanoseconds, because timers, traces and policies all want
//! plain integers.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC since boot; never goes back, costs no system call.
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// A time of the kernel's as nanoseconds; negative times count as 0.
pub(crate) fn nanoseconds(time: Timespec) -> u64 {
    u64::try_from(i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_not_go_back() {
        let before_ns = monotonic_ns();
        assert!(before_ns > 0);
        assert!(monotonic_ns() >= before_ns);
    }

    #[test]
    fn adds_seconds_and_nanoseconds() {
        assert_eq!(
            nanoseconds(Timespec {
                tv_sec: 2,
                tv_nsec: 3
            }),
            2_000_000_003
        );
        assert_eq!(
            nanoseconds(Timespec {
                tv_sec: -1,
                tv_nsec: 0
            }),
            0
        );
    }
}
