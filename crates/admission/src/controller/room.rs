//! The highest limit that leaves room for the targets (thesis 10.3.5; 10.4.2 for percentiles).
//!
//! Times inside grow in proportion to the jobs inside, so what a class takes at one limit says at
//! which one it would take no more than its target. Where even the fewest take longer no limit
//! keeps the target: it is given up for an hour, because throughput that is lost for it buys
//! nothing. Else one target that cannot be met would be paid for by all.

use super::ControllerLimits;
use crate::Need;

/// Of a target, what the time inside may take: the rest is for waiting.
const INSIDE_SHARE: f64 = 0.9;
/// A highest limit is raised only by this factor: else it would follow every chance.
const RAISED_BY: f64 = 1.2;
/// Where two limits take turns what a class takes at one of them is mostly believed, so that only
/// what is more than this times too long counts.
const BY_TURNS: f64 = 1.25;
/// So many times in a row the fewest have to be too many before a target is given up: few jobs say
/// little.
const TOO_LONG_TIMES: u32 = 3;
/// For so long it is, ns: the backend may be another one then.
const GIVEN_UP_NS: u64 = 3_600_000_000_000;

/// What targets leave.
#[derive(Debug)]
pub struct Room {
    ceiling: usize,
    given_up: Vec<GivenUp>,
    /// So many times in a row the fewest were too many.
    too_long: u32,
}

#[derive(Debug)]
struct GivenUp {
    class: u8,
    target_ns: u64,
    left_ns: u64,
}

impl GivenUp {
    fn is_for(&self, need: &Need) -> bool {
        (self.class, self.target_ns) == (need.class, need.target_ns)
    }
}

/// How the limit in force has been so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// By turns with another one.
    ByTurns,
    /// Alone.
    Alone,
    /// For long, and it is the one that was found.
    Long,
}

/// The class that takes the longest inside, of what its target allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Longest {
    /// Its number.
    pub class: u8,
    target_ns: u64,
    /// How many times its target it is inside.
    pub factor: f64,
}

/// What a look says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Asked {
    /// Nothing is known yet.
    Unknown,
    /// No class asks for room, or not any more.
    Nothing,
    /// This one asks for the most.
    Most(Longest),
    /// The fewest are too many for it, so it is given up from now on.
    TooMuch(Longest),
}

impl Room {
    /// Room for `max`.
    pub fn new(max: usize) -> Self {
        Self {
            ceiling: max,
            given_up: Vec::new(),
            too_long: 0,
        }
    }

    /// The highest limit.
    pub fn ceiling(&self) -> usize {
        self.ceiling
    }

    /// Time passes.
    pub fn pass(&mut self, duration_ns: u64) {
        self.given_up.retain_mut(|one| {
            one.left_ns = one.left_ns.saturating_sub(duration_ns);
            one.left_ns > 0
        });
    }

    /// What classes need at `limit`.
    pub fn look(
        &mut self,
        limit: usize,
        force: Force,
        needs: &[Need],
        limits: &ControllerLimits,
    ) -> Asked {
        // A target that is met again is no longer given up.
        self.given_up.retain(|one| {
            let mut own = needs.iter().filter(|need| one.is_for(need));
            own.all(|need| factor(need).is_none_or(|factor| factor > 1.0))
        });
        let Some(most) = self.most(needs) else {
            return self.without(needs, limits.max);
        };
        let is_fewest = force == Force::Long && limit <= limits.min;
        let is_too_long = is_fewest && most.factor > 1.0;
        self.too_long = if is_too_long { self.too_long + 1 } else { 0 };
        if self.too_long < TOO_LONG_TIMES {
            self.set(limit, force, most.factor, limits);
            return Asked::Most(most);
        }
        self.too_long = 0;
        self.given_up.push(GivenUp {
            class: most.class,
            target_ns: most.target_ns,
            left_ns: GIVEN_UP_NS,
        });
        // What the others leave is seen where there is more to see.
        self.ceiling = limits.max;
        Asked::TooMuch(most)
    }

    /// No class is known to need anything: because nothing is known, or because none asks.
    fn without(&mut self, needs: &[Need], max: usize) -> Asked {
        if needs.iter().any(|need| !self.is_given_up(need)) {
            return Asked::Unknown;
        }
        self.ceiling = max;
        Asked::Nothing
    }

    fn is_given_up(&self, need: &Need) -> bool {
        self.given_up.iter().any(|one| one.is_for(need))
    }

    fn most(&self, needs: &[Need]) -> Option<Longest> {
        let asked = needs.iter().filter(|need| !self.is_given_up(need));
        let known = asked.filter_map(|need| {
            Some(Longest {
                class: need.class,
                target_ns: need.target_ns,
                factor: factor(need)?,
            })
        });
        known.max_by(|one, other| one.factor.total_cmp(&other.factor))
    }

    fn set(&mut self, limit: usize, force: Force, factor: f64, limits: &ControllerLimits) {
        let room = INSIDE_SHARE * limit as f64 / factor.max(f64::MIN_POSITIVE);
        // A number that is too large becomes the largest there is.
        let wanted = (room as usize).clamp(limits.min, limits.max);
        let is_alone = force != Force::ByTurns;
        let is_too_long = factor > if is_alone { 1.0 } else { BY_TURNS };
        let is_too_low = is_alone && wanted as f64 >= RAISED_BY * self.ceiling as f64;
        if (is_too_long && wanted < self.ceiling) || is_too_low {
            self.ceiling = wanted;
        }
    }
}

/// How many times its target a class is inside.
fn factor(need: &Need) -> Option<f64> {
    let inside_ns = need.inside_ns? as f64;
    Some(inside_ns / need.target_ns.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_given_up_holds_down_nobody_of_whom_nothing_is_known() {
        let limits = ControllerLimits {
            min: 1,
            max: 32,
            start: 1,
            throughput_loss: 0.05,
        };
        let need = |class, inside_ns| Need {
            class,
            inside_ns,
            target_ns: 1_000_000,
        };
        let needs = [need(0, Some(2_000_000)), need(1, None)];
        let mut room = Room::new(limits.max);
        let mut look = || {
            let asked = room.look(1, Force::Long, &needs, &limits);
            (matches!(asked, Asked::TooMuch(_)), room.ceiling())
        };
        let looks = [look(), look(), look(), look()];
        assert_eq!(looks, [(false, 1), (false, 1), (true, 32), (false, 32)]);
    }
}
