//! With a limit: has the link become narrower, and is there more?

use super::{DEMAND, EMPTY, MS, Phase, SECOND, STEP_NS, Search, Seen, USED};
use crate::decision::Why;

/// How far each step of a probe goes beyond what the link was last seen to carry; a burst is
/// instead of the first.
const STEPS: [f64; 5] = [1.025, 1.07, 1.15, 1.3, 1.5];
pub const AFTER_BURST: usize = 1;
/// How long a step takes besides a round trip.
const STEP_LASTS_NS: u64 = 250 * MS;
/// A queue has to grow before it is seen.
const UNJUDGED_NS: u64 = 120 * MS;
/// So many steps light clients say that they wait before the link carries less, and so many the
/// others.
const FULL_STEPS: u32 = 2;
const FULL_STEPS_OF_HEAVY: u32 = 10;
/// Between probes: after a surprise, and at most.
const INTERVAL_NS: u64 = SECOND;
const INTERVAL_MAX_NS: u64 = 5 * SECOND / 2;
/// A probe that finds the same within this share is no surprise.
const SAME: f64 = 0.05;
/// What is believed after a wait that does not grow.
const HARDLY_LESS: f64 = 0.98;
/// What arrives in two steps counts alone below this share of what arrived in five.
const MUCH_LESS: f64 = 0.85;
/// From here on what may be used is all there is.
const ALL: f64 = 0.9;

#[derive(Debug)]
pub struct Hold {
    interval_ns: u64,
    next_probe_ns: u64,
    /// When those who came to one alone are asked again.
    ask_others_ns: u64,
    /// The queue was seen by one client, so that it may be that client's own.
    is_of_one: bool,
    /// A probe has found the same.
    is_confirmed: bool,
}

impl Default for Hold {
    fn default() -> Hold {
        Hold {
            interval_ns: INTERVAL_NS,
            next_probe_ns: 0,
            ask_others_ns: 0,
            is_of_one: false,
            is_confirmed: false,
        }
    }
}

impl Hold {
    /// A limit has been found.
    pub fn found(&mut self, is_of_one: bool) {
        self.is_of_one = is_of_one;
        self.is_confirmed = false;
        self.interval_ns = INTERVAL_NS;
    }

    /// The link carries so much, and was believed to carry `before`: a surprise is looked at again
    /// soon.
    fn note(&mut self, carries: f64, before: f64) {
        let is_same = (carries - before).abs() < SAME * before;
        self.is_confirmed |= is_same;
        self.interval_ns = if is_same {
            (2 * self.interval_ns).min(INTERVAL_MAX_NS)
        } else {
            INTERVAL_NS
        };
    }

    /// Several have said whether they wait; whether it was one alone before.
    pub fn have_others_answered(&mut self) -> bool {
        std::mem::replace(&mut self.is_of_one, false)
    }

    pub fn plan_probe(&mut self, now_ns: u64) {
        self.next_probe_ns = now_ns + self.interval_ns;
    }
}

impl Search {
    pub(super) fn step_hold(&mut self, seen: &Seen, quiet_until_ns: u64) -> Option<Why> {
        self.full_steps = if seen.is_full { self.full_steps + 1 } else { 0 };
        // The others may wait before their own links: they decide later, and not beside light ones.
        let is_light = seen.waits.lights >= 2 || self.hold.is_of_one;
        let have_voted = self.addresses.have_lights_voted(seen.now_ns, 3 * SECOND);
        let enough = match (is_light, have_voted) {
            (true, _) => FULL_STEPS,
            (false, true) => u32::MAX,
            (false, false) => FULL_STEPS_OF_HEAVY,
        };
        let is_used = seen.sent >= USED * self.rate || seen.is_level;
        if self.full_steps >= enough && is_used && seen.now_ns > quiet_until_ns {
            let capacity = self.capacity.unwrap_or(self.rate);
            let (arrived, sent) = (
                self.rates.delivered(5 * STEP_NS),
                self.rates.sent(5 * STEP_NS),
            );
            // All that may be sent is, and as much arrives: a wait that does not grow, of a link
            // that carries hardly less than believed, of others, or of jitter.
            let is_own = sent > DEMAND * self.rate && arrived > (1.0 - seen.own_share()) * sent;
            let most = if is_own {
                HARDLY_LESS * capacity
            } else {
                self.rate
            };
            let (carries, why) = self.carries_less(seen.now_ns, most, is_own, Why::Less);
            self.hold.note(carries, capacity);
            self.cut(seen, carries);
            return Some(why);
        }
        if !seen.is_full && seen.waits.clients > 0 {
            self.note_noise(0.05, seen.waits.common_ms);
            self.addresses.settle(seen.now_ns);
        }
        let is_empty = seen.waits.common_ms < EMPTY * seen.threshold_ms;
        let is_empty = is_empty && seen.waits.clients > 0;
        // Whether another client waits too decides what one alone could not.
        let has_others = self.hold.is_of_one && self.addresses.heard(seen.now_ns) >= 2;
        if has_others && self.are_smoothed && !seen.is_full {
            self.let_go();
            return Some(Why::AnotherClient);
        }
        let is_due = seen.now_ns >= self.hold.next_probe_ns;
        let is_due = is_due || (has_others && seen.now_ns >= self.hold.ask_others_ns);
        if self.demand_steps < 3 || !is_empty || !is_due {
            return None;
        }
        self.hold.ask_others_ns = seen.now_ns + INTERVAL_NS;
        if self.are_smoothed {
            self.probe(seen, 0, self.capacity.unwrap_or(self.rate));
        } else {
            self.burst(seen);
        }
        Some(Why::Probing)
    }

