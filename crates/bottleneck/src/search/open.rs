//! Without a limit: is the link full, and is its queue ours?

use super::{BELOW, MS, Phase, SECOND, STEP_NS, Search, Seen};
use crate::addresses::Asked;
use crate::decision::Why;
use std::collections::VecDeque;

/// Drains that did not help before the queue is left to those who fill it.
pub const IN_VAIN_MAX: u32 = 3;

/// So many steps light clients say that they wait; all others, of whom each may have a queue of its
/// own, for longer, and only while no light one is heard: then a trial
/// decides.
const FULL_STEPS: u32 = 4;
const FULL_STEPS_OF_HEAVY: u32 = 25;
const LIGHTS_GONE_NS: u64 = 3 * SECOND;
/// A trial: so much of what arrives, for so long; a light client's least delay then falls by more
/// than so many ms.
const TRIAL: f64 = 0.8;
const TRIAL_NS: u64 = 700 * MS;
const HEARD_NS: u64 = 300 * MS;
const HEARD_LATE_NS: u64 = 900 * MS;
const FALLEN_MS: f64 = 3.0;
/// What makes a trial worth it: so much is sent again, and what arrives is level within this share
/// for so many steps.
const SUSPECTED_RESENT: f64 = 0.005;
const LEVEL: f64 = 0.9;
const LEVEL_STEPS: usize = 6;
const SUSPECTED_STEPS: u32 = 3;
/// Of so few clients none may know how long a packet takes without a queue: a trial is worth it
/// also where nothing is lost, after so many steps in which what arrives is level.
const FEW: usize = 2;
const LEVEL_LONG_STEPS: u32 = 25;
/// For how long a queue that is not ours is left alone, first and at most.
const ALONE_NS: u64 = 5 * SECOND;
const TRIAL_AGAIN_NS: u64 = 10 * SECOND;
const ALONE_MAX_NS: u64 = 300 * SECOND;
/// More arrives than before by so much: what took it away has gone.
const GONE: f64 = 1.25;

#[derive(Debug)]
pub struct Open {
    suspected_steps: u32,
    level_steps: u32,
    alone_until_ns: u64,
    alone_since_ns: u64,
    alone_ns: u64,
    /// What arrived when it was left alone.
    arrived_alone: Option<f64>,
    trial_from_ns: u64,
    trial_again_ns: u64,
    /// The last trial heard one of several clients.
    is_again: bool,
}

impl Default for Open {
    fn default() -> Open {
        Open {
            suspected_steps: 0,
            level_steps: 0,
            alone_until_ns: 0,
            alone_since_ns: 0,
            alone_ns: ALONE_NS,
            arrived_alone: None,
            trial_from_ns: 0,
            trial_again_ns: TRIAL_AGAIN_NS,
            is_again: false,
        }
    }
}

/// What arrived at the last steps.
#[derive(Debug, Default)]
pub struct Level(VecDeque<f64>);

impl Level {
    /// Whether it is as much as it was, and so the most.
    pub fn note(&mut self, arrived: f64) -> bool {
        if self.0.len() == LEVEL_STEPS {
            self.0.pop_front();
        }
        self.0.push_back(arrived);
        let most = self.0.iter().copied().fold(0.0, f64::max);
        self.0.len() == LEVEL_STEPS && self.0.iter().all(|arrived| *arrived > LEVEL * most)
    }
}

impl Open {
    /// Others fill the link: look again later, and ever later.
    pub fn leave_alone(&mut self, now_ns: u64) {
        self.alone_since_ns = now_ns;
        self.alone_until_ns = now_ns + self.alone_ns;
        self.alone_ns = (2 * self.alone_ns).min(ALONE_MAX_NS);
        self.arrived_alone = None;
    }

    /// A limit holds: what failed before says nothing.
    pub fn forget_failures(&mut self) {
        self.alone_ns = ALONE_NS;
        self.trial_again_ns = TRIAL_AGAIN_NS;
        self.is_again = false;
    }

    /// Whether what took the link away seems to have gone.
    fn look_for_room(&mut self, now_ns: u64, arrived: f64) {
        if now_ns >= self.alone_until_ns || now_ns < self.alone_since_ns + 2 * SECOND {
            return;
        }
        let before = *self.arrived_alone.get_or_insert(arrived);
        if arrived > GONE * before {
            self.alone_until_ns = now_ns;
            self.alone_ns = ALONE_NS;
        }
    }
}

