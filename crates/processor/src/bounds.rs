//! Down to which level a worker falls with the processor time it has used, learned from what
//! requests use.

use crate::law::{Law, STEPS, end_of};

/// How many levels there are; 0 is the top.
pub const LEVEL_COUNT: usize = 3;
/// The shares of the requests, least and most, that are over where the second level begins, and the
/// third.
const SHARES: [(f64, f64); LEVEL_COUNT - 1] = [(0.4, 0.8), (0.9, 0.98)];
/// Before any request was seen.
const AT_FIRST_NS: [u64; LEVEL_COUNT - 1] = [6_000_000, 60_000_000];
/// Where requests are too much alike, none falls.
const NEVER_NS: [u64; LEVEL_COUNT - 1] = [u64::MAX - 1, u64::MAX];
/// A step down costs a look and a call, which shorter requests are not worth.
const FIRST_MIN_NS: u64 = 500_000;
/// What may be used down to the end of a level, at least, as a multiple of the one above.
const FACTOR_MIN: u64 = 2;
/// The least squared coefficient of variation of what requests use: those that are alike would only
/// get in each other's way.
const VARIATION_MIN: f64 = 0.3;
/// After so many requests the bounds are worked out anew; about so many are remembered.
const BETWEEN: u32 = 25;
const REMEMBERED: u64 = 4000;

/// The bounds, and what they are learned from.
#[derive(Debug, Clone)]
pub struct Bounds {
    bounds_ns: [u64; LEVEL_COUNT - 1],
    is_fixed: bool,
    law: Law,
    since: u32,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            bounds_ns: AT_FIRST_NS,
            is_fixed: false,
            law: Law::default(),
            since: 0,
        }
    }
}

impl Bounds {
    /// These, whatever requests use; ascending.
    pub fn fixed(bounds_ns: [u64; LEVEL_COUNT - 1]) -> Bounds {
        assert!(bounds_ns.is_sorted(), "bounds ascend");
        Bounds {
            bounds_ns,
            is_fixed: true,
            ..Bounds::default()
        }
    }

    /// What a request may use down to the end of each level but the last, ns.
    pub fn bounds_ns(&self) -> [u64; LEVEL_COUNT - 1] {
        self.bounds_ns
    }

    /// The same; none where requests are so much alike that all stay on the first level.
    pub fn ends_ns(&self) -> Option<[u64; LEVEL_COUNT - 1]> {
        (self.bounds_ns != NEVER_NS).then_some(self.bounds_ns)
    }

    /// The level of a request that has used so much.
    pub fn level(&self, used_ns: u64) -> u8 {
        self.bounds_ns.partition_point(|bound| *bound <= used_ns) as u8
    }

    /// What it may still use before it falls to the next one, ns; none on the last.
    pub fn left_ns(&self, used_ns: u64) -> Option<u64> {
        let next = self.bounds_ns.iter().find(|bound| **bound > used_ns);
        next.map(|bound| bound - used_ns)
    }

    /// A request is over; gives whether the bounds were worked out anew.
    pub fn note(&mut self, used_ns: u64) -> bool {
        self.law.note(used_ns);
        self.since += 1;
        let learns = self.since >= BETWEEN;
        if learns {
            self.since = 0;
            self.learn();
        }
        if self.law.total() >= REMEMBERED {
            self.law.halve();
        }
        learns
    }

    /// So much or less is used by this share of the requests, ns, rounded up to a step of a quarter
    /// octave; none before the first.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        self.law.quantile_ns(share)
    }

    /// What was learned is forgotten.
    pub(crate) fn forget(&mut self) {
        *self = match self.is_fixed {
            true => Bounds::fixed(self.bounds_ns),
            false => Bounds::default(),
        };
    }

    /// What all requests use.
    pub(crate) fn law(&self) -> &Law {
        &self.law
    }

    fn learn(&mut self) {
        if self.is_fixed {
            return;
        }
        if self.law.variation() < VARIATION_MIN {
            self.bounds_ns = NEVER_NS;
            return;
        }
        let mut least_ns = FIRST_MIN_NS;
        for (bound_ns, shares) in self.bounds_ns.iter_mut().zip(SHARES) {
            *bound_ns = valley(&self.law, shares).max(least_ns);
            least_ns = FACTOR_MIN * *bound_ns;
        }
        assert!(self.bounds_ns.is_sorted(), "bounds ascend");
    }
}

