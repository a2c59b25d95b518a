//! What one limit gives, for as long as it takes to say something.
//!
//! That says how fast a backend is, not which limit is better: what a machine can do goes up and
//! down by more than what is asked about. Two limits are held against each other by turns
//! ([`Comparing`](super::comparing::Comparing)).

use crate::Window;

/// Looks and jobs before anything can be said.
const LOOKS_MIN: f64 = 10.0;
const JOBS_MIN: u64 = 200;
/// Where there are fewer jobs this long has to do, ns.
const LONGEST_NS: u64 = 60_000_000_000;
/// Twice the standard error: 95 % of all that is measured is nearer to the truth.
pub const STANDARD_ERRORS: f64 = 2.0;
/// Times the mean time inside that are left out after a change.
pub const LEFT_OUT: f64 = 2.0;

/// Looks at one limit.
#[derive(Debug, Default)]
pub struct Measuring {
    left_out_ns: u64,
    shortest_ns: u64,
    looks: f64,
    /// The mean of the rates and the sum of the squares of their distances (Welford 1962).
    mean: f64,
    squares: f64,
    jobs: u64,
    time_ns: u64,
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Jobs a second while a job waited.
    pub rate_per_sec: f64,
    /// By how much it may be wrong, of itself: twice the standard error.
    pub error: f64,
    /// How long it took, ns.
    pub time_ns: u64,
}

impl Measuring {
    /// At least `shortest_ns`; what comes in the first `left_out_ns` is left out: jobs that went in
    /// under another limit.
    pub fn new(left_out_ns: u64, shortest_ns: u64) -> Self {
        Self {
            left_out_ns,
            shortest_ns,
            ..Self::default()
        }
    }

    /// One more look.
    pub fn add(&mut self, window: &Window) {
        if self.left_out_ns > 0 {
            self.left_out_ns = self.left_out_ns.saturating_sub(window.duration_ns);
            return;
        }
        if !window.is_backlogged() {
            return;
        }
        let rate = window.completed as f64 * 1e9 / window.duration_ns as f64;
        self.looks += 1.0;
        let distance = rate - self.mean;
        self.mean += distance / self.looks;
        self.squares += distance * (rate - self.mean);
        self.jobs += window.completed;
        self.time_ns += window.duration_ns;
    }

    fn error(&self) -> f64 {
        let variance = self.squares / (self.looks - 1.0).max(1.0);
        STANDARD_ERRORS * (variance / self.looks).sqrt() / self.mean.max(f64::MIN_POSITIVE)
    }

    /// What was measured, once it is enough to say something.
    pub fn result(&self) -> Option<Measured> {
        let has_some = self.looks >= LOOKS_MIN && self.jobs >= JOBS_MIN;
        let is_enough = has_some && self.time_ns >= self.shortest_ns;
        let is_over = self.jobs > 0 && self.time_ns >= LONGEST_NS;
        (is_enough || is_over).then(|| Measured {
            rate_per_sec: self.mean,
            error: self.error(),
            time_ns: self.time_ns,
        })
    }
}
