//! Two limits by turns, until it is known by how much one gives more than the other.
//!
//! What a machine can do goes up and down by a fifth within seconds (checkpoints, neighbours), and
//! that concerns both alike when they take turns of a second. A pair is a half turn of each; the
//! estimate is the sum of the one over the sum of the other, with the error of a ratio estimator
//! (Cochran 1977, Sampling Techniques, 6.4). Turns are tried, known, known, tried: a trend is in
//! both, and every second change is saved.

use super::measuring::{LEFT_OUT, STANDARD_ERRORS};
use crate::Window;

/// Half a turn is at least this long, ns, and at most so long where jobs are few.
const HALF_MIN_NS: f64 = 0.5e9;
const HALF_MAX_NS: f64 = 10e9;
/// So many jobs, where that takes longer, and so many times what is left out before.
const HALF_JOBS: f64 = 30.0;
const HALF_LEFT_OUT: f64 = 2.0;
/// What is left out is never more than this, ns. Jobs of servers of language models take seconds:
/// what they do under one limit is seen under the next one where less is left out.
const LEFT_OUT_MAX_NS: f64 = 15e9;
/// Pairs before anything can be said.
const PAIRS_MIN: f64 = 8.0;
/// The error is to be at most this share of the loss: then one can tell one from the other.
const ERROR_SHARE: f64 = 0.4;
/// What is that near to the threshold is compared longer: until it is known on which side it is.
const SIDE_SHARE: f64 = 0.8;
/// More than this is not told apart: where nothing was done at one limit, the other gives no end of
/// times as much.
const RATIO_MAX: f64 = 100.0;
/// Nothing is known better than this.
const ERROR_MIN: f64 = 0.005;
/// After so long, ns, so many times that error has to do, and after this any, if it comes from so
/// many jobs; of fewer, which tell less, after twice as long.
const PATIENCE_NS: u64 = 45_000_000_000;
const ERROR_TIMES: f64 = 1.5;
const LONGEST_NS: u64 = 120_000_000_000;
const LONGEST_JOBS: u64 = 3000;
/// If no job waits for so long at the higher limit, ns, that limit is more than is needed, unless
/// something else is known; if at a lower one that is tried, the known one is in force until a job
/// waits again.
const IDLE_NS: u64 = 10_000_000_000;

/// Two limits by turns.
#[derive(Debug)]
pub struct Comparing {
    known: usize,
    tried: usize,
    /// The ratio that matters: on which side of it is the answer?
    threshold: f64,
    half_ns: u64,
    left_out_ns: u64,
    now: Half,
    /// The rate of the first half of this pair.
    first: Option<f64>,
    halves: u64,
    sums: Sums,
    time_ns: u64,
    jobs: u64,
    idle_ns: u64,
}

/// What is under way.
#[derive(Clone, Copy, Debug, Default)]
struct Half {
    is_known: bool,
    /// Still left out, ns.
    left_out_ns: u64,
    time_ns: u64,
    jobs: u64,
}

/// Sums over all pairs: the rates at the known limit, at the tried one, and their products.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    pairs: f64,
    known: f64,
    tried: f64,
    known_known: f64,
    known_tried: f64,
    tried_tried: f64,
}

/// What a look says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// On with it.
    Stay,
    /// The other limit's turn.
    Turn(usize),
    /// It is known.
    Done(Compared),
}

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// The limits.
    pub known: usize,
    /// The other one.
    pub tried: usize,
    /// Throughput at the tried limit, of that at the known one.
    pub ratio: f64,
    /// Jobs a second at the known one.
    pub known_per_sec: f64,
}

