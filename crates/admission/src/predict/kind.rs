//! Jobs of one kind.

use super::average::{Average, Moments};
use super::line::Line;
use super::settled::Settled;
use super::steps::Steps;
use super::trust::{DOUBT, Trust, mixed};

/// The slow mean remembers so many times as many jobs as the fast one.
const SLOWER: f64 = 16.0;
/// The score below which the slow mean is of times that are over.
const SLOW_SCORE_MIN: f64 = -1.0;
/// The jobs that a spread remembers.
pub(super) const SPREAD_MEMORY: f64 = 64.0;

/// What is known of a kind.
#[derive(Debug)]
pub(super) struct Kind {
    /// No other kind has it or had it.
    pub(super) number: u64,
    fast: Average,
    slow: Average,
    settled: Settled,
    line: Line,
    steps: Steps,
    /// Of the logarithm of times over expectations.
    pub(super) spread: Moments,
    slow_trust: Trust,
    line_trust: Trust,
    steps_trust: Trust,
    /// In neighbourhoods, of all its jobs.
    pub(super) neighbourhood_trust: Trust,
    /// In clients.
    pub(super) client_trust: Trust,
}

impl Kind {
    /// No jobs yet; the fast mean will remember `memory`.
    pub(super) fn new(number: u64, memory: f64) -> Self {
        Self {
            number,
            fast: Average::new(memory),
            slow: Average::new(SLOWER * memory),
            settled: Settled::new(),
            line: Line::new(),
            steps: Steps::default(),
            spread: Moments::new(SPREAD_MEMORY),
            slow_trust: Trust::of_many(),
            line_trust: Trust::of_many(),
            steps_trust: Trust::of_many(),
            neighbourhood_trust: Trust::of_many(),
            client_trust: Trust::of_many(),
        }
    }

    /// The mean of the last few; `None` before the first.
    pub(super) fn mean(&self) -> Option<f64> {
        self.fast.get()
    }

    /// By kind alone; `None` before the first.
    pub(super) fn expected(&self) -> Option<f64> {
        // Neither mean is the coarser one.
        let doubt = 0.0;
        let score = self.slow_trust.score();
        Some(mixed(self.fast.get()?, self.slow.get()?, score, doubt))
    }

    /// What jobs are said to take of which as much more or less is expected than by kind alone, as
    /// far as that is more than chance; `None` before the first.
    pub(super) fn settled(&self, expected: f64) -> Option<f64> {
        Some(self.settled.corrected(self.expected()?, expected))
    }

    /// By amount, where by kind alone is `coarse`.
    pub(super) fn with_amount(&self, coarse: f64, amount: Option<u64>) -> f64 {
        let Some(amount) = amount else { return coarse };
        let by_line = self.by_line(coarse, amount);
        let step = self.steps.get(amount).unwrap_or(1.0);
        mixed(by_line, by_line * step, self.steps_trust.score(), DOUBT)
    }

    fn by_line(&self, coarse: f64, amount: u64) -> f64 {
        let line = self.line.expected(amount);
        line.map_or(coarse, |line| {
            mixed(coarse, line, self.line_trust.score(), DOUBT)
        })
    }

    /// One of this amount took `actual`.
    pub(super) fn note(&mut self, actual: f64, amount: Option<u64>) {
        let coarse = self.expected().unwrap_or(actual);
        if let Some(amount) = amount {
            self.note_amount(actual, coarse, amount);
        }
        if let (Some(fast), Some(slow)) = (self.fast.get(), self.slow.get()) {
            self.slow_trust.note(actual, fast, slow);
        }
        self.fast.add(actual);
        self.slow.add(actual);
        if self.slow_trust.score() < SLOW_SCORE_MIN {
            self.slow.restart_as(&self.fast);
        }
        if let Some(expected) = self.expected() {
            self.settled.note(expected);
        }
    }

    fn note_amount(&mut self, actual: f64, coarse: f64, amount: u64) {
        let by_line = self.by_line(coarse, amount);
        if let Some(line) = self.line.expected(amount) {
            self.line_trust.note(actual, coarse, line);
        }
        if let Some(step) = self.steps.get(amount) {
            self.steps_trust.note(actual, by_line, by_line * step);
        }
        self.steps.note(amount, actual / by_line);
        self.line.note(amount, actual);
    }
}
