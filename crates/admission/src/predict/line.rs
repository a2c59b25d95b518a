//! A line through times by amounts, both as logarithms.

use super::average::Average;

/// Jobs that where the line lies remembers.
const PLACE_MEMORY: f64 = 16.0;
/// Jobs that its slope remembers.
const SLOPE_MEMORY: f64 = 64.0;
/// Times that do not depend on the amount make no slope: as if so many jobs had shown none, with
/// amounts that vary by a factor of e.
const FLAT_JOBS: f64 = 2.0;
/// The steepest that is believed.
const SLOPE_MAX: f64 = 3.0;
/// How far beyond what was seen the line goes on, in standard deviations.
const REACH: f64 = 4.0;

/// Follows times that are near a power of the amount.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    amount: Average,
    time: Average,
    mean_amount: Average,
    mean_time: Average,
    squares: Average,
    products: Average,
    /// The mean of times over what the line says: the mean of a logarithm is not that of a mean.
    over: Average,
}

impl Line {
    /// No jobs yet.
    pub(super) fn new() -> Self {
        Self {
            amount: Average::new(PLACE_MEMORY),
            time: Average::new(PLACE_MEMORY),
            mean_amount: Average::new(SLOPE_MEMORY),
            mean_time: Average::new(SLOPE_MEMORY),
            squares: Average::new(SLOPE_MEMORY),
            products: Average::new(SLOPE_MEMORY),
            over: Average::new(SLOPE_MEMORY),
        }
    }

    /// The expected time of a job of this amount; `None` before the first.
    pub(super) fn expected(&self, amount: u64) -> Option<f64> {
        let (at, time) = (self.amount.get()?, self.time.get()?);
        let (mean, squares) = (self.mean_amount.get()?, self.squares.get()?);
        let samples = self.squares.samples();
        let slope = self.products.get()? * samples / (squares * samples + FLAT_JOBS);
        let reach = REACH * squares.sqrt();
        let here = logarithm(amount).clamp(mean - reach, mean + reach);
        let line = time + slope.clamp(-SLOPE_MAX, SLOPE_MAX) * (here - at);
        Some(line.exp() * self.over.with_before(1.0, 1.0))
    }

    /// A job of this amount took `actual`.
    pub(super) fn note(&mut self, amount: u64, actual: f64) {
        if let Some(expected) = self.expected(amount) {
            let over = self.over.with_before(1.0, 1.0);
            self.over.add((actual * over / expected).min(OVER_MAX));
        }
        let (here, time) = (logarithm(amount), actual.ln());
        let from_amount = here - self.mean_amount.get().unwrap_or(here);
        let from_time = time - self.mean_time.get().unwrap_or(time);
        let weight = self.mean_amount.add(here);
        self.mean_time.add(time);
        let left = 1.0 - weight;
        self.squares.add(left * from_amount * from_amount);
        self.products.add(left * from_amount * from_time);
        self.amount.add(here);
        self.time.add(time);
    }
}

/// One job counts for so much at most.
const OVER_MAX: f64 = 32.0;

fn logarithm(amount: u64) -> f64 {
    (amount as f64 + 1.0).ln()
}
