//! What jobs were charged for in the imagination, while they wait, inside and when they come back.

use super::Request;
use sooner_policy::{Arrival, JobId, Time};

#[derive(Clone, Copy)]
pub(super) struct Charged {
    pub(super) at: Time,
    /// Whether it went in before an older one.
    pub(super) has_passed: bool,
    /// How much, ns; 0 where that was charged to another account than it would be now.
    pub(super) charged_ns: u64,
}

/// A job that has been inside.
#[derive(Clone, Copy)]
pub(super) struct Returned {
    pub(super) job: JobId,
    pub(super) request: Request,
    /// What it was charged for when it went in first, ns, as in [`Charged`].
    pub(super) charged_ns: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub(super) request: Request,
    /// The imagined service it still needs, ns.
    pub(super) left_ns: u64,
    pub(super) sequence: u64,
    pub(super) arrived_at: Time,
    /// The imagined service that it was charged for, as in [`Charged`].
    pub(super) charged_ns: u64,
    /// When that was in the mean.
    pub(super) charged_at: Time,
}

impl Waiting {
    /// It was served for so long in the imagination.
    pub(super) fn charge(&mut self, served_ns: u64, now: Time) {
        self.charged_ns += served_ns;
        let later_ns = u128::from(now.since(self.charged_at)) * u128::from(served_ns);
        let later_ns = later_ns / u128::from(self.charged_ns.max(1));
        self.charged_at = self.charged_at.after(later_ns as u64);
    }

    /// As what it was charged as so far.
    pub(super) fn charged(&self, job: JobId) -> Arrival {
        Arrival {
            size: Some(self.charged_ns),
            ..self.request.arrival(job)
        }
    }
}
