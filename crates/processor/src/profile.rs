//! On which level a request of a kind is to be, by what it has used.
//!
//! Gittins' index of a law says what a request that has used so much is worth: the least, over all
//! that it may be given, of what it would use of that over the chance that it ends by then. The
//! order by it has the least mean on one processor where laws are known (Gittins 1979); it is the
//! shortest remaining time where a law is a single value, and least attained service where shares
//! of a law that end soon fall with what is used. As it is a time, levels end at the same times by
//! it as they do by what is used.

use crate::bounds::LEVEL_COUNT;
use crate::law::{Law, STEPS, end_of};

/// Where there is no bound.
const NEVER: f64 = f64::INFINITY;

/// A law: where steps end, ns, ascending, each with its share.
pub type Atoms = Vec<(f64, f64)>;

/// A law that has this share in each step.
pub fn atoms(share: impl Fn(usize) -> f64) -> Atoms {
    let all = (0..STEPS).map(|step| (end_of(step) as f64, share(step)));
    all.filter(|(_, share)| *share > 0.0).collect()
}

/// Where levels end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cutoffs {
    /// By what is used, ns, where nothing else is known.
    bounds_ns: [u64; LEVEL_COUNT - 1],
    /// The highest index of each but the last.
    highest: [f64; LEVEL_COUNT - 1],
}

impl Cutoffs {
    /// Of levels that end at these bounds, where all requests have this law. One that is like all
    /// of them begins on top.
    pub fn new(bounds_ns: [u64; LEVEL_COUNT - 1], of_all: &Law) -> Cutoffs {
        let atoms = atoms(|step| of_all.share(step));
        let longest = atoms.last().map_or(0.0, |(end, _)| *end);
        Cutoffs::up_to(longest, bounds_ns, &atoms)
    }

    /// The same for requests that may be longer than all before them.
    pub fn without_end(bounds_ns: [u64; LEVEL_COUNT - 1], of_all: &Law) -> Cutoffs {
        Cutoffs::up_to(NEVER, bounds_ns, &atoms(|step| of_all.share(step)))
    }

    fn up_to(longest: f64, bounds_ns: [u64; LEVEL_COUNT - 1], of_all: &Atoms) -> Cutoffs {
        let mut least = match of_all.is_empty() {
            true => 0.0,
            false => Steps::of(of_all, 0).index(0.0),
        };
        let highest = bounds_ns.map(|bound_ns| {
            let bound = bound_ns as f64;
            if bound >= longest {
                return NEVER;
            }
            let highest = bound.max(least);
            least = 2.0 * highest;
            highest
        });
        Cutoffs { bounds_ns, highest }
    }

    /// Whether these others are nearly the same.
    pub fn is_near(&self, others: &Cutoffs) -> bool {
        let mut pairs = self.highest.iter().zip(others.highest);
        pairs.all(|(one, other)| *one == other || (*one / other).ln().abs() < 0.2)
    }

    fn level(&self, index: f64) -> u8 {
        self.highest.partition_point(|highest| *highest < index) as u8
    }
}

/// What one that has passed some steps may still end at.
struct Steps {
    /// For each later step: what is used up to its end by all of them together, and the share that
    /// has ended by then.
    sums: Vec<(f64, f64)>,
    /// The share of all of them.
    whole: f64,
}

impl Steps {
    fn of(atoms: &Atoms, passed: usize) -> Steps {
        let larger = &atoms[passed.min(atoms.len())..];
        let whole: f64 = larger.iter().map(|(_, share)| share).sum();
        let (mut ended, mut used_by_ended) = (0.0, 0.0);
        let sums = larger.iter().map(|(end, share)| {
            ended += share;
            used_by_ended += share * end;
            (used_by_ended + (whole - ended).max(0.0) * end, ended)
        });
        Steps {
            sums: sums.collect(),
            whole,
        }
    }

