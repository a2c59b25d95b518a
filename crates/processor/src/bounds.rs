//! Down to which level a worker falls with the processor time it has used, learned from what
//! requests use.

/// How many levels there are; 0 is the top.
pub const LEVEL_COUNT: usize = 3;
/// Shares of the requests that are over before each level below the top begins.
const SHARES: [f64; LEVEL_COUNT - 1] = [0.60, 0.95];
/// Before any request was seen.
const AT_FIRST_NS: [u64; LEVEL_COUNT - 1] = [6_000_000, 60_000_000];
/// A step down costs a look and a call, which shorter requests are not worth.
const FIRST_MIN_NS: u64 = 500_000;
/// What may be used down to the end of a level, at least, as a multiple of the one above.
const FACTOR_MIN: u64 = 2;
/// Bins in an octave, and of all: 1 us to more than a day.
const BINS_OF_OCTAVE: f64 = 4.0;
const BINS: usize = 148;
/// After so many requests the bounds are worked out anew; about so many are remembered.
const BETWEEN: u32 = 50;
const REMEMBERED: u64 = 4000;

/// The bounds, and what they are learned from.
#[derive(Debug, Clone)]
pub struct Bounds {
    bounds_ns: [u64; LEVEL_COUNT - 1],
    is_fixed: bool,
    counts: [u64; BINS],
    total: u64,
    since: u32,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            bounds_ns: AT_FIRST_NS,
            is_fixed: false,
            counts: [0; BINS],
            total: 0,
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

    /// The level of a request that has used so much.
    pub fn level(&self, used_ns: u64) -> u8 {
        self.bounds_ns.partition_point(|bound| *bound <= used_ns) as u8
    }

    /// What it may still use before it falls to the next one, ns; none on the last.
    pub fn left_ns(&self, used_ns: u64) -> Option<u64> {
        let next = self.bounds_ns.iter().find(|bound| **bound > used_ns);
        next.map(|bound| bound - used_ns)
    }

    /// A request is over.
    pub fn note(&mut self, used_ns: u64) {
        self.counts[bin_of(used_ns)] += 1;
        self.total += 1;
        self.since += 1;
        if self.since >= BETWEEN {
            self.since = 0;
            self.learn();
        }
        if self.total >= REMEMBERED {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.total = self.counts.iter().sum();
        }
    }

    /// So much or less is used by this share of the requests, ns, rounded up to a bin of a quarter
    /// octave; none before the first.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let wanted = (share * self.total as f64).ceil().max(1.0) as u64;
        let mut sum = 0;
        let bin = self.counts.iter().position(|count| {
            sum += count;
            sum >= wanted
        });
        bin.map(end_of)
    }

    fn learn(&mut self) {
        if self.is_fixed {
            return;
        }
        let mut least_ns = FIRST_MIN_NS;
        for (at, share) in SHARES.into_iter().enumerate() {
            let learned_ns = self.quantile_ns(share).unwrap_or(self.bounds_ns[at]);
            self.bounds_ns[at] = learned_ns.max(least_ns);
            least_ns = FACTOR_MIN * self.bounds_ns[at];
        }
        assert!(self.bounds_ns.is_sorted(), "bounds ascend");
    }
}

fn bin_of(used_ns: u64) -> usize {
    let octaves = (used_ns as f64 / 1000.0).max(1.0).log2();
    ((octaves * BINS_OF_OCTAVE) as usize).min(BINS - 1)
}

fn end_of(bin: usize) -> u64 {
    (1000.0 * ((bin + 1) as f64 / BINS_OF_OCTAVE).exp2()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bounds_follow_what_requests_use() {
        let mut bounds = Bounds::default();
        assert_eq!(bounds.bounds_ns(), AT_FIRST_NS);
        // Seven of ten use 2 ms, two 20 ms, one 200 ms.
        let mix = [2, 2, 20, 2, 2, 200, 2, 20, 2, 2];
        for used_ms in mix.into_iter().cycle().take(500) {
            bounds.note(used_ms * 1_000_000);
        }
        let levels = [1, 2, 20, 199, 300].map(|used_ms: u64| bounds.level(used_ms * 1_000_000));
        assert_eq!(levels, [0, 0, 1, 1, 2]);
        let left = bounds.left_ns(2_000_000).unwrap();
        assert!(left < 1_000_000, "{left}");
        assert_eq!(bounds.left_ns(1_000_000_000), None);
        // What was is forgotten.
        for _ in 0..20_000 {
            bounds.note(50_000_000);
        }
        assert_eq!(bounds.level(50_000_000), 0);
    }

    #[test]
    fn requests_that_are_all_alike_stay_on_top() {
        let mut bounds = Bounds::default();
        for _ in 0..100 {
            bounds.note(10_000_000);
        }
        assert_eq!(bounds.level(10_000_000), 0);
    }

    proptest! {
        #[test]
        fn bounds_ascend_whatever_comes(used in proptest::collection::vec(any::<u64>(), 0..300)) {
            let mut bounds = Bounds::default();
            for used_ns in used {
                bounds.note(used_ns);
                let [first, second] = bounds.bounds_ns();
                prop_assert!(FIRST_MIN_NS <= first && first < second);
                prop_assert!(bounds.level(used_ns) < LEVEL_COUNT as u8);
            }
        }
    }
}
