//! How often something begins, from how old what is seen of it is.
//!
//! A look at a random moment sees things in progress at ages with density r P(T > age), r
//! being how many begin a second and T how long they take: at age 0 the density is r itself. It is
//! extrapolated from two windows next to 0, so that a tail which falls from there on costs a second
//! order only.

/// Bins an octave, and how many in all: from 1 µs to three hours.
const BINS_AN_OCTAVE: usize = 4;
const BINS: usize = 34 * BINS_AN_OCTAVE;
/// Less than this cannot be told: clocks are read apart.
const WINDOW_MIN_NS: f64 = 300e3;
/// The window holds this part of what was seen at least.
const WINDOW_SHARE: f64 = 0.2;
/// Half of a 95 per cent interval of what many things add up to, in standard deviations.
const NORMAL: f64 = 1.96;

/// Ages, each with a weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Ages {
    /// By the logarithm of the age.
    weights: [f64; BINS],
    total: f64,
}

impl Default for Ages {
    fn default() -> Self {
        Ages {
            weights: [0.0; BINS],
            total: 0.0,
        }
    }
}

impl Ages {
    /// Something was seen at this age.
    pub fn add(&mut self, age_ns: u64, weight: f64) {
        let octaves = (age_ns.max(1) as f64 / 1e3).log2().max(0.0);
        let bin = (octaves * BINS_AN_OCTAVE as f64) as usize;
        self.weights[bin.min(BINS - 1)] += weight;
        self.total += weight;
    }

    /// All of `other`.
    pub fn merge(&mut self, other: &Ages) {
        for (own, other) in self.weights.iter_mut().zip(&other.weights) {
            *own += other;
        }
        self.total += other.total;
    }

    /// How many begin a second, where weights are seconds of `seconds` that were looked at.
    pub fn per_sec(&self, seconds: f64) -> f64 {
        if self.total <= 0.0 || seconds <= 0.0 {
            return 0.0;
        }
        let Windows { below, twice, bin } = self.windows();
        let (once_s, twice_s) = (edge_ns(bin) / 1e9, edge_ns(bin + BINS_AN_OCTAVE) / 1e9);
        let density = 2.0 * below / once_s - twice / twice_s;
        // A density falls: what is older cannot be denser.
        density.max(twice / twice_s) / seconds
    }

    /// Half of the 95 per cent interval of that, as a part of it, where each look has this weight;
    /// without what looks that see the same thing have in common.
    pub fn relative_error(&self, look_s: f64) -> f64 {
        if self.total <= 0.0 {
            return 0.0;
        }
        let Windows { below, twice, .. } = self.windows();
        // The density is as 3 below - above, in which each look counts by itself.
        let above = twice - below;
        let deviation = (look_s * (9.0 * below + above)).sqrt();
        NORMAL * deviation / (3.0 * below - above).max(twice).max(f64::MIN_POSITIVE)
    }

    /// How many begin a second at least, by those that were seen in their first moment: where many
    /// are over in less, the window above is too wide for them.
    pub fn first_moment_per_sec(&self, seconds: f64) -> f64 {
        let bins = (0..BINS).take_while(|bin| edge_ns(*bin) < WINDOW_MIN_NS);
        let (count, below) = bins.fold((0, 0.0), |(count, below), bin| {
            (count + 1, below + self.weights[bin])
        });
        below / (edge_ns(count) / 1e9) / seconds.max(f64::MIN_POSITIVE)
    }

    /// All weights.
    pub fn total(&self) -> f64 {
        self.total
    }

    fn windows(&self) -> Windows {
        let (mut below, mut bin) = (0.0, 0);
        while bin < BINS - BINS_AN_OCTAVE
            && (edge_ns(bin) < WINDOW_MIN_NS || below < WINDOW_SHARE * self.total)
        {
            below += self.weights[bin];
            bin += 1;
        }
        let more: f64 = self.weights[bin..bin + BINS_AN_OCTAVE].iter().sum();
        Windows {
            below,
            twice: below + more,
            bin,
        }
    }
}

/// What was seen below an age, and below twice that age.
struct Windows {
    below: f64,
    twice: f64,
    /// The first that is older.
    bin: usize,
}

fn edge_ns(bin: usize) -> f64 {
    1e3 * (bin as f64 / BINS_AN_OCTAVE as f64).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Looks `looks` times, every 10 ms, at a place where one thing follows the other.
    fn seen(lengths_ns: &mut dyn FnMut() -> f64, looks: u32) -> (Ages, f64) {
        let (mut ages, mut begun) = (Ages::default(), 0_u32);
        let (mut begin_ns, mut end_ns) = (0.0, lengths_ns());
        for look in 1..=looks {
            let now_ns = f64::from(look) * 10e6;
            while end_ns <= now_ns {
                begin_ns = end_ns;
                end_ns += lengths_ns();
                begun += 1;
            }
            ages.add((now_ns - begin_ns) as u64, 0.01);
        }
        let seconds = f64::from(looks) * 0.01;
        (ages, f64::from(begun) / seconds)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn the_rate_is_found_whatever_the_law(seed in 1_u64.., mean_ms in 2.0..300.0_f64, law in 0..3) {
            let mut state = seed;
            let mut uniform = move || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
            };
            let mut lengths = || {
                let mean_ns = mean_ms * 1e6;
                match law {
                    0 => mean_ns * (0.9 + 0.2 * uniform()),
                    1 => -mean_ns * uniform().ln(),
                    // One in ten is ten times as long as the rest.
                    _ => -mean_ns * uniform().ln() * if uniform() < 0.1 { 5.0 } else { 0.5 },
                }
            };
            let (ages, per_sec) = seen(&mut lengths, 200_000);
            let found = ages.per_sec(2000.0);
            prop_assert!((found / per_sec - 1.0).abs() < 0.12, "{found} of {per_sec}");
        }
    }

    #[test]
    fn fewer_looks_make_a_rate_less_sure() {
        let of = |looks| {
            let (ages, _) = seen(&mut || 20e6, looks);
            ages.relative_error(0.01)
        };
        let (few, many) = (of(400), of(40_000));
        assert!(
            (few / many - 10.0).abs() < 2.0 && few > 0.05,
            "{few} {many}"
        );
    }

    #[test]
    fn nothing_seen_is_no_rate() {
        assert_eq!(Ages::default().per_sec(1.0), 0.0);
        assert_eq!(Ages::default().relative_error(1.0), 0.0);
    }
}
