//! What is known of those who wait, so that they can be judged anew.
//!
//! What is expected of a job comes from the last ones of its kind. After a stall of the backend
//! those took seconds, and what comes then is expected to take seconds too. The kind recovers
//! within tens of jobs; those who came in between must not wait as if it had not.

use crate::subject::Subject;
use sooner_policy::{JobId, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The least time between two looks, ns.
const LOOK_NS_MIN: u64 = 100_000_000;
/// The same for each of those who wait, ns: a look and a new order take some hundredths of it.
const LOOK_NS_PER_JOB: u64 = 500_000;

/// Those who wait outside a backend.
#[derive(Debug, Default)]
pub(crate) struct WaitingSubjects {
    subjects: BTreeMap<JobId, Arc<Subject>>,
    next_look: Time,
}

impl WaitingSubjects {
    /// A job waits.
    pub(crate) fn came(&mut self, job: JobId, subject: &Arc<Subject>) {
        self.subjects.insert(job, Arc::clone(subject));
    }

    /// It waits no more, if it did.
    pub(crate) fn gone(&mut self, job: JobId) {
        self.subjects.remove(&job);
    }

    /// All of them, where it is time for a look.
    pub(crate) fn look_at(&mut self, now: Time) -> Option<&BTreeMap<JobId, Arc<Subject>>> {
        if self.subjects.is_empty() || now < self.next_look {
            return None;
        }
        let looks_ns = LOOK_NS_PER_JOB.saturating_mul(self.subjects.len() as u64);
        self.next_look = now.after(looks_ns.max(LOOK_NS_MIN));
        Some(&self.subjects)
    }
}
