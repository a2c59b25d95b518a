//! Processor sharing in quanta: what servers do today, all present jobs at the same rate.
//!
//! Start-time fair queueing (Goyal, Vin, Cheng 1996): a job's tag is the virtual time at which its next quantum starts; virtual time
//! is the tag last served. With exact sharing as the reference, no job is off by more than one quantum of each other job.

use super::Order;
use crate::Job;

/// Serves present jobs in equal shares, one quantum at a time.
#[derive(Clone, Copy, Debug)]
pub struct Fair {
    quantum: u64,
    virtual_now: u64,
}

impl Fair {
    /// Turns of `quantum` units of service.
    pub fn new(quantum: u64) -> Self {
        Self {
            quantum: quantum.max(1),
            virtual_now: 0,
        }
    }
}

impl Order for Fair {
    fn rank(&self, job: &Job) -> u64 {
        job.tag
    }

    fn arrived(&mut self, job: &mut Job) {
        job.tag = self.virtual_now;
    }

    fn progressed(&mut self, job: &mut Job, amount: u64) {
        self.virtual_now = self.virtual_now.max(job.tag);
        job.tag = job.tag.saturating_add(amount);
    }

    fn unblocked(&mut self, job: &mut Job) {
        // Time away earns no credit: under sharing, a job that cannot be served gets nothing and is owed nothing.
        job.tag = job.tag.max(self.virtual_now);
    }

    fn max_amount(&self, _job: &Job) -> u64 {
        self.quantum
    }
}
