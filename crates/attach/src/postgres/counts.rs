//! How many transactions a second there are by the server's own count, which comes in steps.
//!
//! A session tells its transactions at most once a second and between two of them. Sessions that
//! began together tell together, so that the difference of two readings is wrong by up to a
//! second's worth. Here the mean of the readings of about a second stands at either end: over a
//! whole step that is what a steady count would show.

use std::collections::VecDeque;

/// A session tells no more often than once a second (`PGSTAT_MIN_INTERVAL`), and then at the end of
/// a transaction: in steps of about this.
const STEP_S: f64 = 1.1;
/// Readings are no closer than this, seconds.
const APART_S: f64 = 0.1;
/// Of the whole time, what the readings at one end take at most.
const END_MAX: f64 = 1.0 / 3.0;
/// Transactions of so many seconds are missing or too many at most in 19 of 20 cases: steps are not
/// exactly so far apart, and where readings fall in them is chance.
const DOUBT_S: f64 = 0.2;

/// One reading.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// When the server read it, seconds on a clock of its own.
    pub at_s: f64,
    /// Transactions so far, without our own.
    pub count: i64,
}

/// Readings at the beginning and the end of a time.
#[derive(Debug)]
pub struct Counts {
    end_s: f64,
    first: Vec<Reading>,
    last: VecDeque<Reading>,
    next_s: f64,
}

/// What follows from them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Transactions a second.
    pub per_sec: f64,
    /// Half of the 95 per cent interval, as a part of it.
    pub error: f64,
}

impl Counts {
    /// Over about so long.
    pub fn new(planned_s: f64) -> Counts {
        Counts {
            end_s: STEP_S.min(END_MAX * planned_s),
            first: Vec::new(),
            last: VecDeque::new(),
            next_s: 0.0,
        }
    }

    /// Whether it is time to read, so long after the beginning.
    pub fn is_due(&self, elapsed_s: f64) -> bool {
        elapsed_s >= self.next_s
    }

    /// One was read, so long after the beginning.
    pub fn add(&mut self, elapsed_s: f64, reading: Reading) {
        self.next_s = elapsed_s + APART_S;
        let begin_s = self.first.first().unwrap_or(&reading).at_s;
        if reading.at_s <= begin_s + self.end_s {
            self.first.push(reading);
        }
        self.last.push_back(reading);
        while self
            .last
            .front()
            .is_some_and(|one| one.at_s < reading.at_s - self.end_s)
        {
            self.last.pop_front();
        }
    }

    /// None where all was read within a moment.
    pub fn rate(&self) -> Option<Rate> {
        let (first_s, first) = mean(self.first.iter().copied())?;
        let (last_s, last) = mean(self.last.iter().copied())?;
        let seconds = last_s - first_s;
        (seconds > 0.0).then(|| Rate {
            per_sec: (last - first).max(0.0) / seconds,
            error: DOUBT_S / seconds,
        })
    }
}

/// Of the times and of the counts: each reading stands for half of the way to its neighbours, so
/// that many in one step weigh no more than few.
fn mean(readings: impl Iterator<Item = Reading>) -> Option<(f64, f64)> {
    let all: Vec<Reading> = readings.collect();
    let first = all.first()?;
    let mut sums = [0.0; 3];
    for pair in all.windows(2) {
        let weight = pair[1].at_s - pair[0].at_s;
        sums[0] += weight;
        sums[1] += weight * (pair[0].at_s + pair[1].at_s) / 2.0;
        sums[2] += weight * (pair[0].count + pair[1].count) as f64 / 2.0;
    }
    match sums[0] > 0.0 {
        true => Some((sums[1] / sums[0], sums[2] / sums[0])),
        false => Some((first.at_s, first.count as f64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the server shows at a time of sessions that have each told at `phases` and whenever a
    /// second had passed at the end of a transaction since.
    fn shown(at_s: f64, phases: &[f64], each_s: f64) -> i64 {
        let step_s = (STEP_S / each_s).ceil() * each_s;
        let of_one = |phase: f64| {
            let steps = ((at_s - phase) / step_s).floor();
            (steps * step_s / each_s).round() as i64
        };
        phases.iter().map(|phase| of_one(*phase)).sum()
    }

    /// A look of so many seconds that begins at `begin_s`, with readings so far apart.
    fn found(begin_s: f64, seconds: f64, apart_s: f64, shown: impl Fn(f64) -> i64) -> Rate {
        let mut counts = Counts::new(seconds);
        let mut elapsed_s = 0.0;
        while elapsed_s <= seconds {
            if counts.is_due(elapsed_s) {
                let at_s = begin_s + elapsed_s;
                let count = shown(at_s);
                counts.add(elapsed_s, Reading { at_s, count });
            }
            elapsed_s += apart_s;
        }
        counts.rate().unwrap()
    }

    #[test]
    fn sessions_that_tell_together_are_not_counted_twice() {
        // 10 sessions of 100 a second, all of which tell on the second. Two readings would find
        // 800, 1000 or 1200 in five seconds.
        let phases = [0.0; 10];
        for begin_s in [0.05, 0.5, 0.95] {
            let rate = found(begin_s, 5.0, 0.02, |at_s| shown(at_s, &phases, 0.01));
            let off = (rate.per_sec / 1000.0 - 1.0).abs();
            assert!(off < 0.03 && rate.error < 0.06, "{rate:?}");
        }
    }

    #[test]
    fn one_reading_is_no_rate() {
        let mut counts = Counts::new(5.0);
        assert_eq!(counts.rate(), None);
        let count = 7;
        counts.add(0.0, Reading { at_s: 3.0, count });
        assert_eq!(counts.rate(), None);
    }

    proptest! {
        /// Most are; no one is off by more than twice that, whatever the phase.
        #[test]
        fn the_rate_is_as_sure_as_it_says(
            begin_s in 0.0..1.0_f64,
            seconds in 3.0..20.0_f64,
            apart_s in 0.01..0.3_f64,
            each_s in prop_oneof![0.001..0.05_f64, 0.05..0.4_f64],
            spread_s in 0.0..1.0_f64,
        ) {
            let phases: Vec<f64> = (0..50).map(|at| -f64::from(at) / 50.0 * spread_s).collect();
            let rate = found(begin_s, seconds, apart_s, |at_s| shown(at_s, &phases, each_s));
            let truth = phases.len() as f64 / each_s;
            let off = (rate.per_sec / truth - 1.0).abs();
            prop_assert!(off <= 2.0 * rate.error, "{off} beyond twice {}", rate.error);
        }
    }
}
