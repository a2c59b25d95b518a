//! The first step of a probe: so little more for so short a time that the queue it may leave is
//! just large enough to be seen, and gone again before it is known.
//!
//! A ramp that ends when its queue is seen leaves one several times as large: a round trip and a
//! look pass until then. Here a known amount is sent beyond what the link is believed to carry,
//! then as much as that for a moment, then less. What those packets waited that left in the moment
//! says how much the link carries, to a hundredth or two.

use super::hold::AFTER_BURST;
use super::{BELOW, DEMAND, EMPTY, Phase, STEP_NS, Search, Seen};
use crate::decision::Why;

/// The queue that is meant, of the threshold.
const MEANT: f64 = 1.2;
/// What one step adds to it at most, ms; and for so many steps at most more is sent.
const ADDED_MS_MAX: f64 = 25.0;
const STEPS_MAX: f64 = 5.0;
const STEP_MS: f64 = STEP_NS as f64 / 1e6;
/// What is sent less drains it within so long, ms.
const DRAINED_MS: f64 = 200.0;
/// What waited before it, over so many steps.
const STEPS_BEFORE: u64 = 3;
/// Half of what is found counts, and so much at most: each burst is wrong by a hundredth or two.
const DAMPED: f64 = 0.5;
const CHANGE_MAX: f64 = 0.03;

/// More is sent for some steps, as much as is believed for one, then less until it is judged.
#[derive(Debug, Clone, Copy)]
pub struct Burst {
    from_ns: u64,
    /// Steps come a little early or late.
    until_ns: u64,
    /// By which share more is sent.
    more: f64,
    /// What was waited before.
    before_ms: f64,
    /// When as much as is believed was sent, and when less.
    level_ns: Option<u64>,
    less_ns: Option<u64>,
    judged_ns: u64,
    has_demand: bool,
}

impl Search {
    pub(super) fn burst(&mut self, seen: &Seen) {
        let now_ns = seen.now_ns;
        let meant_ms = MEANT * seen.threshold_ms;
        let steps = (meant_ms / ADDED_MS_MAX).ceil().clamp(1.0, STEPS_MAX);
        let more = (meant_ms / (steps * STEP_MS)).min(0.5);
        let waited_ms = self
            .addresses
            .waited(now_ns - STEPS_BEFORE * STEP_NS, now_ns);
        self.rate = self.bounded(self.believed() * (1.0 + more));
        self.phase = Phase::Burst(Burst {
            from_ns: now_ns,
            until_ns: now_ns + steps as u64 * STEP_NS - STEP_NS / 2,
            more,
            before_ms: waited_ms.map_or(0.0, |(waited_ms, _)| waited_ms),
            level_ns: None,
            less_ns: None,
            judged_ns: 0,
            has_demand: false,
        });
        (self.full_steps, self.full_steps_by_lights) = (0, 0);
    }

    pub(super) fn step_burst(&mut self, seen: &Seen, mut burst: Burst) -> Option<Why> {
        let now_ns = seen.now_ns;
        let believed = self.believed();
        match (burst.level_ns, burst.less_ns) {
            (None, _) if now_ns >= burst.until_ns => {
                let sent = self.rates.sent(now_ns - burst.from_ns);
                burst.has_demand = sent >= DEMAND * self.rate;
                burst.level_ns = Some(now_ns);
                self.rate = self.bounded(believed);
            }
            (Some(_), None) => {
                burst.less_ns = Some(now_ns);
                burst.judged_ns = now_ns + self.round_trip_ns();
                let meant_ms = burst.more * (now_ns - burst.from_ns) as f64 / 1e6;
                self.rate = self.bounded(believed * (BELOW - meant_ms / DRAINED_MS).max(0.5));
            }
            (Some(level_ns), Some(less_ns)) if now_ns >= burst.judged_ns => {
                return Some(self.end_burst(seen, &burst, level_ns, less_ns));
            }
            _ => return None,
        }
        self.phase = Phase::Burst(burst);
        Some(Why::Probing)
    }

    fn end_burst(&mut self, seen: &Seen, burst: &Burst, level_ns: u64, less_ns: u64) -> Why {
        if !burst.has_demand {
            self.hold(seen.now_ns);
            return Why::NoDemand;
        }
        let before = self.believed();
        let Some((waited_ms, clients)) = self.addresses.waited(level_ns, less_ns) else {
            // None of the few packets that tell was in the moment: a longer look hears more.
            self.probe(seen, AFTER_BURST, before);
            return Why::Probing;
        };
        let waited_ms = (waited_ms - burst.before_ms).max(0.0);
        let is_empty = waited_ms < EMPTY * seen.threshold_ms;
        if clients >= 2 && self.hold.have_others_answered() && is_empty {
            self.let_go();
            return Why::AnotherClient;
        }
        // In the middle of what was sent at the believed rate.
        let lasted_ms = (level_ns - burst.from_ns) as f64 / 1e6;
        let took_ms = lasted_ms + (less_ns - level_ns) as f64 / 2e6;
        let found = (took_ms + burst.more * lasted_ms) / (took_ms + waited_ms);
        if is_empty {
            let most = self.credit.most(seen.now_ns).unwrap_or(f64::INFINITY);
            let carries = before * found.clamp(1.0, 1.0 + CHANGE_MAX);
            return self.climb(seen, AFTER_BURST, before, carries.min(most.max(before)));
        }
        let change = (DAMPED * (found - 1.0)).clamp(-CHANGE_MAX, CHANGE_MAX);
        let carries = self.bounded(before * (1.0 + change));
        self.found_by_probe(carries, before);
        self.capacity = Some(carries);
        self.hold(seen.now_ns);
        Why::NoMore
    }

    /// What the link is believed to carry.
    fn believed(&self) -> f64 {
        self.capacity.unwrap_or(self.rate)
    }
}
