//! The contract between a policy and its driver.

use crate::{Arrival, JobId, Path, Time};
use alloc::boxed::Box;

/// Leave to serve one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The job to serve.
    pub job: JobId,
    /// Ask again after this much service at the latest; at least 1.
    pub max_amount: u64,
    /// Whether it is owed to the job, out of the order: what keeps it from starving.
    pub is_owed: bool,
}

/// Decides which job is served next.
///
/// The order of calls: [`arrive`](Self::arrive) or [`arrive_blocked`](Self::arrive_blocked) once; then any number of [`next`](Self::next),
/// [`progress`](Self::progress), [`block`](Self::block), [`unblock`](Self::unblock),
/// [`enlarge`](Self::enlarge), [`reclassify`](Self::reclassify) and [`observe`](Self::observe);
/// [`depart`](Self::depart) once, when the job is done or given up. `now` never goes back. Calls
/// that change nothing (an unknown job, a second `block`) are harmless, and so is asking `next`
/// again and again: a grant is an answer, not a commitment.
pub trait Scheduler {
    /// A job comes in, ready to be served.
    fn arrive(&mut self, arrival: Arrival, now: Time);

    /// A job comes in that cannot take service for now: in one step what `arrive` and `block` do in
    /// two.
    fn arrive_blocked(&mut self, arrival: Arrival, now: Time) {
        let job = arrival.id;
        self.arrive(arrival, now);
        self.block(job, now);
    }

    /// A job was served by `amount`.
    fn progress(&mut self, job: JobId, amount: u64, now: Time);

    /// A job leaves, whether it was done or not.
    fn depart(&mut self, job: JobId, now: Time);

    /// A job cannot take service for now (its client is slow, its data not there yet).
    fn block(&mut self, job: JobId, now: Time);

    /// A job can take service again.
    fn unblock(&mut self, job: JobId, now: Time);

    /// A job is known to be `additional` larger than was said; no effect on a job of unknown size.
    fn enlarge(&mut self, job: JobId, additional: u64, now: Time);

    /// A job belongs to another class from now on; it keeps its size, what it has had and its place
    /// in the order of arrival. No effect where classes are not told apart.
    fn reclassify(&mut self, job: JobId, class: u8, now: Time);

    /// What is known of the network to the job's client is `path` from now on, all of it; no effect
    /// under a policy that does not ask for it ([`crate::PolicyName::asks_for_path`]).
    fn observe(&mut self, job: JobId, path: Path, now: Time);

    /// A job that has left as served by its size, at `served_at`, took `actual` in truth. No effect
    /// under a policy that keeps no account.
    fn settle(&mut self, _job: &Arrival, _actual: u64, _served_at: Time) {}

    /// The job to serve now, or `None` if no job can take service.
    fn next(&mut self, now: Time) -> Option<Grant>;

    /// When `next` may answer differently although nothing happened meanwhile.
    fn wake_at(&self) -> Option<Time>;

    /// The rank of a job now, lower first; `None` for an unknown job.
    fn rank(&self, job: JobId) -> Option<u64>;
}

/// Whichever it is.
impl<S: Scheduler + ?Sized> Scheduler for Box<S> {
    fn arrive(&mut self, arrival: Arrival, now: Time) {
        (**self).arrive(arrival, now);
    }

    fn arrive_blocked(&mut self, arrival: Arrival, now: Time) {
        (**self).arrive_blocked(arrival, now);
    }

    fn progress(&mut self, job: JobId, amount: u64, now: Time) {
        (**self).progress(job, amount, now);
    }

    fn depart(&mut self, job: JobId, now: Time) {
        (**self).depart(job, now);
    }

    fn block(&mut self, job: JobId, now: Time) {
        (**self).block(job, now);
    }

    fn unblock(&mut self, job: JobId, now: Time) {
        (**self).unblock(job, now);
    }

    fn enlarge(&mut self, job: JobId, additional: u64, now: Time) {
        (**self).enlarge(job, additional, now);
    }

    fn reclassify(&mut self, job: JobId, class: u8, now: Time) {
        (**self).reclassify(job, class, now);
    }

    fn observe(&mut self, job: JobId, path: Path, now: Time) {
        (**self).observe(job, path, now);
    }

    fn settle(&mut self, job: &Arrival, actual: u64, now: Time) {
        (**self).settle(job, actual, now);
    }

    fn next(&mut self, now: Time) -> Option<Grant> {
        (**self).next(now)
    }

    fn wake_at(&self) -> Option<Time> {
        (**self).wake_at()
    }

    fn rank(&self, job: JobId) -> Option<u64> {
        (**self).rank(job)
    }
}