    /// The index of one that has used so much, which lies in the first of them.
    fn index(&self, used: f64) -> f64 {
        let all = self.sums.iter();
        let indices = all.map(|(used_in_all, ended)| (used_in_all - used * self.whole) / ended);
        indices.fold(NEVER, f64::min)
    }

    /// From which used time on the index is so low.
    fn from(&self, index: f64) -> f64 {
        if index == NEVER {
            return 0.0;
        }
        let all = self.sums.iter();
        let times = all.map(|(used_in_all, ended)| (used_in_all - index * ended) / self.whole);
        times.fold(NEVER, f64::min)
    }
}

/// Levels by what is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// From which used time on, ns, ascending; the first from 0 on.
    levels: Vec<(u64, u8)>,
}

impl Profile {
    /// By what is used alone.
    pub fn of_bounds(bounds_ns: [u64; LEVEL_COUNT - 1]) -> Profile {
        let later = bounds_ns.into_iter().zip(1..);
        Profile {
            levels: std::iter::once((0, 0)).chain(later).collect(),
        }
    }

    /// Of requests that have this law.
    pub fn new(atoms: &Atoms, cutoffs: Cutoffs) -> Profile {
        let mut profile = Profile { levels: Vec::new() };
        let mut begin = 0.0;
        for (passed, (end, _)) in atoms.iter().enumerate() {
            let steps = Steps::of(atoms, passed);
            profile.push(begin, cutoffs.level(steps.index(begin)));
            // It only goes up until the step ends.
            for (level, highest) in cutoffs.highest.iter().enumerate().rev() {
                let from = steps.from(*highest);
                if begin < from && from < *end {
                    profile.push(from.ceil(), level as u8);
                }
            }
            begin = *end;
        }
        // It has used more than any before it.
        let bounds_ns = cutoffs.bounds_ns.iter();
        let passed = bounds_ns.clone().filter(|bound| **bound as f64 <= begin);
        let passed = passed.count() as u8;
        profile.push(begin, passed.max(cutoffs.level(f64::MAX)));
        for (bound_ns, level) in bounds_ns.zip(1..).skip(passed.into()) {
            if level > profile.level(u64::MAX) {
                profile.push(*bound_ns as f64, level);
            }
        }
        profile
    }

    fn push(&mut self, from: f64, level: u8) {
        if self.levels.last().is_none_or(|(_, last)| *last != level) {
            self.levels.push((from as u64, level));
        }
    }

    /// The level of one that has used so much.
    pub fn level(&self, used_ns: u64) -> u8 {
        let begun = self.levels.partition_point(|(from, _)| *from <= used_ns);
        begun.checked_sub(1).map_or(0, |at| self.levels[at].1)
    }

