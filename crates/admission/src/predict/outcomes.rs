//! The last jobs that are done, as they were predicted.

use crate::law::Law;
use crate::order::Tuning;
use std::collections::VecDeque;

/// A job that is done, as it was predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When it came, ns after the origin or before it.
    pub came_ns: i64,
    /// How long it was expected to take, ns.
    pub expected_ns: u64,
    /// How long one would have expected by its kind alone, ns.
    pub kind_ns: u64,
    /// How long it took, ns.
    pub service_ns: u64,
}

/// How many of the last jobs are remembered, unless more are to be.
const REMEMBERED: usize = 512;
/// How many of them predictions are judged by.
const JUDGED: usize = 512;
/// At the latest after so many new ones it is worth while to look again.
const NEWS: u64 = 512;

/// The last jobs that are done.
#[derive(Debug)]
pub(crate) struct Outcomes {
    last: VecDeque<Outcome>,
    remembered: usize,
    /// How many there have been.
    seen: u64,
}

impl Default for Outcomes {
    fn default() -> Self {
        Self {
            last: VecDeque::new(),
            remembered: REMEMBERED,
            seen: 0,
        }
    }
}

impl Outcomes {
    /// From now on so many are remembered.
    pub(crate) fn remember(&mut self, jobs: usize) {
        self.remembered = jobs.max(1);
        let surplus = self.last.len().saturating_sub(self.remembered);
        self.last.drain(..surplus);
    }

    /// One more.
    pub(crate) fn add(&mut self, outcome: Outcome) {
        if self.last.len() == self.remembered {
            self.last.pop_front();
        }
        self.last.push_back(outcome);
        self.seen += 1;
    }

    /// How many there have been.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// Whether what is learnt from them can have changed much: they are twice as many as at the last
    /// time, or many more.
    pub(crate) fn are_news(&self) -> bool {
        self.seen.is_power_of_two() || self.seen.is_multiple_of(NEWS)
    }

    /// All.
    pub(crate) fn all(&self) -> Vec<Outcome> {
        self.last.iter().copied().collect()
    }

    /// Those that predictions are judged by.
    pub(crate) fn judged(&self) -> Vec<Outcome> {
        let surplus = self.last.len().saturating_sub(JUDGED);
        self.last.iter().skip(surplus).copied().collect()
    }

    /// What follows from how long they took, in so many places; `None` without any.
    pub(crate) fn tuning(&self, places: usize) -> Option<Tuning> {
        tuning_of(&self.last, places)
    }
}

/// What orders by the law of all jobs go by, from how long these took in so many places; `None`
/// without any.
pub fn tuning_of<'a>(
    outcomes: impl IntoIterator<Item = &'a Outcome>,
    places: usize,
) -> Option<Tuning> {
    let times = outcomes
        .into_iter()
        .map(|one| (one.came_ns, one.service_ns));
    Some(Law::of(times)?.tuning(places))
}