impl Search {
    pub(super) fn step_open(&mut self, seen: &Seen) -> Option<Why> {
        let now_ns = seen.now_ns;
        let arrived = self.rates.delivered(5 * STEP_NS);
        self.open.look_for_room(now_ns, arrived);
        let is_alone = now_ns < self.open.alone_until_ns;
        let is_worth_it = arrived > self.limits.least_bits_per_sec as f64;
        if is_alone || !is_worth_it {
            (self.full_steps, self.full_steps_by_lights) = (0, 0);
            return None;
        }
        self.count_full(seen);
        let by_lights = self.full_steps_by_lights >= FULL_STEPS;
        let by_all = self.full_steps >= FULL_STEPS_OF_HEAVY
            && !self.addresses.have_lights_voted(now_ns, LIGHTS_GONE_NS);
        let is_of_one = self.addresses.heard(now_ns) == 1;
        // A short wait elsewhere while little is sent says nothing of the link.
        let is_lost = self.rates.resent(SECOND) > SUSPECTED_RESENT;
        let is_used = seen.is_level || is_lost;
        if seen.is_full && is_used && (by_lights || (by_all && is_of_one)) {
            self.cut(seen, arrived);
            self.hold.found(is_of_one);
            return Some(Why::Full);
        }
        // BBR looks for more in peaks.
        self.open.level_steps = match seen.is_level {
            true => self.open.level_steps + 1,
            false => self.open.level_steps.saturating_sub(3),
        };
        let is_level_long = self.open.level_steps >= LEVEL_LONG_STEPS;
        let is_of_few = is_level_long && (1..=FEW).contains(&self.addresses.heard(now_ns));
        let is_lossy = seen.is_level && is_lost && seen.waits.clients > 0;
        let is_suspected = by_all || is_lossy || is_of_few;
        let is_suspected = is_suspected && now_ns >= self.open.trial_from_ns;
        self.open.suspected_steps = if is_suspected {
            self.open.suspected_steps + 1
        } else {
            0
        };
        if self.open.suspected_steps < SUSPECTED_STEPS || self.full_steps_by_lights > 0 {
            return None;
        }
        (self.open.suspected_steps, self.open.level_steps) = (0, 0);
        let round_trip_ns = (self.addresses.typical_ms() as u64 * MS).min(2 * SECOND);
        let arrived = self.rates.delivered(8 * STEP_NS);
        self.capacity = Some(self.bounded(arrived));
        self.rate = self.bounded(TRIAL * arrived);
        self.phase = Phase::Trial {
            // What is heard at its end must have left in it.
            until_ns: now_ns + TRIAL_NS + round_trip_ns,
            heard_from_ns: now_ns + TRIAL_NS + round_trip_ns - HEARD_NS,
            asked: self.addresses.asked(now_ns),
        };
        Some(Why::Suspected)
    }

    fn count_full(&mut self, seen: &Seen) {
        let has_lights = seen.waits.lights >= 2;
        if seen.is_full {
            self.full_steps += 1;
            self.full_steps_by_lights += u32::from(has_lights);
            return;
        }
        self.full_steps = if has_lights {
            0
        } else {
            self.full_steps.saturating_sub(1)
        };
        self.full_steps_by_lights = self.full_steps_by_lights.saturating_sub(1);
        // Little is sent: what clients wait for is no queue of ours.
        if seen.waits.clients > 0 && seen.waits.median_ms < seen.threshold_ms {
            self.note_noise(0.05, seen.waits.common_ms);
        }
    }

    /// The end of a trial; none: it goes on.
    pub(super) fn end_trial(&mut self, seen: &Seen) -> Option<Why> {
        let trial = std::mem::replace(&mut self.phase, Phase::Open);
        let Phase::Trial {
            until_ns,
            heard_from_ns,
            asked,
        } = trial
        else {
            return None;
        };
        let heard = self.addresses.fallen(&asked, heard_from_ns, 0.0).0;
        // Where packets are ordered, a client may have had none for a moment.
        let is_early = seen.now_ns < heard_from_ns + HEARD_LATE_NS;
        if heard < 2.min(asked.count()) && is_early {
            self.phase = Phase::Trial {
                until_ns,
                heard_from_ns,
                asked,
            };
            return None;
        }
        Some(self.judge_trial(seen, heard_from_ns, &asked))
    }

    fn judge_trial(&mut self, seen: &Seen, heard_from_ns: u64, asked: &Asked) -> Why {
        let now_ns = seen.now_ns;
        // Jitter alone makes some of them seem to.
        let by_ms = FALLEN_MS.max(self.noise_ms.0 + self.noise_ms.1);
        let (heard, fallen) = self.addresses.fallen(asked, heard_from_ns, by_ms);
        // Before their own links most of those who are served at all wait as long as before.
        let is_ours = match asked.are_lights {
            true => 2 * fallen >= heard,
            false => 3 * fallen >= 2 * heard,
        };
        // One alone may wait before its own link.
        let is_of_one = asked.count() == 1 && self.addresses.heard(now_ns) == 1;
        if (heard >= 2 || (is_of_one && heard == 1)) && is_ours {
            self.rate = self.bounded(BELOW * self.rate / TRIAL);
            self.hold.found(is_of_one);
            self.hold(now_ns);
            return Why::Ours { fallen, heard };
        }
        self.let_go();
        if heard == 0 {
            return Why::Unheard;
        }
        self.open.trial_from_ns = now_ns + self.open.trial_again_ns;
        // Once more as soon as the first time, and soon: each trial costs a part of what is sent.
        if heard == 1 && asked.count() > 1 && !std::mem::replace(&mut self.open.is_again, true) {
            self.open.trial_from_ns = now_ns + SECOND;
            return Why::Unheard;
        }
        self.open.trial_again_ns = (2 * self.open.trial_again_ns).min(ALONE_MAX_NS);
        Why::NotOurs { fallen, heard }
    }
}
