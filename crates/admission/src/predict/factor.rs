//! How many times as long jobs take that have something in common as is expected without it.

use super::average::Average;
use super::trust::{DOUBT, Trust, mixed};

/// Jobs that a factor remembers.
const MEMORY: f64 = 24.0;
/// Jobs without a difference that it begins with.
const BEFORE: f64 = 2.0;
/// One job counts for so many times as long at most.
const OVER_MAX: f64 = 32.0;

/// A factor, and how much better it was than none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factor {
    over: Over,
    own: Trust,
}

/// The mean of times over expectations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Over(Average);

impl Over {
    /// No jobs yet; so many will be remembered.
    pub(super) fn new(memory: f64) -> Self {
        Self(Average::new(memory))
    }

    /// The mean; 1 before the first job.
    pub(super) fn get(&self) -> f64 {
        self.0.with_before(BEFORE, 1.0)
    }

    /// Whether a job has come.
    pub(super) fn is_known(&self) -> bool {
        self.0.samples() > 0.0
    }

    /// A job took `over` times as long as was expected.
    pub(super) fn add(&mut self, over: f64) {
        self.0.add(over.min(OVER_MAX));
    }
}

impl Factor {
    /// No jobs yet.
    pub(super) fn new() -> Self {
        Self {
            over: Over::new(MEMORY),
            own: Trust::of_one(),
        }
    }

    /// What is expected with it where without it is `coarse`; `shared` is the trust in all factors
    /// like this one.
    pub(super) fn corrected(&self, coarse: f64, shared: &Trust) -> f64 {
        let score = shared.score() + self.own.score();
        mixed(coarse, coarse * self.over.get(), score, DOUBT)
    }

    /// A job took `actual` where `coarse` was expected without it.
    pub(super) fn note(&mut self, actual: f64, coarse: f64, shared: &mut Trust) {
        if self.over.is_known() {
            let fine = coarse * self.over.get();
            self.own.note(actual, coarse, fine);
            shared.note(actual, coarse, fine);
        }
        self.over.add(actual / coarse);
    }
}
