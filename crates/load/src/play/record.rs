//! What became of one request.

use crate::exchange::Served;
use crate::failure::Failure;
use crate::patience::End;
use sooner_workload::Arrival;

/// What became of one request; times are CLOCK_MONOTONIC ns.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// What the client requested.
    pub arrival: Arrival,
    /// When it should have been sent.
    pub intended_ns: u64,
    /// When it was, for the first time: just before connect(), or when it was given to a connection
    /// that was there.
    pub sent_ns: u64,
    /// Whether a connection was opened for it when it was sent.
    pub new_connection: bool,
    /// Attempts that were aborted.
    pub aborts: u32,
    /// How it ended; `None` while it has not.
    pub end: Option<End>,
    /// When it failed.
    pub failed_ns: Option<u64>,
}

impl Record {
    /// The answer, if one came.
    pub fn served(&self) -> Option<Served> {
        match self.end {
            Some(End::Served(served)) => Some(served),
            _ => None,
        }
    }

    /// Why it failed, if it did.
    pub fn failure(&self) -> Option<Failure> {
        match self.end {
            Some(End::Failed(failure)) => Some(failure),
            _ => None,
        }
    }
}
