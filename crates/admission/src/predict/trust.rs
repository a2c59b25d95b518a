//! How far a finer prediction is used in place of a coarser one: as far as it has been better on
//! the same jobs.
//!
//! What is compared is the loss `t/m - 1 - ln(t/m)` of a prediction m where t came. It does not
//! depend on the unit, it is lowest in the mean where m is the mean of t, whatever the law of t, and
//! it grows with t and not with its square, so that a heavy tail does not drown everything else
//! (Patton 2011 calls it QLIKE). The differences are summed with a memory and within bounds, so
//! that what was better for long is given up within a few jobs where it is not any more.

/// The most that one job counts for or against.
const EVIDENCE_MAX: f64 = 1.0;

/// The sum of what one prediction was better than another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trust {
    score: f64,
    keeps: f64,
    score_max: f64,
}

impl Trust {
    /// None yet, with a memory of so many jobs.
    pub(super) fn new(memory: f64, score_max: f64) -> Self {
        Self {
            score: 0.0,
            keeps: 1.0 - 1.0 / memory,
            score_max,
        }
    }

    /// A job took `actual` for which the one expected `coarse` and the other `fine`.
    pub(super) fn note(&mut self, actual: f64, coarse: f64, fine: f64) {
        let gain = loss(actual, coarse) - loss(actual, fine);
        let gain = gain.clamp(-EVIDENCE_MAX, EVIDENCE_MAX);
        self.score = (self.keeps * self.score + gain).clamp(-self.score_max, self.score_max);
    }

    /// The sum.
    pub(super) fn score(&self) -> f64 {
        self.score
    }
}

/// What a score is worth, 0 to 1: as a likelihood, against odds before anything was seen.
pub(super) fn weight(score: f64, gain: f64, prior: f64) -> f64 {
    1.0 / (1.0 + (prior - gain * score).exp())
}

/// Between two predictions, the second with a weight.
pub(super) fn mixed(coarse: f64, fine: f64, weight: f64) -> f64 {
    coarse * (fine / coarse).powf(weight)
}

/// How bad it is to expect `expected` where `actual` comes; 0 where they are the same.
fn loss(actual: f64, expected: f64) -> f64 {
    let ratio = actual / expected;
    ratio - 1.0 - ratio.ln()
}
