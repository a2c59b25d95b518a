//! Highest response ratio next: of those that wait the one goes next which has waited longest for
//! its size (Brinch Hansen 1971).
//!
//! A small job passes large ones as long as these have not waited for many times their own size, so
//! none starves. The order among those that wait changes with time, so it is no rank: a decision
//! compares the oldest of each size. Sizes are rounded to eighths of octaves, at most an eighth
//! off, so that a decision costs O(number of such steps that are waiting) and not O(number of
//! jobs).

use crate::steps::{step, upper_end};
use crate::{Arrival, Grant, JobId, Path, Scheduler, Time};
use alloc::collections::{BTreeMap, BTreeSet};

/// Serves the job with the highest ratio of wait to size, and then no other until it is done; class
/// 0 before class 1 and so on.
///
/// A job of unknown size counts as the largest of all, or where jobs are interrupted as the smallest.
#[derive(Clone, Debug, Default)]
pub struct Hrrn {
    interrupts: bool,
    jobs: BTreeMap<JobId, Waiting>,
    /// Ready jobs by class and step of size, in order of arrival.
    ready: BTreeMap<(u8, usize), BTreeSet<Place>>,
    /// Ready jobs that have had service, the lower class first.
    begun: BTreeSet<(u8, u64, JobId)>,
    arrivals: u64,
}

/// When it came, its place in the order of arrival, its name.
type Place = (Time, u64, JobId);

/// A job on its way from one queue to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved(JobId, Waiting);

#[derive(Clone, Copy, Debug)]
struct Waiting {
    class: u8,
    step: usize,
    size: Option<u64>,
    arrived_at: Time,
    sequence: u64,
    is_ready: bool,
    has_begun: bool,
}

impl Hrrn {
    /// The same where a job that has had some of its service waits on like any other: for a queue
    /// that serves in the imagination, where to be first is all that counts.
    pub fn interrupting() -> Self {
        Self {
            interrupts: true,
            ..Self::default()
        }
    }

    /// Whether no job is present.
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// The step that a size counts as.
    fn step_of(&self, size: Option<u64>) -> usize {
        let unknown = if self.interrupts { 0 } else { u64::MAX };
        step(size.unwrap_or(unknown))
    }

    /// A job comes in at `sequence` in the order of arrival, which the caller counts.
    pub(crate) fn arrive_as(&mut self, arrival: Arrival, sequence: u64, is_ready: bool, now: Time) {
        if self.jobs.contains_key(&arrival.id) {
            return;
        }
        let waiting = Waiting {
            class: arrival.class,
            step: self.step_of(arrival.size),
            size: arrival.size,
            arrived_at: now,
            sequence,
            is_ready,
            has_begun: false,
        };
        self.put(Moved(arrival.id, waiting));
    }

    /// Takes a job out for another queue.
    pub(crate) fn take(&mut self, id: JobId) -> Option<Moved> {
        let waiting = self.jobs.remove(&id)?;
        self.take_out(id, waiting);
        Some(Moved(id, waiting))
    }

    /// Puts in a job that was taken out of another queue.
    pub(crate) fn put(&mut self, Moved(id, waiting): Moved) {
        self.jobs.insert(id, waiting);
        self.put_in(id, waiting);
    }

    /// Changes a job, and puts it where it belongs then.
    fn change(&mut self, id: JobId, change: impl FnOnce(&mut Waiting)) {
        let Some(waiting) = self.jobs.get_mut(&id) else {
            return;
        };
        let before = *waiting;
        change(waiting);
        let after = *waiting;
        self.take_out(id, before);
        self.put_in(id, after);
    }

    fn put_in(&mut self, id: JobId, waiting: Waiting) {
        if !waiting.is_ready {
            return;
        }
        let is_new = if waiting.has_begun {
            self.begun.insert((waiting.class, waiting.sequence, id))
        } else {
            let place = (waiting.arrived_at, waiting.sequence, id);
            let of_size = self.ready.entry((waiting.class, waiting.step)).or_default();
            of_size.insert(place)
        };
        assert!(is_new, "a job is in order once");
    }

    fn take_out(&mut self, id: JobId, waiting: Waiting) {
        self.begun.remove(&(waiting.class, waiting.sequence, id));
        let key = (waiting.class, waiting.step);
        if let Some(of_size) = self.ready.get_mut(&key) {
            of_size.remove(&(waiting.arrived_at, waiting.sequence, id));
            if of_size.is_empty() {
                self.ready.remove(&key);
            }
        }
    }

    /// Of the most important class that waits, the job that has waited longest for its size; of
    /// equals the smaller.
    fn first(&self, now: Time) -> Option<(u8, JobId)> {
        let (&(class, _), _) = self.ready.first_key_value()?;
        let heads = self.ready.range((class, 0)..=(class, usize::MAX));
        let heads = heads.filter_map(|(&(_, step), of_size)| {
            let &(arrived_at, _, id) = of_size.first()?;
            Some((
                u128::from(now.since(arrived_at)),
                u128::from(upper_end(step)),
                id,
            ))
        });
        // Quotients compared without division.
        let (_, _, id) = heads.reduce(|best, other| {
            if other.0 * best.1 > best.0 * other.1 {
                other
            } else {
                best
            }
        })?;
        Some((class, id))
    }
}

impl Scheduler for Hrrn {
    fn arrive(&mut self, arrival: Arrival, now: Time) {
        let sequence = self.arrivals;
        self.arrivals += 1;
        self.arrive_as(arrival, sequence, true, now);
    }

    fn progress(&mut self, job: JobId, amount: u64, _now: Time) {
        let begins = |job: &Waiting| !job.has_begun;
        if amount > 0 && !self.interrupts && self.jobs.get(&job).is_some_and(begins) {
            self.change(job, |waiting| waiting.has_begun = true);
        }
    }

    fn depart(&mut self, job: JobId, _now: Time) {
        self.take(job);
    }

    fn block(&mut self, job: JobId, _now: Time) {
        self.change(job, |waiting| waiting.is_ready = false);
    }

    fn unblock(&mut self, job: JobId, _now: Time) {
        self.change(job, |waiting| waiting.is_ready = true);
    }

    fn enlarge(&mut self, job: JobId, additional: u64, _now: Time) {
        self.change(job, |waiting| {
            if let Some(size) = waiting.size {
                let size = size.saturating_add(additional);
                waiting.size = Some(size);
                waiting.step = step(size);
            }
        });
    }

    fn reclassify(&mut self, job: JobId, class: u8, _now: Time) {
        self.change(job, |waiting| waiting.class = class);
    }

    fn observe(&mut self, _job: JobId, _path: Path, _now: Time) {}

    fn next(&mut self, now: Time) -> Option<Grant> {
        let begun = self.begun.first().map(|&(class, _, id)| (class, id));
        let waits = self.first(now);
        let job = match (begun, waits) {
            (Some(begun), Some(waits)) if waits.0 < begun.0 => waits.1,
            (Some((_, id)), _) | (None, Some((_, id))) => id,
            (None, None) => return None,
        };
        Some(Grant {
            job,
            max_amount: u64::MAX,
            is_owed: false,
        })
    }

    fn wake_at(&self) -> Option<Time> {
        None
    }

    /// The step of its size, because its place changes with time.
    fn rank(&self, job: JobId) -> Option<u64> {
        self.jobs.get(&job).map(|waiting| waiting.step as u64)
    }
}
