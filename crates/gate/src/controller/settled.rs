//! A limit that was found, and what shows that it is the right one no more.
//!
//! The most that can be had is remembered beside what there is: each step down is held against it, or many small losses would become a large
//! one.

use super::ControllerLimits;
use super::Why;
use super::measuring::Measured;
use super::search::{LOSS_SHARE, Search};

/// Between two tries of something else, ns in which somebody waited.
const PROBE_AFTER_NS: u64 = 120_000_000_000;
/// It doubles while nothing is found, up to this.
const PROBE_AFTER_NS_MAX: u64 = 1_920_000_000_000;
/// A change by this many losses, twice in a row, comes from elsewhere.
const CHANGE_LOSSES: f64 = 2.5;
/// Nor is it chance if it is this many times the error.
const CHANGE_ERRORS: f64 = 2.0;
/// What is measured again weighs this much.
const NEWS: f64 = 0.2;

/// What was found.
#[derive(Debug)]
pub struct Settled {
    limit: usize,
    rate_per_sec: f64,
    /// The most that is known to be had.
    best_per_sec: f64,
    probe: Probe,
    /// Since the last probe, ns.
    quiet_ns: u64,
    probe_after_ns: u64,
    /// Whether the last one was different.
    is_suspicious: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    /// The next will be lower.
    Lower,
    /// The next will be higher.
    Higher,
}

/// What follows from what was measured.
pub enum Finding {
    /// This limit, which may be the one in force.
    Stay(usize),
    /// Another one for once.
    Probe(usize),
    /// It has to be looked for again.
    Anew(Search, Why),
}

impl Settled {
    /// At `limit`, with so much throughput of the best.
    pub fn new(limit: usize, rate_per_sec: f64, best_per_sec: f64) -> Self {
        Self {
            limit,
            rate_per_sec,
            best_per_sec,
            probe: Probe::Lower,
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

    /// Something was measured at `limit`: the one that was found, or the one that is tried for once.
    pub fn note(&mut self, limit: usize, measured: Measured, bounds: &ControllerLimits) -> Finding {
        match limit == self.limit {
            true => self.note_own(measured, bounds),
            false => self.note_probe(limit, measured, bounds),
        }
    }

    fn note_own(&mut self, measured: Measured, bounds: &ControllerLimits) -> Finding {
        let rate = measured.rate_per_sec;
        let change = (rate / self.rate_per_sec - 1.0).abs();
        let is_change = change > CHANGE_LOSSES * bounds.throughput_loss
            && change > CHANGE_ERRORS * measured.error;
        if is_change && self.is_suspicious {
            let why = Why::Changed(self.rate_per_sec, rate);
            return Finding::Anew(Search::knowing([(self.limit, measured)]), why);
        }
        self.is_suspicious = is_change;
        if is_change {
            return Finding::Stay(self.limit);
        }
        let news = 1.0 + NEWS * (rate / self.rate_per_sec - 1.0);
        self.rate_per_sec *= news;
        self.best_per_sec *= news;
        self.quiet_ns += measured.time_ns;
        if self.quiet_ns < self.probe_after_ns {
            return Finding::Stay(self.limit);
        }
        self.quiet_ns = 0;
        self.probe_after_ns = (2 * self.probe_after_ns).min(PROBE_AFTER_NS_MAX);
        Finding::Probe(self.probed(bounds))
    }

    /// A step from the limit that was found.
    fn probed(&self, bounds: &ControllerLimits) -> usize {
        let step = match self.probe {
            Probe::Lower => self.limit.saturating_sub((self.limit / 8).max(1)),
            Probe::Higher => self.limit + (self.limit / 3).max(1),
        };
        step.clamp(bounds.min, bounds.max)
    }

    fn note_probe(
        &mut self,
        limit: usize,
        measured: Measured,
        bounds: &ControllerLimits,
    ) -> Finding {
        let rate = measured.rate_per_sec;
        self.probe = match self.probe {
            Probe::Lower => Probe::Higher,
            Probe::Higher => Probe::Lower,
        };
        if limit < self.limit {
            if rate >= (1.0 - LOSS_SHARE * bounds.throughput_loss) * self.best_per_sec {
                (self.limit, self.rate_per_sec) = (limit, rate);
                self.probe_after_ns = PROBE_AFTER_NS;
            }
            return Finding::Stay(self.limit);
        }
        if rate > (1.0 + bounds.throughput_loss) * self.rate_per_sec {
            let own = Measured {
                rate_per_sec: self.rate_per_sec,
                ..measured
            };
            let known = [(self.limit, own), (limit, measured)];
            let why = Why::Changed(self.rate_per_sec, rate);
            return Finding::Anew(Search::knowing(known), why);
        }
        self.best_per_sec = rate.max(self.rate_per_sec);
        Finding::Stay(self.limit)
    }
}