    pub(super) fn step_probe(&mut self, seen: &Seen) -> Option<Why> {
        let Phase::Probe {
            until_ns,
            judged_from_ns,
            step,
            before,
        } = self.phase
        else {
            return None;
        };
        self.full_steps = if seen.is_full { self.full_steps + 1 } else { 0 };
        // What is seen at once was sent before.
        if self.full_steps >= 2 || (self.full_steps == 1 && seen.now_ns >= until_ns) {
            // Over so short a time what arrives is known to a few hundredths only: one step that
            // finds no more says no more.
            // Later ones know by how fast the queue grew.
            let lasted_ns = seen.now_ns + UNJUDGED_NS - judged_from_ns;
            let lasted_ms = lasted_ns as f64 / MS as f64;
            let most = match step {
                0 => self.capacity.unwrap_or(self.rate),
                _ => self.rate * lasted_ms / (lasted_ms + seen.waits.common_ms),
            };
            let (carries, why) = self.carries_less(seen.now_ns, most, false, Why::NoMore);
            self.found_by_probe(carries, before);
            self.cut(seen, carries);
            return Some(why);
        }
        if seen.now_ns < until_ns {
            return None;
        }
        let capacity = self.capacity.unwrap_or(self.rate);
        if seen.sent < DEMAND * self.rate || seen.waits.clients == 0 {
            self.hold(seen.now_ns);
            return Some(Why::NoDemand);
        }
        if seen.waits.common_ms >= EMPTY * seen.threshold_ms {
            // Neither one nor the other: stay where it is, and let it drain.
            self.cut(seen, capacity);
            return Some(Why::NoMore);
        }
        let arrived = self.rates.delivered(3 * STEP_NS);
        let seen_to_carry = self.rate.min(arrived).max(capacity);
        Some(self.climb(seen, step + 1, before, seen_to_carry))
    }

    /// The link carries more than `before`, at least so much: on to the next step.
    pub(super) fn climb(&mut self, seen: &Seen, step: usize, before: f64, carries: f64) -> Why {
        self.capacity = Some(self.bounded(carries));
        self.credit.note_climb(seen.now_ns, before, carries);
        if self.rate >= ALL * self.limits.most_bits_per_sec as f64 {
            self.let_go();
            return Why::NoLimit;
        }
        let most = self.credit.most(seen.now_ns);
        if most.is_some_and(|most| carries >= most) {
            self.hold(seen.now_ns);
            return Why::More;
        }
        self.probe(seen, step, before);
        Why::More
    }

    /// A probe ended in a queue: the link carries so much.
    pub(super) fn found_by_probe(&mut self, carries: f64, before: f64) {
        self.hold.note(carries, before);
        if self.hold.is_confirmed {
            self.open.forget_failures();
        }
    }

    pub(super) fn probe(&mut self, seen: &Seen, step: usize, before: f64) {
        let capacity = self.capacity.unwrap_or(self.rate);
        let factor = STEPS[step.min(STEPS.len() - 1)];
        let most = self.credit.most(seen.now_ns).unwrap_or(f64::INFINITY);
        self.rate = self.bounded((capacity * factor).min(most.max(capacity * STEPS[0])));
        let round_trip_ns = self.round_trip_ns();
        self.phase = Phase::Probe {
            until_ns: seen.now_ns + STEP_LASTS_NS + round_trip_ns,
            judged_from_ns: seen.now_ns + UNJUDGED_NS,
            step,
            before,
        };
        (self.full_steps, self.full_steps_by_lights) = (0, 0);
    }

    /// What the link carries now that clients wait: at most so much, or exactly that.
    fn carries_less(&mut self, now_ns: u64, most: f64, is_exact: bool, why: Why) -> (f64, Why) {
        let carries = match is_exact {
            true => most,
            false => self.arrives_now().min(most),
        };
        let was_saved = self.credit.note_fall(now_ns, carries);
        (carries, if was_saved { Why::SavedUp } else { why })
    }

    /// What arrives; where much less does than a moment ago, that which does now.
    fn arrives_now(&self) -> f64 {
        let arrived = self.rates.delivered(3 * STEP_NS);
        let now = self.rates.delivered(2 * STEP_NS);
        if now < MUCH_LESS * self.rates.delivered(5 * STEP_NS) {
            return arrived.min(now);
        }
        arrived
    }
}
