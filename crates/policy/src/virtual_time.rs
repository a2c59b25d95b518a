//! Processor sharing without touching every job: a clock that runs at the rate each job is served.
//!
//! With n jobs present, one unit of work moves the clock by 1/n. A job of size s that arrives at
//! clock v is done when the clock shows v + s, whatever arrives later; so one sorted set of finish
//! times is the whole state, and every call costs O(log n).

use crate::JobId;
use alloc::collections::BTreeSet;

/// Fixed-point bits of the clock: rounding stays below 1/256 of a unit a job, and the clock wraps
/// after 2^56 units a job.
const FRACTION_BITS: u32 = 8;

/// A virtual processor-sharing server.
#[derive(Clone, Debug, Default)]
pub struct VirtualTime {
    now: u64,
    /// Work done that did not yet move the clock by a whole step, in 2^-FRACTION_BITS units.
    carry: u64,
    finishes: BTreeSet<(u64, JobId)>,
}

impl VirtualTime {
    /// A job of `size` comes in; returns its finish time on this clock, which orders jobs as
    /// processor sharing finishes them.
    pub fn arrive(&mut self, id: JobId, size: u64) -> u64 {
        let finish = self.now.saturating_add(scaled(size));
        assert!(finish >= self.now, "virtual time never goes back");
        self.finishes.insert((finish, id));
        finish
    }

    /// A job with finish time `finish` turns out `additional` larger; returns its new finish time.
    pub fn enlarge(&mut self, id: JobId, finish: u64, additional: u64) -> u64 {
        self.finishes.remove(&(finish, id));
        let later = finish.max(self.now).saturating_add(scaled(additional));
        self.finishes.insert((later, id));
        later
    }

    /// A job with finish time `finish` turns out `less` smaller; it leaves if it would be done.
    pub fn shorten(&mut self, id: JobId, finish: u64, less: u64) {
        let earlier = finish.saturating_sub(scaled(less));
        if self.finishes.remove(&(finish, id)) && earlier > self.now {
            self.finishes.insert((earlier, id));
        }
    }

    /// What the clock shows; finish times of jobs that are done are not after it.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// While no job is there the clock shows nothing; it goes on by its least step, so that what
    /// happens then has an order.
    pub fn pass_idle(&mut self) {
        assert!(self.is_empty(), "the clock goes on by what jobs have had");
        self.now = self.now.saturating_add(1);
    }

    /// The job with finish time `finish` is given up.
    pub fn remove(&mut self, id: JobId, finish: u64) {
        self.finishes.remove(&(finish, id));
    }

    /// The number of jobs that processor sharing would still be serving.
    pub fn len(&self) -> usize {
        self.finishes.len()
    }

    /// Whether processor sharing would be idle.
    pub fn is_empty(&self) -> bool {
        self.finishes.is_empty()
    }

    /// The work until the next job is done if none arrives before (rounded up), and that job.
    pub fn next_finish(&self) -> Option<(u64, JobId)> {
        let &(finish, id) = self.finishes.first()?;
        let work = u128::from(finish.saturating_sub(self.now)) * self.finishes.len() as u128;
        let left = work.saturating_sub(u128::from(self.carry));
        Some((
            u64::try_from(left.div_ceil(1 << FRACTION_BITS)).unwrap_or(u64::MAX),
            id,
        ))
    }

    /// The server does `amount` of work; jobs that are done leave, and are returned in that order.
    pub fn advance_finishing(&mut self, amount: u64, mut finished: impl FnMut(JobId)) {
        let mut work = u128::from(amount) << FRACTION_BITS;
        work += u128::from(self.carry);
        self.carry = 0;
        while let Some(&(finish, id)) = self.finishes.first() {
            let jobs = self.finishes.len() as u128;
            let needed = u128::from(finish.saturating_sub(self.now)) * jobs;
            if work < needed {
                let step = u64::try_from(work / jobs).expect("less than the distance to a u64");
                assert!(
                    step <= finish - self.now,
                    "the clock stops at the next finish"
                );
                self.now += step;
                self.carry = u64::try_from(work % jobs).expect("less than the number of jobs");
                return;
            }
            work -= needed;
            self.now = self.now.max(finish);
            self.finishes.pop_first();
            finished(id);
        }
    }

    /// The server does `amount` of work.
    pub fn advance(&mut self, amount: u64) {
        self.advance_finishing(amount, |_| {});
    }
}

fn scaled(size: u64) -> u64 {
    size.saturating_mul(1 << FRACTION_BITS)
}
