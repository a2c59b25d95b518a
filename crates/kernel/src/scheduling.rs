//! Running before everything else for a while, where the system allows it.
//!
//! A load generator that shares its core with other work is late by milliseconds (p99 4-9 ms beside
//! a compiler, 0.13 ms with this). Linux keeps 5 % of the time for others even if a real-time
//! thread never sleeps.

use std::io;
use std::marker::PhantomData;

use crate::raw;

/// The calling thread runs under SCHED_FIFO until this is dropped in the same thread.
#[derive(Debug)]
pub struct RealTime {
    not_send: PhantomData<*const ()>,
}

impl RealTime {
    /// At the lowest of its priorities. Needs `CAP_SYS_NICE` or an RLIMIT_RTPRIO above 0; threads and processes started meanwhile
    /// are ordinary ones.
    pub fn enter() -> io::Result<RealTime> {
        RealTime::enter_at(1)
    }

    /// The same at one of the priorities 1 to 99, of which the highest goes first.
    pub fn enter_at(priority: u8) -> io::Result<RealTime> {
        let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
        raw::set_scheduler(0, policy, priority.into())?;
        Ok(RealTime {
            not_send: PhantomData,
        })
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        // Only a privileged thread may clear the flag, and anyone may keep it.
        let ordinary = libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK;
        raw::set_scheduler(0, ordinary, 0).expect("a thread may always give up its priority");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The policy in force: field 41 of /proc/thread-self/stat, counted behind the command in
    /// parentheses.
    fn policy() -> String {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(38).unwrap().to_owned()
    }

    #[test]
    fn the_priority_ends_with_the_guard() {
        assert_eq!(policy(), "0");
        match RealTime::enter() {
            Ok(real_time) => {
                assert_eq!(policy(), "1");
                drop(real_time);
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        }
        assert_eq!(policy(), "0");
    }
}
