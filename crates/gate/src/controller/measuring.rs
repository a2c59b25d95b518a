//! Throughput at one limit, measured for as long as it takes to tell a loss from chance.

use crate::Window;

/// A look counts if somebody waited for this share of it.
const BACKLOGGED: f64 = 0.95;
/// Looks and jobs before anything can be said.
const LOOKS_MIN: f64 = 10.0;
const JOBS_MIN: u64 = 200;
/// The error of what is measured is to be at most this share of the loss: then one can tell one from the other.
const ERROR_SHARE: f64 = 0.4;
/// Twice the standard error: 95 % of all that is measured is nearer to the truth.
const STANDARD_ERRORS: f64 = 2.0;
/// What is that near to being just enough is measured longer: until it is known on which side it is.
const SIDE_SHARE: f64 = 0.8;
/// Nothing is measured better than this.
const ERROR_MIN: f64 = 0.005;
/// After so many jobs and so long, ns, so many times that error has to do: what still varies then (checkpoints, neighbours) does not average out soon.
const JOBS_PLENTY: u64 = 10_000;
const PLENTY_NS: u64 = 20_000_000_000;
const ERROR_TIMES: f64 = 1.5;
/// The same where there are few jobs.
const PATIENCE_NS: u64 = 60_000_000_000;
const LONGEST_NS: u64 = 120_000_000_000;
/// Times the mean time inside that is left out after a change.
const LEFT_OUT: u64 = 2;

/// Looks at one limit.
#[derive(Debug, Default)]
pub struct Measuring {
    left_out_ns: u64,
    looks: f64,
    /// The mean of the rates and the sum of the squares of their distances (Welford 1962).
    mean: f64,
    squares: f64,
    jobs: u64,
    time_ns: u64,
    inside_ns: u128,
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Jobs a second while somebody waited.
    pub rate_per_sec: f64,
    /// By how much it may be wrong, of itself: twice the standard error.
    pub error: f64,
    /// How long it took, ns.
    pub time_ns: u64,
    /// The mean time inside, ns.
    pub mean_inside_ns: u64,
}

impl Measuring {
    /// What comes first is left out: jobs that went in under another limit.
    pub fn after(mean_inside_ns: u64) -> Self {
        Self {
            left_out_ns: LEFT_OUT * mean_inside_ns,
            ..Self::default()
        }
    }

    /// One more look.
    pub fn add(&mut self, window: &Window) {
        if self.left_out_ns > 0 {
            self.left_out_ns = self.left_out_ns.saturating_sub(window.duration_ns);
            return;
        }
        let waited = window.backlogged_ns as f64 / window.duration_ns.max(1) as f64;
        if window.duration_ns == 0 || waited < BACKLOGGED {
            return;
        }
        let rate = window.completed as f64 * 1e9 / window.duration_ns as f64;
        self.looks += 1.0;
        let distance = rate - self.mean;
        self.mean += distance / self.looks;
        self.squares += distance * (rate - self.mean);
        self.jobs += window.completed;
        self.time_ns += window.duration_ns;
        self.inside_ns += window.service_sum_ns;
    }

    fn error(&self) -> f64 {
        let variance = self.squares / (self.looks - 1.0).max(1.0);
        STANDARD_ERRORS * (variance / self.looks).sqrt() / self.mean.max(f64::MIN_POSITIVE)
    }

    /// What was measured, once it is enough to tell `loss` from chance, and whether it is more or less than `enough`, jobs a second.
    pub fn result(&self, loss: f64, enough: f64) -> Option<Measured> {
        let has_some = self.looks >= LOOKS_MIN && self.jobs >= JOBS_MIN;
        let aside = (self.mean / enough - 1.0).abs();
        let wanted = (SIDE_SHARE * aside).clamp(ERROR_MIN, ERROR_SHARE * loss);
        let is_sure = has_some && self.error() <= wanted;
        let has_plenty = self.jobs >= JOBS_PLENTY && self.time_ns >= PLENTY_NS;
        let has_to_do = has_plenty && self.error() <= ERROR_TIMES * ERROR_SHARE * loss;
        let is_late = has_some && (has_to_do || self.time_ns >= PATIENCE_NS);
        let is_over = self.jobs > 0 && self.time_ns >= LONGEST_NS;
        (is_sure || is_late || is_over).then(|| Measured {
            rate_per_sec: self.mean,
            error: self.error(),
            time_ns: self.time_ns,
            mean_inside_ns: (self.inside_ns / u128::from(self.jobs.max(1))) as u64,
        })
    }
}
