//! Jobs in rank order: the one queue under every policy.

use crate::{Arrival, Grant, Job, JobId, Order, Path, Scheduler, Time};
use alloc::collections::{BTreeMap, BTreeSet};

/// Keeps jobs sorted by what an [`Order`] says of them; ties go to the job that arrived first.
#[derive(Clone, Debug, Default)]
pub struct Queue<O> {
    order: O,
    jobs: BTreeMap<JobId, Entry>,
    ready: BTreeSet<Key>,
    arrivals: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    job: Job,
    key: Key,
    ready: bool,
}

/// A job on its way from one queue to another.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    job: Job,
    ready: bool,
}

/// Rank, then order of arrival; the name only makes the key complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    rank: u64,
    sequence: u64,
    id: JobId,
}

impl Key {
    fn of(order: &impl Order, job: &Job) -> Self {
        Self {
            rank: order.rank(job),
            sequence: job.sequence,
            id: job.id,
        }
    }
}

impl<O: Order> Queue<O> {
    /// An empty queue ordered by `order`.
    pub fn new(order: O) -> Self {
        Self {
            order,
            jobs: BTreeMap::new(),
            ready: BTreeSet::new(),
            arrivals: 0,
        }
    }

    /// The number of jobs present, ready or blocked.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether no job is present.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// A job comes in at `sequence` in the order of arrival, which the caller counts.
    pub(crate) fn arrive_as(&mut self, arrival: Arrival, sequence: u64, is_ready: bool, now: Time) {
        if self.jobs.contains_key(&arrival.id) {
            return;
        }
        let mut job = Job {
            id: arrival.id,
            size: arrival.size,
            attained: 0,
            path: Path::default(),
            arrived_at: now,
            sequence,
            tag: 0,
        };
        self.order.arrived(&mut job);
        self.insert(job, is_ready);
    }

    /// Takes a job out for another queue.
    pub(crate) fn take(&mut self, id: JobId) -> Option<Moved> {
        let Entry { job, key, ready } = self.jobs.remove(&id)?;
        let was_ready = self.ready.remove(&key);
        assert_eq!(was_ready, ready, "a job is in order while it is ready");
        self.order.moved_out(&job);
        Some(Moved { job, ready })
    }

    /// Puts in a job that was taken out of another queue; its place in the order of arrival comes
    /// with it.
    pub(crate) fn put(&mut self, moved: Moved) {
        let Moved { mut job, ready } = moved;
        job.tag = 0;
        self.order.moved_in(&mut job);
        self.insert(job, ready);
    }

    fn insert(&mut self, job: Job, ready: bool) {
        let key = Key::of(&self.order, &job);
        let other = self.jobs.insert(job.id, Entry { job, key, ready });
        assert!(other.is_none(), "a job is in one queue, once");
        if ready {
            self.ready.insert(key);
        }
    }

    /// Changes a job by `change` and puts it where its new rank belongs.
    fn update(&mut self, id: JobId, change: impl FnOnce(&mut O, &mut Entry)) {
        let Some(entry) = self.jobs.get_mut(&id) else {
            return;
        };
        let (was_ready, old_key) = (entry.ready, entry.key);
        change(&mut self.order, entry);
        entry.key = Key::of(&self.order, &entry.job);
        if was_ready && (!entry.ready || entry.key != old_key) {
            let was_there = self.ready.remove(&old_key);
            assert!(was_there, "a job is found where it was put");
        }
        if entry.ready && (!was_ready || entry.key != old_key) {
            let is_new = self.ready.insert(entry.key);
            assert!(is_new, "no two jobs have one key");
        }
    }
}

impl<O: Order> Scheduler for Queue<O> {
    fn arrive(&mut self, arrival: Arrival, now: Time) {
        let sequence = self.arrivals;
        self.arrivals += 1;
        self.arrive_as(arrival, sequence, true, now);
    }

    fn progress(&mut self, id: JobId, amount: u64, _now: Time) {
        self.update(id, |order, entry| {
            order.progressed(&mut entry.job, amount);
            entry.job.attained = entry.job.attained.saturating_add(amount);
        });
    }

    fn depart(&mut self, id: JobId, _now: Time) {
        if let Some(entry) = self.jobs.remove(&id) {
            let was_ready = self.ready.remove(&entry.key);
            assert_eq!(
                was_ready, entry.ready,
                "a job is in order while it is ready"
            );
            self.order.departed(&entry.job);
        }
    }

    fn block(&mut self, id: JobId, _now: Time) {
        self.update(id, |_, entry| entry.ready = false);
    }

    fn unblock(&mut self, id: JobId, _now: Time) {
        self.update(id, |order, entry| {
            if !entry.ready {
                order.unblocked(&mut entry.job);
                entry.ready = true;
            }
        });
    }

    fn enlarge(&mut self, id: JobId, additional: u64, _now: Time) {
        self.update(id, |order, entry| {
            if let Some(size) = entry.job.size {
                entry.job.size = Some(size.saturating_add(additional));
                order.enlarged(&mut entry.job, additional);
            }
        });
    }

    fn reclassify(&mut self, _id: JobId, _class: u8, _now: Time) {}

    fn observe(&mut self, id: JobId, path: Path, _now: Time) {
        self.update(id, |order, entry| {
            entry.job.path = path;
            order.observed(&mut entry.job);
        });
    }

    fn next(&mut self, _now: Time) -> Option<Grant> {
        let best = self.ready.first()?;
        let job = &self.jobs[&best.id].job;
        Some(Grant {
            job: best.id,
            max_amount: self.order.max_amount(job).max(1),
            is_owed: false,
        })
    }

    fn wake_at(&self) -> Option<Time> {
        None
    }

    fn rank(&self, id: JobId) -> Option<u64> {
        self.jobs.get(&id).map(|entry| entry.key.rank)
    }
}
