//! How far a finer prediction is used in place of a coarser one: as far as it has been better on
//! the same jobs.
//!
//! What is compared is the loss `t/m - 1 - ln(t/m)` of a prediction m where t came. It does not
//! depend on the unit, in the mean it is lowest where m is the mean of t, whatever the law of t,
//! and it grows with t and not with its square, so that a heavy tail does not drown everything else
//! (QLIKE in Patton, Journal of Econometrics 160, 2011). The differences are summed with a memory
//! and within bounds, so that what was better for long is given up within some ten jobs where it is
//! not any more. The sum is taken for the logarithm of the odds that the finer one is better.

/// The most that one job counts for the finer one.
const FOR_MAX: f64 = 1.0;
/// The most that it counts against it.
const AGAINST_MAX: f64 = 1.5;
/// How much the sum counts.
const GAIN: f64 = 1.5;
/// What stands against the finer one before anything is known.
pub(super) const DOUBT: f64 = 2.0;

/// By how much one prediction was better than another.
#[derive(Clone, Copy, Debug)]
pub struct Trust {
    score: f64,
    keeps: f64,
    score_max: f64,
}

impl Trust {
    /// In what is one of thousands.
    pub fn of_one() -> Self {
        Self::new(32.0, 4.0)
    }

    /// In what is the same for many jobs.
    pub(super) fn of_many() -> Self {
        Self::new(128.0, 6.0)
    }

    fn new(memory: f64, score_max: f64) -> Self {
        Self {
            score: 0.0,
            keeps: 1.0 - 1.0 / memory,
            score_max,
        }
    }

    /// A job took `actual` for which the one expected `coarse` and the other `fine`.
    pub(super) fn note(&mut self, actual: f64, coarse: f64, fine: f64) {
        self.note_losses(loss(actual, coarse), loss(actual, fine));
    }

    /// The coarser prediction of a job had the one loss, and the finer one the other.
    pub fn note_losses(&mut self, coarse: f64, fine: f64) {
        let better = coarse - fine;
        let better = better.clamp(-AGAINST_MAX, FOR_MAX);
        self.score = (self.keeps * self.score + better).clamp(-self.score_max, self.score_max);
    }

    /// The sum: positive where the finer one was better.
    pub fn score(&self) -> f64 {
        self.score
    }

    /// How far the finer one is to be used in place of the coarser one, 0 to 1.
    pub fn weight(&self) -> f64 {
        weight(self.score, DOUBT)
    }
}

/// Between two predictions, by the score of the second and what stands against it.
pub(super) fn mixed(coarse: f64, fine: f64, score: f64, doubt: f64) -> f64 {
    coarse * (fine / coarse).powf(weight(score, doubt))
}

fn weight(score: f64, doubt: f64) -> f64 {
    1.0 / (1.0 + (doubt - GAIN * score).exp())
}

/// How bad it is to expect `expected` where `actual` comes; 0 where they are the same.
fn loss(actual: f64, expected: f64) -> f64 {
    let ratio = actual / expected;
    ratio - 1.0 - ratio.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_comes_slowly_and_goes_fast() {
        let mut trust = Trust::of_many();
        let expected = |trust: &Trust| mixed(100.0, 400.0, trust.score(), DOUBT) as u64;
        let mut said = vec![expected(&trust)];
        for actual in [
            400.0, 400.0, 400.0, 400.0, 400.0, 400.0, 100.0, 100.0, 100.0, 100.0,
        ] {
            trust.note(actual, 100.0, 400.0);
            said.push(expected(&trust));
        }
        let way: Vec<_> = said.iter().map(u64::to_string).collect();
        assert_eq!(way.join(" "), "117 168 274 358 389 397 399 398 395 387 368");
    }

    #[test]
    fn the_mean_has_the_least_loss_and_one_job_decides_nothing() {
        let mean_loss = |expected| (loss(10.0, expected) + loss(90.0, expected)) / 2.0;
        assert!(mean_loss(50.0) < mean_loss(40.0) && mean_loss(50.0) < mean_loss(60.0));
        let mut trust = Trust::of_one();
        trust.note(1e12, 1.0, 1e12);
        assert_eq!(trust.score(), FOR_MAX);
        trust.note(1e12, 1e12, 1.0);
        assert!(trust.score() > -AGAINST_MAX);
    }
}
