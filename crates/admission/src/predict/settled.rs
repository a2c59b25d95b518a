//! An expectation that stays as it is while nothing speaks against it.
//!
//! A mean of the last jobs goes up and down by chance, and an order does not ask by how much: jobs
//! that are alike would go in at random, those last that came while the mean was high. The same
//! holds for small corrections by clients, networks and lengths. What is settled is the same for
//! all of them, so that they go in as they came.

/// An expectation holds while the mean is not so many times as large or as small.
const BAND: f64 = 1.5;
/// A correction that makes it less than so many times as large or as small is none.
const CORRECTION_MIN: f64 = 1.25;
/// The first pause, in jobs, after a mean has moved that far.
const PAUSE: u64 = 1;
/// The longest one: what is wrong by less than a half is not wrong without end.
const PAUSE_MAX: u64 = 2048;

/// A mean, as it was when it was last looked at.
#[derive(Debug)]
pub(super) struct Settled {
    value: f64,
    /// After so many more notes it follows the mean again.
    left: u64,
    /// As many as there were from the last time to this one; then twice as many.
    pause: u64,
}

impl Settled {
    /// Nothing is expected yet.
    pub(super) fn new() -> Self {
        Self {
            value: 0.0,
            left: 0,
            pause: 1,
        }
    }

    /// The mean is this now.
    pub(super) fn note(&mut self, mean: f64) {
        let is_within = mean < BAND * self.value && BAND * mean > self.value;
        self.left = self.left.saturating_sub(1);
        if !is_within {
            (self.pause, self.left) = (PAUSE, 0);
        }
        if self.left == 0 {
            self.value = mean;
            self.left = self.pause;
            self.pause = (2 * self.pause).min(PAUSE_MAX);
        }
    }

    /// What is expected, corrected as `corrected` differs from `mean`, if that is more than a little.
    pub(super) fn corrected(&self, mean: f64, corrected: f64) -> f64 {
        let times = corrected / mean;
        let is_little = times < CORRECTION_MIN && times * CORRECTION_MIN > 1.0;
        if is_little {
            self.value
        } else {
            self.value * times
        }
    }

    /// What is expected.
    pub(super) fn get(&self) -> f64 {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_seldom_and_what_is_far() {
        let mut settled = Settled::new();
        let means = [
            10, 12, 11, 13, 9, 12, 11, 10, 13, 14, 15, 20, 16, 12, 14, 11,
        ];
        let said = means.map(|mean| {
            settled.note(f64::from(mean));
            format!("{:.0}", settled.get())
        });
        assert_eq!(
            said.join(" "),
            "10 12 12 13 13 13 13 10 10 10 15 20 20 12 14 14"
        );
    }

    #[test]
    fn it_follows_before_long() {
        let mut settled = Settled::new();
        (0..100_000).for_each(|_| settled.note(10.0));
        (0..=PAUSE_MAX).for_each(|_| settled.note(14.0));
        assert!((settled.get() - 14.0).abs() < 1e-9);
    }

    #[test]
    fn small_corrections_are_none() {
        let mut settled = Settled::new();
        settled.note(100.0);
        let corrected = [40.0, 45.0, 55.0, 62.0, 63.0, 200.0].map(|to| settled.corrected(50.0, to));
        assert_eq!(corrected, [80.0, 100.0, 100.0, 100.0, 126.0, 400.0]);
    }
}
