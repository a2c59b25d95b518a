//! What is known of a worker at a moment.

use std::num::NonZeroU64;

use crate::history::RequestKind;

/// What it does. Times are of one monotonic clock, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// It is on a processor.
    Runs,
    /// It could run.
    Ready {
        /// Since when.
        since_ns: u64,
    },
    /// It waits for something.
    Asleep {
        /// Since when.
        since_ns: u64,
    },
    /// It waits for a connection.
    Idle {
        /// Since when.
        since_ns: u64,
    },
}

impl Doing {
    /// Whether it wants a processor.
    pub fn is_active(self) -> bool {
        matches!(self, Doing::Runs | Doing::Ready { .. })
    }

    /// For how long it has waited for something, ns; 0 where it does not.
    pub fn quiet_ns(self, now_ns: u64) -> u64 {
        match self {
            Doing::Runs | Doing::Ready { .. } => 0,
            Doing::Asleep { since_ns } | Doing::Idle { since_ns } => {
                now_ns.saturating_sub(since_ns)
            }
        }
    }
}

/// One worker, looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// What it does.
    pub doing: Doing,
    /// Processor time it has used so far, ns.
    pub run_ns: u64,
    /// How often it fell asleep.
    pub sleeps: u64,
    /// Requests that were seen to begin; 0 where beginnings cannot be seen.
    pub requests: u64,
    /// What it had used when the last of them began, ns.
    pub begin_run_ns: u64,
    /// When that was.
    pub begin_at_ns: u64,
    /// Whether it has written to its client since.
    pub has_answered: bool,
    /// What the last of them has in common with others, where that is known.
    pub kind: Option<RequestKind>,
    /// Whether others work on the connections that it accepts: it has no request of its own.
    pub hands_on: bool,
    /// What its application says that the request will use in all, ns.
    pub said_ns: Option<NonZeroU64>,
}

/// A request that is over, of a worker of which beginnings are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// What it has in common with others, where that is known.
    pub kind: Option<RequestKind>,
    /// When it began, ns.
    pub began_ns: u64,
    /// Processor time that it used, ns.
    pub used_ns: u64,
}
