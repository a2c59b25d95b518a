//! A limit that was found, and what shows that it is the right one no more.
//!
//! Lower and higher limits are tried beside it now and then. What share it gives of the most that
//! can be had is remembered: each step down is held against that, or many small losses would become
//! a large one. That a backend is faster or slower than it was says nothing about the limit; it is
//! a reason to try another one sooner.

use super::comparing::Compared;
use super::measuring::Measured;
use super::search::{LOSS_SHARE, Search};
use super::{ControllerLimits, Why};

/// Between two tries of something else, ns in which a job waited.
const PROBE_AFTER_NS: u64 = 120_000_000_000;
/// It doubles while nothing is found, up to this.
const PROBE_AFTER_NS_MAX: u64 = 1_920_000_000_000;
/// Another speed by this many losses, twice in a row, is none of chance.
const CHANGE_LOSSES: f64 = 2.5;
/// Nor if it is less than so many times the error.
const CHANGE_ERRORS: f64 = 2.0;
/// What is measured again weighs this much.
const NEWS: f64 = 0.2;

/// What was found.
#[derive(Debug)]
pub struct Settled {
    limit: usize,
    rate_per_sec: f64,
    /// Of the most that is known to be had.
    share: f64,
    /// Which probe is next.
    turn: usize,
    /// Since the last probe, ns.
    quiet_ns: u64,
    probe_after_ns: u64,
    /// Whether it was faster or slower the last time.
    is_suspicious: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    Lower,
    Higher,
    Half,
    Double,
}

const PROBES: [Probe; 4] = [Probe::Lower, Probe::Higher, Probe::Half, Probe::Double];

impl Probe {
    fn of(self, limit: usize) -> usize {
        match self {
            Self::Lower => limit.saturating_sub((limit / 8).max(1)),
            Self::Higher => limit + (limit / 3).max(1),
            Self::Half => limit / 2,
            Self::Double => 2 * limit,
        }
    }
}

/// What follows from a probe.
pub enum Finding {
    /// This limit, which may be the one in force.
    Stay(usize),
    /// It has to be looked for again.
    Anew(Search, Why),
}

impl Settled {
    /// At `limit`, with so many jobs a second, this share of the best.
    pub fn new(limit: usize, rate_per_sec: f64, share: f64) -> Self {
        Self {
            limit,
            rate_per_sec,
            share,
            turn: 0,
            quiet_ns: 0,
            probe_after_ns: PROBE_AFTER_NS,
            is_suspicious: false,
        }
    }

    /// The limit.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Its throughput.
    pub fn rate_per_sec(&self) -> f64 {
        self.rate_per_sec
    }

    /// No more than this is allowed from now on.
    pub fn lower_to(&mut self, limit: usize) {
        self.limit = self.limit.min(limit);
    }

    /// The ratio that separates the two answers.
    pub fn threshold(&self, tried: usize, loss: f64) -> f64 {
        if tried > self.limit {
            1.0 / (1.0 - loss)
        } else {
            (1.0 - LOSS_SHARE * loss) / self.share
        }
    }

    /// It was measured again; a limit to try beside it, now and then.
    pub fn note(&mut self, measured: Measured, bounds: &ControllerLimits) -> Option<usize> {
        let rate = measured.rate_per_sec;
        let change = (rate / self.rate_per_sec.max(f64::MIN_POSITIVE) - 1.0).abs();
        let is_other = change > CHANGE_LOSSES * bounds.throughput_loss
            && change > CHANGE_ERRORS * measured.error;
        let was_suspicious = std::mem::replace(&mut self.is_suspicious, is_other);
        if is_other && was_suspicious {
            self.rate_per_sec = rate;
            self.is_suspicious = false;
            self.probe_after_ns = PROBE_AFTER_NS;
        } else if !is_other {
            self.rate_per_sec += NEWS * (rate - self.rate_per_sec);
        }
        self.quiet_ns += measured.time_ns;
        if self.quiet_ns < self.probe_after_ns {
            return None;
        }
        self.quiet_ns = 0;
        self.probe_after_ns = (2 * self.probe_after_ns).min(PROBE_AFTER_NS_MAX);
        self.probed(bounds)
    }

    /// The next limit that is another one.
    fn probed(&mut self, bounds: &ControllerLimits) -> Option<usize> {
        for _ in PROBES {
            let probe = PROBES[self.turn % PROBES.len()];
            self.turn += 1;
            let tried = probe.of(self.limit).clamp(bounds.min, bounds.max);
            if tried != self.limit {
                return Some(tried);
            }
        }
        None
    }

    /// Another limit was tried beside it.
    pub fn note_probe(&mut self, compared: Compared, bounds: &ControllerLimits) -> Finding {
        let Compared { tried, ratio, .. } = compared;
        let loss = bounds.throughput_loss;
        if tried > self.limit {
            if ratio * (1.0 - loss) > 1.0 {
                let why = Why::Changed(self.limit, tried, ratio);
                return Finding::Anew(Search::knowing(compared), why);
            }
            let best = match tried >= 2 * self.limit {
                // Far enough to say that there is no more than this.
                true => ratio.max(1.0),
                false => ratio.max(1.0 / self.share),
            };
            self.share = 1.0 / best;
            return Finding::Stay(self.limit);
        }
        let share = self.share * ratio;
        if share < 1.0 - LOSS_SHARE * loss {
            return Finding::Stay(self.limit);
        }
        if self.limit > 3 && tried <= self.limit / 2 {
            let why = Why::Changed(self.limit, tried, ratio);
            return Finding::Anew(Search::knowing(compared), why);
        }
        (self.limit, self.share) = (tried, share.min(1.0));
        self.rate_per_sec *= ratio;
        self.probe_after_ns = PROBE_AFTER_NS;
        Finding::Stay(self.limit)
    }
}