impl Comparing {
    /// Begins with `tried`; `rate_per_sec` is what the backend does, more or less. Nearer to
    /// `threshold` it takes longer.
    pub fn new(known: usize, tried: usize, rate_per_sec: f64, threshold: f64) -> Self {
        let rate_per_ns = (rate_per_sec / 1e9).max(f64::MIN_POSITIVE);
        // By Little's law, the time inside with the most inside.
        let inside_ns = known.max(tried) as f64 / rate_per_ns;
        let left_out_ns = (LEFT_OUT * inside_ns).min(LEFT_OUT_MAX_NS);
        let half_ns = (HALF_JOBS / rate_per_ns)
            .max(HALF_LEFT_OUT * left_out_ns)
            .clamp(HALF_MIN_NS, HALF_MAX_NS);
        let left_out_ns = left_out_ns as u64;
        Self {
            known,
            tried,
            threshold,
            half_ns: half_ns as u64,
            left_out_ns,
            now: Half {
                left_out_ns,
                ..Half::default()
            },
            first: None,
            halves: 0,
            sums: Sums::default(),
            time_ns: 0,
            jobs: 0,
            idle_ns: 0,
        }
    }

    /// One more look, at whichever limit has its turn.
    pub fn add(&mut self, window: &Window, loss: f64) -> Step {
        if self.now.left_out_ns > 0 {
            self.now.left_out_ns = self.now.left_out_ns.saturating_sub(window.duration_ns);
            return Step::Stay;
        }
        if !window.is_backlogged() {
            return self.is_idle(window.duration_ns);
        }
        self.idle_ns = 0;
        self.now.time_ns += window.duration_ns;
        self.now.jobs += window.completed;
        self.time_ns += window.duration_ns;
        self.jobs += window.completed;
        if self.now.time_ns < self.half_ns {
            return Step::Stay;
        }
        self.end_half();
        if self.is_known_well(loss) {
            Step::Done(self.compared())
        } else {
            self.next_half()
        }
    }

    /// No job waits: that says nothing, unless it is because so many may be inside.
    fn is_idle(&mut self, duration_ns: u64) -> Step {
        if self.now.is_known {
            return Step::Stay;
        }
        self.idle_ns += duration_ns;
        if self.idle_ns < IDLE_NS {
            return Step::Stay;
        }
        if self.tried < self.known {
            return self.rest();
        }
        let compared = self.compared();
        let ratio = if self.sums.pairs < PAIRS_MIN {
            1.0
        } else {
            compared.ratio
        };
        Step::Done(Compared { ratio, ..compared })
    }

    /// It is not known for how long no job will wait, and a limit that is tried may be far too low
    /// for what comes: a new pair, which begins with the other.
    fn rest(&mut self) -> Step {
        self.idle_ns = 0;
        self.first = None;
        self.halves -= self.halves % 2;
        self.now = Half {
            is_known: true,
            left_out_ns: self.left_out_ns,
            ..Half::default()
        };
        Step::Turn(self.known)
    }

    fn end_half(&mut self) {
        self.halves += 1;
        let rate = self.now.jobs as f64 * 1e9 / self.now.time_ns as f64;
        match self.first.take() {
            None => self.first = Some(rate),
            Some(first) if self.now.is_known => self.sums.add(rate, first),
            Some(first) => self.sums.add(first, rate),
        }
    }

    fn next_half(&mut self) -> Step {
        let goes_on = self.halves.is_multiple_of(2);
        let is_known = self.now.is_known == goes_on;
        self.now = Half {
            is_known,
            left_out_ns: if goes_on { 0 } else { self.left_out_ns },
            ..Half::default()
        };
        match goes_on {
            true => Step::Stay,
            false if is_known => Step::Turn(self.known),
            false => Step::Turn(self.tried),
        }
    }

    fn is_known_well(&self, loss: f64) -> bool {
        if self.first.is_some() || self.sums.pairs < PAIRS_MIN {
            return false;
        }
        let error = STANDARD_ERRORS * self.sums.standard_error();
        let most = ERROR_SHARE * loss;
        let aside = (self.sums.ratio() / self.threshold - 1.0).abs();
        let is_sure = error <= (SIDE_SHARE * aside).min(most).max(ERROR_MIN);
        let has_to_do = self.time_ns >= PATIENCE_NS && error <= ERROR_TIMES * most;
        let has_enough = self.jobs >= LONGEST_JOBS || self.time_ns >= 2 * LONGEST_NS;
        is_sure || has_to_do || (self.time_ns >= LONGEST_NS && has_enough)
    }