    /// What it may still use before its level is another one, ns; none where that stays.
    pub fn left_ns(&self, used_ns: u64) -> Option<u64> {
        let begun = self.levels.partition_point(|(from, _)| *from <= used_ns);
        self.levels.get(begun).map(|(from, _)| from - used_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    /// The law of requests that use so many ms.
    fn law(used_ms: &[u64]) -> Law {
        let mut law = Law::default();
        used_ms.iter().for_each(|used_ms| law.note(used_ms * MS));
        law
    }

    fn profile(law: &Law, cutoffs: Cutoffs) -> Profile {
        Profile::new(&atoms(|step| law.share(step)), cutoffs)
    }

    fn all() -> Law {
        law(&[2, 2, 20, 2, 2, 200, 2, 20, 2, 2])
    }

    /// Levels after so many ms.
    fn way(profile: &Profile, used_ms: &[u64]) -> String {
        let level = |used_ms: &u64| profile.level(used_ms * MS).to_string();
        used_ms.iter().map(level).collect()
    }

    #[test]
    fn a_long_one_begins_below_and_comes_up_at_its_end() {
        let cutoffs = Cutoffs::new([4 * MS, 40 * MS], &all());
        // The step of 2 ms ends at 2.0, that of 20 ms at 23.2, that of 200 ms at 220.4.
        let used_ms = [0, 1, 3, 18, 20, 30, 120, 185, 217, 300];
        let of = |used_ms_of_kind: &[u64]| way(&profile(&law(used_ms_of_kind), cutoffs), &used_ms);
        assert_eq!(of(&[2]), "0022222222");
        assert_eq!(of(&[20]), "1111022222");
        assert_eq!(of(&[200]), "2222222102");
        // The law of all is as good as no law.
        assert_eq!(way(&profile(&all(), cutoffs), &used_ms), "0011122102");
        let unknown = Profile::of_bounds([4 * MS, 40 * MS]);
        assert_eq!(way(&unknown, &used_ms), "0001112222");
    }

    #[test]
    fn nothing_falls_where_no_bound_is() {
        let cutoffs = Cutoffs::new([u64::MAX - 1, u64::MAX], &all());
        let of_long = profile(&law(&[200]), cutoffs);
        assert_eq!((of_long.level(0), of_long.level(300 * MS)), (0, 0));
        assert!(of_long.left_ns(0) > Some(u64::MAX / 2));
        // One that is longer than all before it falls by what it uses.
        let cutoffs = Cutoffs::new([300 * MS, 500 * MS], &all());
        let of_long = profile(&law(&[200]), cutoffs);
        assert_eq!(way(&of_long, &[0, 200, 299, 300, 499, 500]), "000112");
        let cutoffs = Cutoffs::new([10 * MS, 500 * MS], &all());
        let of_long = profile(&law(&[200]), cutoffs);
        assert_eq!(way(&of_long, &[0, 200, 212, 299, 500]), "11012");
    }

    /// By its definition: the least of all steps at which one may stop.
    fn index(atoms: &Atoms, used: f64) -> f64 {
        let larger: Vec<_> = atoms.iter().filter(|(end, _)| *end > used).collect();
        let index_to = |stop: f64| {
            let used: f64 = larger
                .iter()
                .map(|(end, share)| share * (end.min(stop) - used))
                .sum();
            let ended: f64 = larger
                .iter()
                .filter(|(end, _)| *end <= stop)
                .map(|one| one.1)
                .sum();
            used / ended
        };
        larger
            .iter()
            .map(|(end, _)| index_to(*end))
            .fold(f64::MAX, f64::min)
    }

    proptest! {
        #[test]
        fn levels_are_those_of_the_index(
            used_us in prop::collection::vec(100_u64..2_000_000, 1..40),
            asked_us in prop::collection::vec(0_u64..3_000_000, 1..40),
            bounds_us in (100_u64..50_000, 50_000_u64..500_000),
        ) {
            let mut all = Law::default();
            used_us.iter().for_each(|used_us| all.note(1000 * used_us));
            let bounds_ns = [1000 * bounds_us.0, 1000 * bounds_us.1];
            let cutoffs = Cutoffs::new(bounds_ns, &all);
            let atoms = atoms(|step| all.share(step));
            let profile = Profile::new(&atoms, cutoffs);
            let mut used_ns = 0;
            while let Some(left_ns) = profile.left_ns(used_ns) {
                prop_assert!(profile.level(used_ns + left_ns) != profile.level(used_ns));
                prop_assert_eq!(profile.level(used_ns + left_ns - 1), profile.level(used_ns));
                used_ns += left_ns;
            }
            for asked_us in asked_us {
                let index = index(&atoms, 1000.0 * asked_us as f64);
                let mut wanted = [index * 0.999, index * 1.001].map(|index| cutoffs.level(index));
                if index == f64::MAX {
                    // Longer than all: by what is used as well.
                    let passed = bounds_ns.partition_point(|bound| *bound <= 1000 * asked_us);
                    wanted = [cutoffs.level(index).max(passed as u8); 2];
                }
                let level = profile.level(1000 * asked_us);
                prop_assert!(wanted.contains(&level), "{} {:?} {}", asked_us, wanted, level);
            }
        }
    }
}
