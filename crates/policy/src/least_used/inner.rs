//! The jobs of one client: in the order of a rank, or by the ratio of wait to size, which is no
//! rank.

use crate::{Arrival, Grant, Hrrn, JobId, Order, Path, Queue, Scheduler, Time, hrrn, queue};

/// Jobs of one client in one class.
#[derive(Clone, Debug)]
pub(super) enum Inner<O> {
    Ranked(Queue<O>),
    Ratio(Hrrn),
}

/// A job on its way from one queue to another of the same sort.
pub(super) enum Moved {
    Ranked(queue::Moved),
    Ratio(hrrn::Moved),
}

/// Does the same with either.
macro_rules! either {
    ($inner:expr, $queue:ident => $what:expr) => {
        match $inner {
            Inner::Ranked($queue) => $what,
            Inner::Ratio($queue) => $what,
        }
    };
}

impl<O: Order> Inner<O> {
    pub(super) fn is_empty(&self) -> bool {
        either!(self, queue => queue.is_empty())
    }

    /// A job comes in at `sequence` in the order of arrival.
    pub(super) fn arrive_as(&mut self, arrival: Arrival, sequence: u64, is_ready: bool, now: Time) {
        // All are of the class that this is in.
        let arrival = Arrival {
            class: 0,
            ..arrival
        };
        either!(self, queue => queue.arrive_as(arrival, sequence, is_ready, now));
    }

    pub(super) fn take(&mut self, job: JobId) -> Option<Moved> {
        match self {
            Self::Ranked(queue) => queue.take(job).map(Moved::Ranked),
            Self::Ratio(queue) => queue.take(job).map(Moved::Ratio),
        }
    }

    pub(super) fn put(&mut self, moved: Moved) {
        match (self, moved) {
            (Self::Ranked(queue), Moved::Ranked(moved)) => queue.put(moved),
            (Self::Ratio(queue), Moved::Ratio(moved)) => queue.put(moved),
            _ => unreachable!("all queues of one order are of one sort"),
        }
    }

    pub(super) fn progress(&mut self, job: JobId, amount: u64, now: Time) {
        either!(self, queue => queue.progress(job, amount, now));
    }

    pub(super) fn depart(&mut self, job: JobId, now: Time) {
        either!(self, queue => queue.depart(job, now));
    }

    pub(super) fn block(&mut self, job: JobId, now: Time) {
        either!(self, queue => queue.block(job, now));
    }

    pub(super) fn unblock(&mut self, job: JobId, now: Time) {
        either!(self, queue => queue.unblock(job, now));
    }

    pub(super) fn enlarge(&mut self, job: JobId, additional: u64, now: Time) {
        either!(self, queue => queue.enlarge(job, additional, now));
    }

    pub(super) fn observe(&mut self, job: JobId, path: Path, now: Time) {
        either!(self, queue => queue.observe(job, path, now));
    }

    pub(super) fn next(&mut self, now: Time) -> Option<Grant> {
        either!(self, queue => queue.next(now))
    }

    pub(super) fn rank(&self, job: JobId) -> Option<u64> {
        either!(self, queue => queue.rank(job))
    }
}
