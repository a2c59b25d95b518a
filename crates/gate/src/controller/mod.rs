//! Finds how many jobs a backend needs inside: the fewest that cost no more throughput than is said (thesis 9.3, 10.3.5).
//!
//! Each place more than that is a job whose turn nobody decides any more. The number is found by trying: throughput is measured at one limit
//! after the other, each for as long as it takes to tell the loss from chance; halved while that costs nothing, doubled while it gains
//! something, then what is between. Throughput falls again beyond some limit where jobs lock each other out, so more is never taken for better.
//! It is the set point, and not how long jobs take: a controller that looks at that alone drifts.
//!
//! Only while jobs wait outside does the number of those that are done say something about the limit; all other times are left out.
//! Afterwards a step down or up is tried now and then, and where throughput changes by itself everything begins anew.
//!
//! Where classes have targets the time inside must leave room for them: it grows in proportion to the jobs inside, so that gives a
//! highest limit (thesis 10.3.5, and 10.4.2 for percentiles).
//!
//! Knows no clock: who looks says how long it was.

mod measuring;
mod search;
mod settled;
mod start;

use std::fmt;

use crate::Window;
use measuring::{Measured, Measuring};
use search::Search;
use settled::{Finding, Settled};

pub use start::start;

/// Within which bounds a limit is looked for.
#[derive(Clone, Copy, Debug)]
pub struct ControllerLimits {
    /// The fewest; at least 1.
    pub min: usize,
    /// The most.
    pub max: usize,
    /// The first.
    pub start: usize,
    /// The throughput that may be lost, of the most that can be had: 0.05.
    pub throughput_loss: f64,
}

/// Another limit, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Jobs that may be inside from now on.
    pub limit: usize,
    /// For those who read it.
    pub why: Why,
}

/// Why a limit changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// It is not known yet what this one gives; jobs a second at the one before.
    Tries(f64),
    /// It is the fewest that is enough; jobs a second there.
    Found(f64),
    /// To see whether things have changed.
    Probes,
    /// What was tried is no better.
    GoesBack,
    /// Some class would take longer inside than its target is, so many times.
    Targets(f64),
    /// Throughput has changed by itself, from so many jobs a second to so many.
    Changed(f64, f64),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tries(rate) => write!(f, "trying; {rate:.0} jobs a second before"),
            Self::Found(rate) => write!(f, "enough, with {rate:.0} jobs a second"),
            Self::Probes => f.write_str("trying whether things have changed"),
            Self::GoesBack => f.write_str("back: the other was no better"),
            Self::Targets(factor) => {
                write!(f, "a class is inside for {factor:.2} times its target")
            }
            Self::Changed(before, now) => {
                write!(
                    f,
                    "{now:.0} jobs a second instead of {before:.0}: looking anew"
                )
            }
        }
    }
}

/// Of a target, what the time inside may take: the rest is for waiting.
const INSIDE_SHARE: f64 = 0.9;
/// A highest limit is raised only by this factor: else it would follow every chance.
const RAISED_BY: f64 = 1.2;

/// Looks for the limit of one backend.
#[derive(Debug)]
pub struct Controller {
    limits: ControllerLimits,
    limit: usize,
    /// The highest that leaves room for the targets.
    ceiling: usize,
    measuring: Measuring,
    state: State,
}

#[derive(Debug)]
enum State {
    Searching(Search),
    Settled(Settled),
}

impl Controller {
    /// Begins at the limits' start.
    pub fn new(limits: ControllerLimits) -> Self {
        let limit = limits.start.clamp(limits.min, limits.max);
        Self {
            limits,
            limit,
            ceiling: limits.max,
            measuring: Measuring::default(),
            state: State::Searching(Search::default()),
        }
    }

    /// The limit in force.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Whether it has been found.
    pub fn is_settled(&self) -> bool {
        matches!(self.state, State::Settled(_))
    }

    /// What was seen since the last call, best every tenth of a second, and what each target needs: the expected time inside, and the target.
    pub fn observe(&mut self, window: &Window, needs: &[(u64, u64)]) -> Option<Change> {
        self.measuring.add(window);
        let enough = match &self.state {
            State::Searching(search) => search.enough(self.limits.throughput_loss),
            State::Settled(_) => 0.0,
        };
        let loss = self.limits.throughput_loss;
        let measured = self.measuring.result(loss, enough)?;
        self.measuring = Measuring::default();
        let factor = needs
            .iter()
            .map(|(inside_ns, target_ns)| *inside_ns as f64 / (*target_ns).max(1) as f64)
            .fold(0.0, f64::max);
        self.set_ceiling(factor);
        let (limit, why) = match factor > 1.0 && self.ceiling < self.limit {
            true => (self.ceiling, Why::Targets(factor)),
            false => self.next(measured),
        };
        let limit = limit.clamp(self.limits.min, self.ceiling);
        if limit == self.limit {
            return None;
        }
        let change = Change { limit, why };
        // Jobs that went in under the old limit are to leave first.
        self.measuring = Measuring::after(measured.mean_inside_ns);
        self.limit = limit;
        Some(change)
    }

    fn set_ceiling(&mut self, factor: f64) {
        let Self { limits, limit, .. } = *self;
        if factor <= 0.0 {
            self.ceiling = limits.max;
            return;
        }
        let room = INSIDE_SHARE * limit as f64 / factor;
        let wanted = (room as usize).clamp(limits.min, limits.max);
        if factor > 1.0 || wanted as f64 >= RAISED_BY * self.ceiling as f64 {
            self.ceiling = wanted;
        }
    }

    fn next(&mut self, measured: Measured) -> (usize, Why) {
        let Self {
            limits,
            limit,
            ceiling,
            ..
        } = *self;
        let bounds = ControllerLimits {
            max: ceiling.max(limits.min),
            ..limits
        };
        match &mut self.state {
            State::Searching(search) => {
                search.note(limit, measured);
                if let Some(next) = search.next(&bounds) {
                    return (next, Why::Tries(measured.rate_per_sec));
                }
                let settled = search.settle(&bounds);
                let found = (settled.limit(), Why::Found(settled.rate_per_sec()));
                self.state = State::Settled(settled);
                found
            }
            State::Settled(settled) => match settled.note(limit, measured, &bounds) {
                Finding::Stay(limit) => (limit, Why::GoesBack),
                Finding::Probe(limit) => (limit, Why::Probes),
                Finding::Anew(search, why) => {
                    let next = search.next(&bounds).unwrap_or(limit);
                    self.state = State::Searching(search);
                    (next, why)
                }
            },
        }
    }
}
