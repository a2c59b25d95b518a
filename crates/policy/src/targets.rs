//! Jobs that were promised a start by some time, and jobs that were promised nothing.
//!
//! The dispatch targets of the thesis (10.3.2): a job of a class with a target for its response
//! time has until its arrival + the target - the time it is expected to take; when that has come it
//! is due. What is due goes first. While nothing is, jobs that were promised nothing go, because a
//! job that starts before its time gains nothing; where there is none of those either, the job that
//! is due next goes.
//!
//! When several are late the load is more than the targets allow, and it has to be decided at which
//! cost (10.3.4): at that of the less important classes, or of all in proportion to their targets.

use crate::{Arrival, Grant, JobId, Path, Scheduler, Time};
use alloc::collections::{BTreeMap, BTreeSet};

/// Which jobs are late where there is more load than the targets allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lateness {
    /// Of the late ones the most important goes first.
    #[default]
    ByPriority,
    /// Of the late ones goes first which is late by the most, measured by its target.
    InProportion,
}

/// What a job was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// It should have been started by then.
    pub due_at: Time,
    /// The response time that this follows from, ns; above 0.
    pub target_ns: u64,
    /// Jobs with the same target; lateness is compared between groups.
    pub group: u8,
}

/// Serves what is due, then what was promised nothing, then what will be due.
#[derive(Clone, Debug)]
pub struct Targets {
    lateness: Lateness,
    jobs: BTreeMap<JobId, Waiting>,
    /// Jobs that were promised something, by class and group: by the time they are due, then in
    /// order of arrival.
    promised: BTreeMap<(u8, u8), BTreeSet<Due>>,
    /// Jobs that were promised nothing, by class, then in order of arrival.
    others: BTreeSet<(u8, u64, JobId)>,
    arrivals: u64,
}

/// When it is due, its place in the order of arrival, its name.
type Due = (Time, u64, JobId);

#[derive(Clone, Copy, Debug)]
struct Waiting {
    class: u8,
    sequence: u64,
    promise: Option<Promise>,
    is_ready: bool,
}

impl Targets {
    /// No job waits yet.
    pub fn new(lateness: Lateness) -> Self {
        Self {
            lateness,
            jobs: BTreeMap::new(),
            promised: BTreeMap::new(),
            others: BTreeSet::new(),
            arrivals: 0,
        }
    }

    /// A job that has arrived is promised a start; class 0 is the most important of those that are
    /// late.
    pub fn promise(&mut self, id: JobId, promise: Promise) {
        self.change(id, |waiting| waiting.promise = Some(promise));
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
        match waiting.promise {
            Some(promise) => {
                let group = (waiting.class, promise.group);
                let group = self.promised.entry(group).or_default();
                let is_new = group.insert((promise.due_at, waiting.sequence, id));
                assert!(is_new, "a job is in one group, once");
            }
            None => {
                let is_new = self.others.insert((waiting.class, waiting.sequence, id));
                assert!(is_new, "a job without a promise is in order once");
            }
        }
    }

    fn take_out(&mut self, id: JobId, waiting: Waiting) {
        match waiting.promise {
            Some(promise) => {
                let key = (waiting.class, promise.group);
                let Some(group) = self.promised.get_mut(&key) else {
                    return;
                };
                group.remove(&(promise.due_at, waiting.sequence, id));
                if group.is_empty() {
                    self.promised.remove(&key);
                }
            }
            None => {
                self.others.remove(&(waiting.class, waiting.sequence, id));
            }
        }
    }

    /// The first one due of each group, with its class.
    fn heads(&self) -> impl Iterator<Item = (u8, Due)> {
        let groups = self.promised.iter();
        groups.filter_map(|(&(class, _), group)| Some((class, *group.first()?)))
    }

    fn late(&self, now: Time) -> Option<JobId> {
        let late = self.heads().filter(|&(_, (due_at, ..))| due_at <= now);
        let (_, (.., id)) = match self.lateness {
            Lateness::ByPriority => late.min(),
            Lateness::InProportion => late.reduce(|worst, other| {
                if self.is_later(other.1, worst.1, now) {
                    other
                } else {
                    worst
                }
            }),
        }?;
        Some(id)
    }

    /// Whether one is late by more than the other, each measured by its target.
    fn is_later(&self, one: Due, other: Due, now: Time) -> bool {
        let lateness = |(due_at, ..): Due| u128::from(now.since(due_at));
        // A quotient compared without division.
        lateness(one) * self.target_ns(other.2) > lateness(other) * self.target_ns(one.2)
    }

    fn target_ns(&self, id: JobId) -> u128 {
        let promise = self.jobs.get(&id).and_then(|waiting| waiting.promise);
        promise.map_or(1, |promise| u128::from(promise.target_ns.max(1)))
    }

    fn first(&self, now: Time) -> Option<JobId> {
        let other = || self.others.first().map(|&(.., id)| id);
        let early = || self.heads().map(|(_, due)| due).min().map(|(.., id)| id);
        self.late(now).or_else(other).or_else(early)
    }
}

impl Scheduler for Targets {
    fn arrive(&mut self, arrival: Arrival, _now: Time) {
        if self.jobs.contains_key(&arrival.id) {
            return;
        }
        let waiting = Waiting {
            class: arrival.class,
            sequence: self.arrivals,
            promise: None,
            is_ready: true,
        };
        self.arrivals += 1;
        self.jobs.insert(arrival.id, waiting);
        self.put_in(arrival.id, waiting);
    }

    fn progress(&mut self, _job: JobId, _amount: u64, _now: Time) {}

    fn depart(&mut self, id: JobId, _now: Time) {
        if let Some(waiting) = self.jobs.remove(&id) {
            self.take_out(id, waiting);
        }
    }

    fn block(&mut self, id: JobId, _now: Time) {
        self.change(id, |waiting| waiting.is_ready = false);
    }

    fn unblock(&mut self, id: JobId, _now: Time) {
        self.change(id, |waiting| waiting.is_ready = true);
    }

    fn enlarge(&mut self, _job: JobId, _additional: u64, _now: Time) {}

    fn reclassify(&mut self, id: JobId, class: u8, _now: Time) {
        self.change(id, |waiting| waiting.class = class);
    }

    fn observe(&mut self, _job: JobId, _path: Path, _now: Time) {}

    fn next(&mut self, now: Time) -> Option<Grant> {
        let job = self.first(now)?;
        Some(Grant {
            job,
            max_amount: u64::MAX,
            is_owed: false,
        })
    }

    fn wake_at(&self) -> Option<Time> {
        // When a job becomes due, the answer may be another.
        self.heads().map(|(_, (due_at, ..))| due_at).min()
    }

    fn rank(&self, id: JobId) -> Option<u64> {
        let waiting = self.jobs.get(&id)?;
        let due_at = |promise: Promise| promise.due_at.as_ns();
        Some(waiting.promise.map_or(u64::MAX, due_at))
    }
}
