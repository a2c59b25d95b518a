//! Strict priority between classes, any order within a class.

use crate::{Arrival, Grant, JobId, Order, Path, Queue, Scheduler, Time};
use alloc::collections::BTreeMap;

/// Serves class 0 before class 1 and so on; each class has a queue of its own with the same kind of
/// order.
///
/// Strict means that a busy class keeps the next ones waiting; put a [`crate::Guard`] around it.
#[derive(Clone, Debug)]
pub struct Classes<O> {
    prototype: O,
    queues: BTreeMap<u8, Queue<O>>,
    class_of: BTreeMap<JobId, u8>,
    arrivals: u64,
}

impl<O: Order + Clone> Classes<O> {
    /// Classes ordered within by copies of `prototype`.
    pub fn new(prototype: O) -> Self {
        Self {
            prototype,
            queues: BTreeMap::new(),
            class_of: BTreeMap::new(),
            arrivals: 0,
        }
    }

    fn queue_of(&mut self, job: JobId) -> Option<&mut Queue<O>> {
        self.queues.get_mut(self.class_of.get(&job)?)
    }

    fn queue_for(&mut self, class: u8) -> &mut Queue<O> {
        let prototype = &self.prototype;
        self.queues
            .entry(class)
            .or_insert_with(|| Queue::new(prototype.clone()))
    }

    fn come(&mut self, arrival: Arrival, is_ready: bool, now: Time) {
        if self.class_of.contains_key(&arrival.id) {
            return;
        }
        self.class_of.insert(arrival.id, arrival.class);
        let sequence = self.arrivals;
        self.arrivals += 1;
        self.queue_for(arrival.class)
            .arrive_as(arrival, sequence, is_ready, now);
    }
}

impl<O: Order + Clone> Scheduler for Classes<O> {
    fn arrive(&mut self, arrival: Arrival, now: Time) {
        self.come(arrival, true, now);
    }

    fn arrive_blocked(&mut self, arrival: Arrival, now: Time) {
        self.come(arrival, false, now);
    }

    fn progress(&mut self, job: JobId, amount: u64, now: Time) {
        if let Some(queue) = self.queue_of(job) {
            queue.progress(job, amount, now);
        }
    }

    fn depart(&mut self, job: JobId, now: Time) {
        if let Some(queue) = self.queue_of(job) {
            queue.depart(job, now);
        }
        self.class_of.remove(&job);
    }

    fn block(&mut self, job: JobId, now: Time) {
        if let Some(queue) = self.queue_of(job) {
            queue.block(job, now);
        }
    }

    fn unblock(&mut self, job: JobId, now: Time) {
        if let Some(queue) = self.queue_of(job) {
            queue.unblock(job, now);
        }
    }

    fn enlarge(&mut self, job: JobId, additional: u64, now: Time) {
        if let Some(queue) = self.queue_of(job) {
            queue.enlarge(job, additional, now);
        }
    }

    fn reclassify(&mut self, job: JobId, class: u8, _now: Time) {
        if self.class_of.get(&job) == Some(&class) {
            return;
        }
        if let Some(moved) = self.queue_of(job).and_then(|queue| queue.take(job)) {
            self.class_of.insert(job, class);
            self.queue_for(class).put(moved);
        }
    }

    fn observe(&mut self, job: JobId, path: Path, now: Time) {
        if let Some(queue) = self.queue_of(job) {
            queue.observe(job, path, now);
        }
    }

    fn next(&mut self, now: Time) -> Option<Grant> {
        self.queues.values_mut().find_map(|queue| queue.next(now))
    }

    fn wake_at(&self) -> Option<Time> {
        None
    }

    fn rank(&self, job: JobId) -> Option<u64> {
        self.queues.get(self.class_of.get(&job)?)?.rank(job)
    }
}
