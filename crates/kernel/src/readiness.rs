//! Waiting until one of a few descriptors can be read or a time has come, to the nanosecond, and
//! being woken by another thread.
//!
//! For loops that are a thread of their own. The wait is a ppoll: its timeout counts nanoseconds,
//! where epoll's counts milliseconds; how exactly it is kept is up to the thread's timer slack
//! ([`crate::timer::set_timer_slack_ns`]) and priority.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// Waits until one of the descriptors can be read, or is broken, at most `timeout_ns` (`None`:
/// without end); says which of them. None of them after the time, or when a signal came in between.
pub fn wait_readable<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    timeout_ns: Option<u64>,
) -> io::Result<[bool; N]> {
    let mut polled = fds.each_ref().map(|fd| PollFd::new(fd, PollFlags::IN));
    let timeout = timeout_ns.map(|ns| Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    });
    match poll(&mut polled, timeout.as_ref()) {
        Ok(_) => Ok(polled.each_ref().map(|fd| !fd.revents().is_empty())),
        Err(rustix::io::Errno::INTR) => Ok([false; N]),
        Err(error) => Err(error.into()),
    }
}

/// A descriptor that another thread makes readable, and that stays so.
#[derive(Debug)]
pub struct Wake {
    fd: OwnedFd,
}

impl Wake {
    /// Not readable yet; fails without descriptors.
    pub fn new() -> io::Result<Wake> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Wake { fd })
    }

    /// Makes it readable.
    pub fn wake(&self) {
        // It fails only when the count is full, and then it is readable.
        let _ = rustix::io::write(&self.fd, &1_u64.to_ne_bytes());
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic_ns;

    #[test]
    fn a_wait_ends_with_its_time_or_with_a_wake() {
        let (first, second) = (Wake::new().unwrap(), Wake::new().unwrap());
        let start_ns = monotonic_ns();
        let fds = [first.as_fd(), second.as_fd()];
        assert_eq!(wait_readable(fds, Some(200_000)).unwrap(), [false, false]);
        assert!(monotonic_ns() >= start_ns + 200_000);
        std::thread::scope(|scope| {
            scope.spawn(|| second.wake());
            assert_eq!(wait_readable(fds, None).unwrap(), [false, true]);
        });
        assert_eq!(wait_readable(fds, Some(0)).unwrap(), [false, true]);
    }
}
