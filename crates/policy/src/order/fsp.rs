//! Fair sojourn protocol (Friedman and Henderson 2003): serve one at a time, in the order in which
//! processor sharing would finish.
//!
//! With exact sizes on one server no job is done later than under processor sharing. The reference
//! runs on the amounts really served, so it needs neither the rate nor a clock. A job of unknown
//! size is taken for as large as it has already become.

use super::Order;
use crate::{Job, VirtualTime};

/// Serves the job that processor sharing would finish first.
#[derive(Clone, Debug, Default)]
pub struct Fsp {
    reference: VirtualTime,
}

impl Order for Fsp {
    fn rank(&self, job: &Job) -> u64 {
        job.tag
    }

    fn arrived(&mut self, job: &mut Job) {
        job.tag = self.reference.arrive(job.id, job.size.unwrap_or(1));
    }

    fn progressed(&mut self, job: &mut Job, amount: u64) {
        self.reference.advance(amount);
        if job.size.is_none() {
            job.tag = self.reference.enlarge(job.id, job.tag, amount);
        }
    }

    fn departed(&mut self, job: &Job) {
        // Done jobs stay in the reference until it finishes them too; work that was given up must
        // not.
        if job.remaining().is_some_and(|left| left > 0) {
            self.reference.remove(job.id, job.tag);
        }
    }

    fn moved_out(&mut self, job: &Job) {
        self.reference.remove(job.id, job.tag);
    }

    fn moved_in(&mut self, job: &mut Job) {
        job.tag = self.reference.arrive(job.id, job.remaining().unwrap_or(1));
    }

    fn enlarged(&mut self, job: &mut Job, additional: u64) {
        job.tag = self.reference.enlarge(job.id, job.tag, additional);
    }
}
