//! Which limit to try next, from the throughput at those that were tried.
//!
//! Throughput rises with the limit, stays, and may fall again; whatever lies between two limits that were tried gives no less than the worse
//! of the two. So it is enough to halve until it costs too much, to double until nothing is gained, and to look between.

use std::collections::BTreeMap;

use super::ControllerLimits;
use super::measuring::Measured;
use super::settled::Settled;

/// What is taken for good may lose this share of the loss: the rest is for what was measured wrong.
pub const LOSS_SHARE: f64 = 0.6;
/// What gains less than this share of the loss gains nothing.
const GAIN_SHARE: f64 = 0.3;
/// A peak between two limits that were tried is at most so many times higher than what was measured.
const PEAK_ABOVE: f64 = 1.02;
/// Limits nearer than this share of themselves are as good as the same.
const NEAR: usize = 12;
/// After so many measurements the best that is known has to do.
const TRIES_MAX: usize = 9;

/// What is known so far.
#[derive(Clone, Debug, Default)]
pub struct Search {
    known: BTreeMap<usize, Measured>,
    tries: usize,
}

impl Search {
    /// One that knows something already.
    pub fn knowing(known: impl IntoIterator<Item = (usize, Measured)>) -> Self {
        Self {
            known: known.into_iter().collect(),
            tries: 0,
        }
    }

    /// This was measured.
    pub fn note(&mut self, limit: usize, measured: Measured) {
        self.tries += 1;
        self.known.insert(limit, measured);
    }

    /// The most that can be had, as far as is known: where limits on both sides of the best give less, the peak is between them, and perhaps a
    /// little higher.
    fn best(&self) -> f64 {
        let rates = self.known.values().map(|measured| measured.rate_per_sec);
        let most = rates.fold(0.0, f64::max);
        let peak = self.peak().unwrap_or(0.0);
        peak.clamp(most, PEAK_ABOVE * most)
    }

    /// The top of the parabola, over the logarithm of the limit, through the best that was measured and its neighbours.
    fn peak(&self) -> Option<f64> {
        let points: Vec<(f64, f64)> = self
            .known
            .iter()
            .map(|(limit, measured)| ((*limit as f64).ln(), measured.rate_per_sec))
            .collect();
        let best = (0..points.len()).max_by(|a, b| points[*a].1.total_cmp(&points[*b].1))?;
        let neighbours = points.get(best.checked_sub(1)?..=best + 1)?;
        let [(x0, y0), (x1, y1), (x2, y2)] = neighbours.try_into().ok()?;
        let (left, right) = ((y1 - y0) / (x1 - x0), (y2 - y1) / (x2 - x1));
        let bend = (right - left) / (x2 - x0);
        if bend >= 0.0 {
            return None;
        }
        let at = ((x0 + x1) / 2.0 - left / (2.0 * bend)).clamp(x0, x2);
        Some(y0 + left * (at - x0) + bend * (at - x0) * (at - x1))
    }

    /// Jobs a second that are enough; 0 while nothing is known.
    pub fn enough(&self, loss: f64) -> f64 {
        (1.0 - LOSS_SHARE * loss) * self.best()
    }

    /// The lowest limit that is good enough, and what it gives.
    fn choice(&self, loss: f64) -> Option<(usize, f64)> {
        let enough = self.enough(loss);
        let rates = self.known.iter();
        let mut rates = rates.map(|(limit, measured)| (*limit, measured.rate_per_sec));
        let most = rates.clone().max_by(|one, other| one.1.total_cmp(&other.1));
        rates.find(|(_, rate)| *rate >= enough).or(most)
    }

    /// Whether the highest limit that was tried gives more than the one before it.
    fn still_rises(&self, loss: f64) -> bool {
        let mut down = self.known.values().rev();
        match (down.next(), down.next()) {
            (Some(last), Some(before)) => {
                last.rate_per_sec > (1.0 + GAIN_SHARE * loss) * before.rate_per_sec
            }
            _ => false,
        }
    }

    /// What to try next; `None` where nothing is left to be found.
    pub fn next(&self, bounds: &ControllerLimits) -> Option<usize> {
        let loss = bounds.throughput_loss;
        let (choice, _) = self.choice(loss)?;
        let (&highest, _) = self.known.last_key_value()?;
        if self.tries >= TRIES_MAX {
            return None;
        }
        if highest < bounds.max && self.still_rises(loss) {
            return Some((2 * highest).min(bounds.max));
        }
        let too_low = self.known.range(..choice).next_back();
        let Some((&too_low, _)) = too_low else {
            if choice > bounds.min {
                return Some((choice / 2).max(bounds.min));
            }
            // Nothing below, and nothing above was tried: it may be more.
            let is_alone = self.known.len() == 1 && highest < bounds.max;
            return is_alone.then(|| (2 * highest).min(bounds.max));
        };
        if choice - too_low <= (choice / NEAR).max(1) {
            return None;
        }
        let between = ((too_low * choice) as f64).sqrt().round() as usize;
        Some(between.clamp(too_low + 1, choice - 1))
    }

    /// Stays where it is enough.
    pub fn settle(&self, bounds: &ControllerLimits) -> Settled {
        let choice = self.choice(bounds.throughput_loss);
        let (limit, rate) = choice.unwrap_or((bounds.start, 0.0));
        Settled::new(limit, rate, self.best())
    }
}
