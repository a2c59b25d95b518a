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
/// Transactions of so many seconds are missing or too many at most in 19 of 20 cases where steps are
/// of a second and readings fill them: in a simulation of 3000 looks with transactions of up to
/// 0.4 s it was 0.13 to 0.16 s.
const DOUBT_S: f64 = 0.2;
/// So far the server's clock may differ from ours over the whole time: else it was set meanwhile.
const CLOCKS_MAX_S: f64 = 1.0;

/// One reading.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// When the server read it, seconds on a clock of its own that may be set.
    pub at_s: f64,
    /// Transactions so far, without our own.
    pub count: i64,
}

/// Readings at the beginning and the end of a time, each with when it came, by a clock of ours.
#[derive(Debug)]
pub struct Counts {
    end_s: f64,
    first: Vec<(f64, Reading)>,
    last: VecDeque<(f64, Reading)>,
}

/// What follows from them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Transactions a second.
    pub per_sec: f64,
    /// Half of the 95 per cent interval, as a part of it.
    pub error: f64,
    /// Over how long.
    pub seconds: f64,
}

/// The mean of readings at one end.
struct Mean {
    at_s: f64,
    count: f64,
    /// The longest time without one, within a step.
    gap_s: f64,
}

impl Counts {
    /// Over about so long.
    pub fn new(planned_s: f64) -> Counts {
        Counts {
            end_s: STEP_S.min(END_MAX * planned_s),
            first: Vec::new(),
            last: VecDeque::new(),
        }
    }

    /// Whether it is time to read, so long after the beginning.
    pub fn is_due(&self, elapsed_s: f64) -> bool {
        let last = self.last.back();
        last.is_none_or(|(last_s, _)| elapsed_s >= last_s + APART_S)
    }

    /// One was read, so long after the beginning.
    pub fn add(&mut self, elapsed_s: f64, reading: Reading) {
        let begin_s = self.first.first().map_or(elapsed_s, |(at_s, _)| *at_s);
        if elapsed_s <= begin_s + self.end_s {
            self.first.push((elapsed_s, reading));
        }
        self.last.push_back((elapsed_s, reading));
        let is_old = |(at_s, _): &(f64, Reading)| *at_s < elapsed_s - self.end_s;
        while self.last.front().is_some_and(is_old) {
            self.last.pop_front();
        }
    }

    /// None where all was read within a moment, or the server's clock was set meanwhile.
    pub fn rate(&self) -> Option<Rate> {
        let all = self.first.iter().chain(&self.last);
        let offsets = all.map(|(elapsed_s, reading)| reading.at_s - elapsed_s);
        let most = offsets.clone().fold(f64::MIN, f64::max);
        let least = offsets.fold(f64::MAX, f64::min);
        if most - least > CLOCKS_MAX_S {
            return None;
        }
        let first = mean(self.first.iter().map(|(_, reading)| *reading))?;
        let last = mean(self.last.iter().map(|(_, reading)| *reading))?;
        let seconds = last.at_s - first.at_s;
        // A gap shows one step more or less as it comes.
        let gap_s = (first.gap_s.max(last.gap_s) - 2.0 * APART_S).max(0.0);
        (seconds > 0.0).then(|| Rate {
            per_sec: (last.count - first.count).max(0.0) / seconds,
            error: (DOUBT_S + gap_s) / seconds,
            seconds,
        })
    }
}

impl Rate {
    /// The same where transactions take so long, seconds: a step ends with one of them, and what is
    /// longer than a step makes steps of its own length.
    #[must_use]
    pub fn of_transactions(self, mean_s: f64) -> Rate {
        let longer_s = (mean_s / 2.0).max(mean_s - STEP_S);
        Rate {
            error: self.error + longer_s / self.seconds,
            ..self
        }
    }
}

/// Each reading stands for half of the way to its neighbours, so that many in one step weigh no more
/// than few.
fn mean(readings: impl Iterator<Item = Reading>) -> Option<Mean> {
    let all: Vec<Reading> = readings.collect();
    let (first, last) = (all.first()?, all.last()?);
    let mut sums = [0.0; 3];
    let mut gap_s = STEP_S - (last.at_s - first.at_s).clamp(0.0, STEP_S);
    for pair in all.windows(2) {
        let weight = (pair[1].at_s - pair[0].at_s).max(0.0);
        gap_s = gap_s.max(weight);
        sums[0] += weight;
        sums[1] += weight * (pair[0].at_s + pair[1].at_s) / 2.0;
        sums[2] += weight * (pair[0].count + pair[1].count) as f64 / 2.0;
    }
    let (at_s, count) = match sums[0] > 0.0 {
        true => (sums[1] / sums[0], sums[2] / sums[0]),
        false => (first.at_s, first.count as f64),
    };
    Some(Mean { at_s, count, gap_s })
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
    fn found(begin_s: f64, seconds: f64, apart_s: f64, shown: impl Fn(f64) -> i64) -> Option<Rate> {
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
        counts.rate()
    }

    #[test]
    fn sessions_that_tell_together_are_not_counted_twice() {
        // 10 sessions of 100 a second, all of which tell on the second. Two readings would find
        // 800, 1000 or 1200 in five seconds.
        let phases = [0.0; 10];
        for begin_s in [0.05, 0.5, 0.95] {
            let rate = found(begin_s, 5.0, 0.02, |at_s| shown(at_s, &phases, 0.01)).unwrap();
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

    #[test]
    fn a_clock_that_is_set_gives_no_rate() {
        let mut counts = Counts::new(10.0);
        for second in 0..10 {
            let elapsed_s = f64::from(second);
            let at_s = if second < 5 {
                elapsed_s
            } else {
                elapsed_s - 3.0
            };
            let count = 100 * i64::from(second);
            counts.add(elapsed_s, Reading { at_s, count });
        }
        assert_eq!(counts.rate(), None);
    }

    #[test]
    fn an_end_with_one_reading_is_not_sure() {
        let shown = |at_s| shown(at_s, &[0.0; 10], 0.01);
        let at = |apart_s| found(0.3, 20.0, apart_s, shown).unwrap();
        assert!(at(0.1).error < 0.015, "{:?}", at(0.1));
        assert!(at(2.0).error > 0.05, "{:?}", at(2.0));
    }

    proptest! {
        /// Most are; no one is off by more than twice that, whatever the phase.
        #[test]
        fn the_rate_is_as_sure_as_it_says(
            begin_s in 0.0..1.0_f64,
            seconds in 1.0..20.0_f64,
            apart_s in prop_oneof![0.01..0.3_f64, 0.3..2.5_f64],
            each_s in prop_oneof![0.001..0.05_f64, 0.05..0.4_f64, 0.4..3.0_f64],
            spread_s in 0.0..1.0_f64,
        ) {
            let phases: Vec<f64> = (0..50).map(|at| -f64::from(at) / 50.0 * spread_s).collect();
            let rate = found(begin_s, seconds, apart_s, |at_s| shown(at_s, &phases, each_s));
            let Some(rate) = rate.map(|rate| rate.of_transactions(each_s)) else { return Ok(()) };
            let truth = phases.len() as f64 / each_s;
            let off = (rate.per_sec / truth - 1.0).abs();
            prop_assert!(off <= 2.0 * rate.error, "{off} beyond twice {}", rate.error);
        }
    }
}
