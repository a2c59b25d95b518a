//! A line through times by amounts, both as logarithms.

use super::average::Average;
use super::factor::Over;

/// Jobs that where the line lies remembers.
const PLACE_MEMORY: f64 = 16.0;
/// Jobs that its slope remembers.
const SLOPE_MEMORY: f64 = 48.0;
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
    /// Where it lies now.
    amount: Average,
    time: Average,
    /// Around what its slope is taken.
    mean_amount: Average,
    mean_time: Average,
    squares: Average,
    products: Average,
    /// Times over what it says: the mean of logarithms is not the logarithm of the mean.
    over: Over,
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
            over: Over::new(SLOPE_MEMORY),
        }
    }

    /// The expected time of a job of this amount; `None` before the first.
    pub(super) fn expected(&self, amount: u64) -> Option<f64> {
        Some(self.typical(amount)? * self.over.get())
    }

    /// The time at the line.
    fn typical(&self, amount: u64) -> Option<f64> {
        let (mean, squares) = (self.mean_amount.get()?, self.squares.get()?);
        let samples = self.squares.samples();
        let slope = self.products.get()? * samples / (squares * samples + FLAT_JOBS);
        let reach = REACH * squares.sqrt();
        let here = logarithm(amount).clamp(mean - reach, mean + reach);
        let from_place = here - self.amount.get()?;
        let logarithm = self.time.get()? + slope.clamp(-SLOPE_MAX, SLOPE_MAX) * from_place;
        Some(logarithm.exp())
    }

    /// A job of this amount took `actual`.
    pub(super) fn note(&mut self, amount: u64, actual: f64) {
        if let Some(typical) = self.typical(amount) {
            self.over.add(actual / typical);
        }
        let (here, time) = (logarithm(amount), actual.ln());
        let from_amount = here - self.mean_amount.get().unwrap_or(here);
        let from_time = time - self.mean_time.get().unwrap_or(time);
        self.mean_amount.add(here);
        self.mean_time.add(time);
        // Around means that these samples have moved.
        let left = 1.0 - 1.0 / self.mean_amount.samples();
        self.squares.add(left * from_amount * from_amount);
        self.products.add(left * from_amount * from_time);
        self.amount.add(here);
        self.time.add(time);
    }
}

fn logarithm(amount: u64) -> f64 {
    (amount as f64 + 1.0).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After jobs of which the time is `power` of the amount.
    fn after(power: f64) -> Line {
        let mut line = Line::new();
        for amount in (1..9).cycle().take(100) {
            let amount = amount * 1000;
            line.note(amount, 1e6 * (amount as f64).powf(power));
        }
        line
    }

    #[test]
    fn it_goes_on_a_little_beyond_what_was_seen() {
        let at = |line: &Line, amount| line.expected(amount).unwrap();
        let line = after(1.0);
        let ratio = at(&line, 16_000) / at(&line, 1000);
        assert!((12.0..17.0).contains(&ratio), "{ratio}");
        assert_eq!(at(&line, 1 << 40), at(&line, u64::MAX));
        let flat = after(0.0);
        assert!((0.99..1.01).contains(&(at(&flat, 1) / at(&flat, 9000))));
        let falling = after(-1.0);
        assert!(at(&falling, 8000) < at(&falling, 4000) / 1.8);
    }

    #[test]
    fn one_amount_alone_is_a_mean() {
        let mut line = Line::new();
        assert_eq!(line.expected(5), None);
        for job in 0..200 {
            line.note(5, [10.0, 1000.0][job % 2]);
        }
        let expected = line.expected(5).unwrap();
        assert!((400.0..600.0).contains(&expected), "{expected}");
        assert_eq!(line.expected(5), line.expected(5_000_000));
    }
}
