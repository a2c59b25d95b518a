//! Practical size-based scheduler (Dell'Amico, Carra and Michiardi 2015), all weights equal: FSP on
//! estimated sizes, which is not fooled by a job that is larger than it seemed.
//!
//! Processor sharing is played on the estimates, as in FSP. A job that sharing has finished and
//! that is not done is late: under FSP one such job holds up all others. Here the late go before
//! the others and take turns. A late job's rank is what the reference's clock showed at its last
//! turn: after those that became late before then, and before all that are in time, which sharing
//! finishes later than now. So the rank of no other job has to change.
//!
//! A job that ends before its estimate counts from then on as what it was.

use super::Order;
use crate::{Job, VirtualTime};

/// Serves the job that processor sharing would finish first; those that are late take turns.
#[derive(Clone, Debug)]
pub struct Psbs {
    reference: VirtualTime,
    quantum: u64,
}

impl Psbs {
    /// The late share in turns of `quantum` units of service.
    pub fn new(quantum: u64) -> Self {
        Self {
            reference: VirtualTime::default(),
            quantum: quantum.max(1),
        }
    }

    fn is_late(&self, job: &Job) -> bool {
        job.tag <= self.reference.now()
    }
}

impl Order for Psbs {
    fn rank(&self, job: &Job) -> u64 {
        job.tag
    }

    fn arrived(&mut self, job: &mut Job) {
        job.tag = self.reference.arrive(job.id, job.size.unwrap_or(1).max(1));
    }

    fn progressed(&mut self, job: &mut Job, amount: u64) {
        self.reference.advance(amount);
        if self.reference.is_empty() {
            self.reference.pass_idle();
        }
        if self.is_late(job) {
            job.tag = self.reference.now();
        } else if job.size.is_none() {
            job.tag = self.reference.enlarge(job.id, job.tag, amount);
        }
    }

    fn departed(&mut self, job: &Job) {
        if let Some(left) = job.remaining().filter(|left| *left > 0)
            && !self.is_late(job)
        {
            self.reference.shorten(job.id, job.tag, left);
        }
    }

    fn moved_out(&mut self, job: &Job) {
        self.reference.remove(job.id, job.tag);
    }

    fn moved_in(&mut self, job: &mut Job) {
        let left = job.remaining().unwrap_or(1).max(1);
        job.tag = self.reference.arrive(job.id, left);
    }

    fn enlarged(&mut self, job: &mut Job, additional: u64) {
        job.tag = self.reference.enlarge(job.id, job.tag, additional);
    }

    fn max_amount(&self, job: &Job) -> u64 {
        if self.is_late(job) {
            return self.quantum;
        }
        // A job that becomes late has a claim at once.
        let next = self.reference.next_finish();
        next.map_or(self.quantum, |(work, _)| work.max(1))
    }
}
