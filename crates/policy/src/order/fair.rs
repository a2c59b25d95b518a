//! Processor sharing in quanta: what servers do today, all present jobs at the same rate.
//!
//! Start-time fair queueing (Goyal, Vin, Cheng 1996): a job's tag is the virtual time at which its
//! next quantum starts, and the lowest tag goes next. Virtual time advances by the service given
//! over the number of jobs, as exact sharing would have it.
//!
//! Quanta favour jobs of about one quantum: served as soon as they come, they would be done before
//! exact sharing gave them half. A quantum ranked r is served, on average over where the others are
//! in their turns, when virtual time is half a quantum past r; so the last quantum of a job is
//! ranked half a quantum before the virtual time at which sharing ends the job, and jobs of any
//! size end, on average, as under sharing.

use super::Order;
use crate::Job;

/// Fixed-point bits of tags: sharing divides service among jobs, and tags wrap after 2^56 units a
/// job.
const FRACTION_BITS: u32 = 8;

/// Serves present jobs in equal shares, one quantum at a time.
#[derive(Clone, Copy, Debug)]
pub struct Fair {
    quantum: u64,
    virtual_now: u64,
    present: u64,
}

impl Fair {
    /// Turns of `quantum` units of service.
    pub fn new(quantum: u64) -> Self {
        Self {
            quantum: quantum.max(1),
            virtual_now: 0,
            present: 0,
        }
    }

    fn advance(&mut self, served_tag: u64, amount: u64) {
        let step = scaled(amount) / self.present.max(1);
        // Jobs that are present but blocked would slow the clock; the tag being served bounds how
        // far it can be off.
        let latest = served_tag.saturating_add(scaled(self.quantum));
        self.virtual_now = self
            .virtual_now
            .saturating_add(step)
            .clamp(served_tag, latest);
    }
}

impl Order for Fair {
    fn rank(&self, job: &Job) -> u64 {
        match job.remaining() {
            Some(last) if last <= self.quantum => job
                .tag
                .saturating_add(scaled(last))
                .saturating_sub(scaled(self.quantum) / 2),
            _ => job.tag,
        }
    }

    fn arrived(&mut self, job: &mut Job) {
        self.present += 1;
        job.tag = self.virtual_now;
    }

    fn progressed(&mut self, job: &mut Job, amount: u64) {
        self.advance(job.tag, amount);
        job.tag = job.tag.saturating_add(scaled(amount));
    }

    fn unblocked(&mut self, job: &mut Job) {
        // Time away earns no credit: under sharing, a job that cannot be served gets nothing and is
        // owed nothing. A job that only wrote and asked again is not behind: it waits for its turn
        // as if it had never left.
        job.tag = job
            .tag
            .max(self.virtual_now.saturating_sub(scaled(self.quantum)));
    }

    fn departed(&mut self, _job: &Job) {
        assert!(self.present > 0, "a job that departs was counted");
        self.present -= 1;
    }

    fn max_amount(&self, _job: &Job) -> u64 {
        self.quantum
    }
}

fn scaled(amount: u64) -> u64 {
    amount.saturating_mul(1 << FRACTION_BITS)
}