/// Where the fewest requests end, between these shares of them, ns: those that are alike are to end
/// on one level. The first step of two that have the fewest ends there.
fn valley(law: &Law, (least, most): (f64, f64)) -> u64 {
    let counts = law.counts();
    let mut sum = 0;
    let mut best: Option<(u32, usize)> = None;
    for step in 0..STEPS - 1 {
        sum += u64::from(counts[step]);
        let share = sum as f64 / law.total().max(1) as f64;
        let here = counts[step] + counts[step + 1];
        // Where one step goes from too few to too many, there is no choice.
        let is_first = best.is_none() && share >= least;
        let is_better = share >= least && share <= most && best.is_some_and(|(few, _)| here < few);
        if is_first || is_better {
            best = Some((here, step));
        }
    }
    end_of(best.map_or(STEPS - 1, |(_, step)| step))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bounds_lie_between_what_requests_use() {
        let mut bounds = Bounds::default();
        assert_eq!(bounds.bounds_ns(), AT_FIRST_NS);
        // Seven of ten use 2 ms, two 20 ms, one 200 ms.
        let mix = [2, 2, 20, 2, 2, 200, 2, 20, 2, 2];
        for used_ms in mix.into_iter().cycle().take(500) {
            bounds.note(used_ms * 1_000_000);
        }
        let levels = [1, 2, 20, 199, 300].map(|used_ms: u64| bounds.level(used_ms * 1_000_000));
        assert_eq!(levels, [0, 0, 1, 2, 2]);
        let left_ns = bounds.left_ns(2_000_000).unwrap();
        assert!((200_000..10_000_000).contains(&left_ns), "{left_ns}");
        assert_eq!(bounds.left_ns(1_000_000_000), None);
    }

    #[test]
    fn half_short_and_half_long_are_told_apart() {
        let mut bounds = Bounds::default();
        for used_ms in [6, 30].into_iter().cycle().take(100) {
            bounds.note(used_ms * 1_000_000 + 300_000);
        }
        let levels = [6, 7, 29].map(|used_ms: u64| bounds.level(used_ms * 1_000_000));
        assert_eq!(levels, [0, 0, 1]);
    }

    #[test]
    fn requests_that_are_alike_stay_on_top() {
        let mut bounds = Bounds::default();
        for at in 0..100 {
            bounds.note(10_000_000 + at % 10 * 300_000);
        }
        assert_eq!(bounds.level(1_000_000_000_000), 0);
        assert_eq!(bounds.ends_ns(), None);
        // Others come.
        for used_ms in [2, 50].repeat(300) {
            bounds.note(used_ms * 1_000_000);
        }
        assert_eq!(bounds.level(20_000_000), 1);
        assert_eq!(bounds.ends_ns(), Some(bounds.bounds_ns()));
    }

    #[test]
    fn what_was_is_forgotten() {
        let mut bounds = Bounds::default();
        for used_ms in [1].repeat(5000).into_iter().chain([50].repeat(20_000)) {
            bounds.note(used_ms * 1_000_000);
        }
        assert!(bounds.quantile_ns(0.05).unwrap() > 50_000_000);
    }

    proptest! {
        #[test]
        fn bounds_ascend_whatever_comes(used in proptest::collection::vec(any::<u64>(), 0..300)) {
            let mut bounds = Bounds::default();
            for used_ns in used {
                bounds.note(used_ns);
                let [first, second] = bounds.bounds_ns();
                prop_assert!(FIRST_MIN_NS <= first && first < second);
            }
        }
    }
}
