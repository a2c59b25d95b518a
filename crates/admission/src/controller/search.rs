//! Which limit to try next, and beside which one, from the throughput at those that were tried.
//!
//! Throughput rises with the limit, stays, and may fall again; whatever lies between two limits
//! that were tried gives no less than the worse of the two. So it is enough to halve until it costs
//! too much, to double until nothing is gained, and to look between. What is known of a limit is
//! its share of what the first one gives; each new one is held against the best that is known,
//! whatever the machine does meanwhile.

use std::collections::BTreeMap;

use super::ControllerLimits;
use super::comparing::Compared;
use super::settled::Settled;

/// What is taken for good may lose this share of the loss: the rest is for what was measured wrong.
pub const LOSS_SHARE: f64 = 0.6;
/// What gains less than this share of the loss gains nothing.
const GAIN_SHARE: f64 = 0.3;
/// A peak between two limits that were tried is at most so many times higher than what was
/// measured.
const PEAK_ABOVE: f64 = 1.02;
/// Limits nearer than this share of themselves are as good as the same.
const NEAR: usize = 12;
/// After so many tries the best that is known has to do.
const TRIES_MAX: usize = 9;

/// What is known so far.
#[derive(Clone, Debug)]
pub struct Search {
    /// Throughput at each limit, of that at the first.
    shares: BTreeMap<usize, f64>,
    tries: usize,
    /// Jobs a second with a share of 1, at the last look.
    rate_per_sec: f64,
}

impl Search {
    /// One that begins here, where a backend does so much.
    pub fn new(limit: usize, rate_per_sec: f64) -> Self {
        Self {
            shares: BTreeMap::from([(limit, 1.0)]),
            tries: 0,
            rate_per_sec,
        }
    }

    /// Begins with two limits that were compared.
    pub fn knowing(compared: Compared) -> Self {
        let mut search = Self::new(compared.known, compared.known_per_sec);
        search.shares.insert(compared.tried, compared.ratio);
        search
    }

    /// This was found out.
    pub fn note(&mut self, compared: Compared) {
        self.tries += 1;
        let known = self.shares.get(&compared.known).copied().unwrap_or(1.0);
        self.shares.insert(compared.tried, known * compared.ratio);
        if compared.known_per_sec > 0.0 {
            self.rate_per_sec = compared.known_per_sec / known;
        }
    }

    /// Jobs a second at a limit that is known.
    pub fn rate_per_sec(&self, limit: usize) -> f64 {
        self.rate_per_sec * self.shares.get(&limit).copied().unwrap_or(1.0)
    }

    /// The limit with the most throughput of those that are known and allowed.
    fn most(&self, bounds: &ControllerLimits) -> Option<(usize, f64)> {
        let allowed = self.shares.range(..=bounds.max);
        let most = allowed.max_by(|one, other| one.1.total_cmp(other.1))?;
        Some((*most.0, *most.1))
    }

    /// The most that can be had, as far as is known: where limits on both sides of the best give
    /// less, the peak is between them, and perhaps a little higher.
    fn best(&self, bounds: &ControllerLimits) -> f64 {
        let most = self.most(bounds).map_or(0.0, |(_, share)| share);
        let peak = self.peak(bounds).unwrap_or(0.0);
        peak.clamp(most, PEAK_ABOVE * most)
    }

    /// The top of the parabola, over the logarithm of the limit, through the best that is known and
    /// its neighbours.
    fn peak(&self, bounds: &ControllerLimits) -> Option<f64> {
        let known = self.shares.range(..=bounds.max);
        let points: Vec<(f64, f64)> = known
            .map(|(limit, share)| ((*limit as f64).ln(), *share))
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

    /// The ratio that separates the two answers, where `tried` is held against `known`.
    pub fn threshold(&self, known: usize, tried: usize, bounds: &ControllerLimits) -> f64 {
        let enough = 1.0 - LOSS_SHARE * bounds.throughput_loss;
        let share = self.shares.get(&known).copied().unwrap_or(1.0);
        if tried > known {
            1.0 / enough
        } else {
            enough * self.best(bounds) / share.max(f64::MIN_POSITIVE)
        }
    }

    /// The lowest limit that is good enough.
    fn choice(&self, bounds: &ControllerLimits) -> Option<usize> {
        let enough = (1.0 - LOSS_SHARE * bounds.throughput_loss) * self.best(bounds);
        let mut allowed = self.shares.range(..=bounds.max);
        let first = allowed.find(|(_, share)| **share >= enough);
        let choice = first.map(|(limit, _)| *limit);
        choice.or(self.most(bounds).map(|(limit, _)| limit))
    }

    /// Whether the highest limit that was tried gives more than the one before it.
    fn still_rises(&self, loss: f64) -> bool {
        let mut down = self.shares.values().rev();
        match (down.next(), down.next()) {
            (Some(last), Some(before)) => *last > (1.0 + GAIN_SHARE * loss) * before,
            _ => false,
        }
    }

    /// What to try next, beside what; `None` where nothing is left to be found.
    pub fn next(&self, bounds: &ControllerLimits) -> Option<(usize, usize)> {
        let (most, _) = self.most(bounds)?;
        let tried = self.tried_next(bounds)?;
        Some((most, tried))
    }

    fn tried_next(&self, bounds: &ControllerLimits) -> Option<usize> {
        let choice = self.choice(bounds)?;
        let (&highest, _) = self.shares.last_key_value()?;
        if self.tries >= TRIES_MAX {
            return None;
        }
        if highest < bounds.max && self.still_rises(bounds.throughput_loss) {
            return Some((2 * highest).min(bounds.max));
        }
        let too_low = self.shares.range(..choice).next_back();
        let Some((&too_low, _)) = too_low else {
            if choice > bounds.min {
                return Some((choice / 2).max(bounds.min));
            }
            // Nothing below, and nothing above was tried: it may be more.
            let is_alone = self.shares.len() == 1 && highest < bounds.max;
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
        let limit = self.choice(bounds).unwrap_or(bounds.max);
        let share = self.shares.get(&limit).copied().unwrap_or(1.0);
        let of_best = share / self.best(bounds).max(f64::MIN_POSITIVE);
        Settled::new(limit, self.rate_per_sec(limit), of_best.min(1.0))
    }
}
