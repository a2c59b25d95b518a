//! Classes that share the service by weight, however many jobs each of them brings.
//!
//! Start-time fair queueing (Goyal, Vin, Cheng 1996) over classes, first come first served within
//! one: weighted fair queueing as the thesis proposes it for transactions (11.2). A class is
//! charged what its jobs are expected to take when they are let in, and the difference when what
//! they really took is known: so the shares hold whatever was expected. A class that had nothing to
//! do is owed nothing.

use crate::{Arrival, Grant, JobId, Path, Scheduler, Time};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// Fixed-point bits of what a class was charged: service is divided by weights.
const FRACTION_BITS: u32 = 16;

/// Serves the class that has had the least for its weight.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    classes: BTreeMap<u8, Class>,
    jobs: BTreeMap<JobId, Waiting>,
    /// The least that a class with a job to serve had been charged when a job was served last:
    /// where a class begins that comes anew.
    virtual_now: u128,
    arrivals: u64,
}

#[derive(Clone, Debug)]
struct Class {
    weight: u32,
    /// The service it was charged, over its weight.
    charged: u128,
    /// In order of arrival.
    ready: BTreeSet<(u64, JobId)>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    class: u8,
    sequence: u64,
}

impl Default for Class {
    fn default() -> Self {
        Self {
            weight: 1,
            charged: 0,
            ready: BTreeSet::new(),
        }
    }
}

impl Class {
    fn cost(&self, amount: u64) -> u128 {
        (u128::from(amount) << FRACTION_BITS) / u128::from(self.weight.max(1))
    }
}

impl Shares {
    /// A class gets `weight` parts of the service; 1 if none is given.
    pub fn set_weight(&mut self, class: u8, weight: u32) {
        self.classes.entry(class).or_default().weight = weight.max(1);
    }

    /// From here on classes were charged what they were in `from`; before the first job comes.
    pub fn take_accounts(&mut self, from: Self) {
        assert!(self.jobs.is_empty(), "accounts come before jobs");
        self.virtual_now = from.virtual_now;
        for (number, class) in from.classes {
            self.classes.entry(number).or_default().charged = class.charged;
        }
    }

    /// Classes have other numbers from now on: what one was charged is charged to the number that
    /// `number` has for it, and forgotten where it has none. Jobs stay in the class of their number.
    pub fn renumber(&mut self, number: impl Fn(u8) -> Option<u8>) {
        let known = self.classes.iter();
        let charged: Vec<(u8, u128)> = known
            .filter_map(|(&before, class)| Some((number(before)?, class.charged)))
            .collect();
        for class in self.classes.values_mut() {
            class.charged = self.virtual_now;
        }
        for (number, charged) in charged {
            self.classes.entry(number).or_default().charged = charged;
        }
    }

    fn put_in(&mut self, id: JobId, waiting: Waiting) {
        let class = self.classes.entry(waiting.class).or_default();
        if class.ready.is_empty() {
            class.charged = class.charged.max(self.virtual_now);
        }
        class.ready.insert((waiting.sequence, id));
    }

    fn take_out(&mut self, id: JobId, waiting: Waiting) {
        if let Some(class) = self.classes.get_mut(&waiting.class) {
            class.ready.remove(&(waiting.sequence, id));
        }
    }
}

impl Scheduler for Shares {
    fn arrive(&mut self, arrival: Arrival, _now: Time) {
        if self.jobs.contains_key(&arrival.id) {
            return;
        }
        let waiting = Waiting {
            class: arrival.class,
            sequence: self.arrivals,
        };
        self.arrivals += 1;
        self.jobs.insert(arrival.id, waiting);
        self.put_in(arrival.id, waiting);
    }

    fn progress(&mut self, job: JobId, amount: u64, _now: Time) {
        let Some(waiting) = self.jobs.get(&job) else {
            return;
        };
        // Not what the class of this job had been charged: a guard may have served it before its
        // turn.
        let with_jobs = self.classes.values();
        let with_jobs = with_jobs.filter(|class| !class.ready.is_empty());
        let least = with_jobs.map(|class| class.charged).min();
        self.virtual_now = self.virtual_now.max(least.unwrap_or_default());
        if let Some(class) = self.classes.get_mut(&waiting.class) {
            class.charged += class.cost(amount);
        }
    }

    fn depart(&mut self, job: JobId, _now: Time) {
        if let Some(waiting) = self.jobs.remove(&job) {
            self.take_out(job, waiting);
        }
    }

    fn block(&mut self, job: JobId, _now: Time) {
        if let Some(waiting) = self.jobs.get(&job) {
            self.take_out(job, *waiting);
        }
    }

    fn unblock(&mut self, job: JobId, _now: Time) {
        if let Some(waiting) = self.jobs.get(&job) {
            self.put_in(job, *waiting);
        }
    }

    fn enlarge(&mut self, _job: JobId, _additional: u64, _now: Time) {}

    fn reclassify(&mut self, job: JobId, class: u8, _now: Time) {
        let Some(waiting) = self.jobs.get(&job).copied() else {
            return;
        };
        let old = self.classes.get(&waiting.class);
        let is_ready = old.is_some_and(|old| old.ready.contains(&(waiting.sequence, job)));
        self.take_out(job, waiting);
        let moved = Waiting { class, ..waiting };
        self.jobs.insert(job, moved);
        if is_ready {
            self.put_in(job, moved);
        }
    }

    fn observe(&mut self, _job: JobId, _path: Path, _now: Time) {}

    fn settle(&mut self, job: &Arrival, actual: u64, _now: Time) {
        let expected = job.size.unwrap_or(1);
        let class = self.classes.entry(job.class).or_default();
        let more = class.cost(actual.saturating_sub(expected));
        let less = class.cost(expected.saturating_sub(actual));
        class.charged = (class.charged + more).saturating_sub(less);
    }

    fn next(&mut self, _now: Time) -> Option<Grant> {
        let first = |class: &Class| class.ready.first().map(|&(_, job)| (class.charged, job));
        let heads = self.classes.values().filter_map(first);
        // Of equals the class with the lower number.
        let (_, job) = heads.min_by_key(|&(charged, _)| charged)?;
        Some(Grant {
            job,
            max_amount: u64::MAX,
            is_owed: false,
        })
    }

    fn wake_at(&self) -> Option<Time> {
        None
    }

    fn rank(&self, job: JobId) -> Option<u64> {
        let class = self.classes.get(&self.jobs.get(&job)?.class)?;
        Some(u64::try_from(class.charged >> FRACTION_BITS).unwrap_or(u64::MAX))
    }
}