    fn compared(&self) -> Compared {
        Compared {
            known: self.known,
            tried: self.tried,
            ratio: self.sums.ratio(),
            known_per_sec: self.sums.known / self.sums.pairs.max(1.0),
        }
    }
}

impl Sums {
    fn add(&mut self, known: f64, tried: f64) {
        self.pairs += 1.0;
        self.known += known;
        self.tried += tried;
        self.known_known += known * known;
        self.known_tried += known * tried;
        self.tried_tried += tried * tried;
    }

    fn ratio(&self) -> f64 {
        (self.tried / self.known.max(f64::MIN_POSITIVE)).min(RATIO_MAX)
    }

    fn standard_error(&self) -> f64 {
        let ratio = self.ratio();
        let squares =
            self.tried_tried - 2.0 * ratio * self.known_tried + ratio * ratio * self.known_known;
        let variance = squares.max(0.0) / (self.pairs - 1.0).max(1.0);
        let mean = self.known / self.pairs;
        (variance / self.pairs).sqrt() / mean.max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK_NS: u64 = 100_000_000;

    /// A look at a tenth of a second with so many jobs done, in all of which a job waits, or
    /// none does.
    fn look(completed: u64, is_backlogged: bool) -> Window {
        Window {
            duration_ns: LOOK_NS,
            backlogged_ns: u64::from(is_backlogged) * LOOK_NS,
            completed,
            ..Window::default()
        }
    }

    #[test]
    fn a_pause_does_not_forget_what_is_known() {
        let mut comparing = Comparing::new(8, 16, 1000.0, 1.05);
        let (mut is_known, mut looks) = (false, 0);
        let compared = loop {
            looks += 1;
            assert!(looks < 10_000, "it never ends");
            let has_some = comparing.sums.pairs >= PAIRS_MIN;
            // 16 give half as much again, with so much noise that it takes long; then all users are
            // away.
            let noise = 60 * (looks / 10 % 3);
            let completed = if is_known { 100 } else { 150 + noise };
            // A loss of a hundredth is less than is ever known.
            match comparing.add(&look(completed, !has_some), 0.01) {
                Step::Stay => {}
                Step::Turn(limit) => is_known = limit == 8,
                Step::Done(compared) => break compared,
            }
        };
        assert!(compared.ratio > 1.2, "{compared:?}");
    }

    #[test]
    fn a_lower_limit_is_not_tried_while_nobody_waits() {
        let mut comparing = Comparing::new(8, 1, 1000.0, 0.95);
        let mut step = |is_backlogged| comparing.add(&look(100, is_backlogged), 0.05);
        let rests = (0..1000)
            .map(|_| step(false))
            .filter(|step| *step != Step::Stay);
        assert_eq!(rests.collect::<Vec<_>>(), [Step::Turn(8)]);
        // Then by turns, as before: the known one twice at most.
        let turns = (0..60).filter_map(|_| match step(true) {
            Step::Turn(limit) => Some(limit),
            _ => None,
        });
        assert_eq!(turns.take(3).collect::<Vec<_>>(), [1, 8, 1]);
    }

    #[test]
    fn a_limit_at_which_nothing_is_done_is_compared_as_well() {
        for (known, tried, ratio) in [(0, 100, RATIO_MAX), (0, 0, 0.0), (100, 0, 0.0)] {
            let mut comparing = Comparing::new(8, 16, 1000.0, 1.05);
            let mut is_known = false;
            let compared = (0..100_000).find_map(|_| {
                let completed = if is_known { known } else { tried };
                match comparing.add(&look(completed, true), 0.05) {
                    Step::Done(compared) => return Some(compared),
                    Step::Turn(limit) => is_known = limit == 8,
                    Step::Stay => {}
                }
                None
            });
            assert_eq!(compared.map(|compared| compared.ratio), Some(ratio));
        }
    }

    #[test]
    fn nobody_who_waits_now_and_then_is_no_reason() {
        let mut comparing = Comparing::new(8, 16, 1000.0, 1.05);
        let steps = (0..300).map(|at| comparing.add(&look(100, at % 50 == 49), 0.001));
        let done = steps.filter(|step| matches!(step, Step::Done(_)));
        assert_eq!(done.count(), 0);
    }
}
