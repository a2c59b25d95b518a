//! Where to cut sizes into priority bands, learned from the traffic.
//!
//! A kernel has a handful of bands, a policy as many ranks as bytes. The rule is the web-server thesis's (Schroeder 2005, 3.2.1): the lowest
//! cutoff at the median, so that half of all jobs share the top band; the highest so that 0.5-1 % of jobs lie above it; the others between
//! them on a logarithmic scale. With two bands the median is the only cutoff (4.2.2). Sizes are counted in eighths of octaves and forgotten
//! by halves, so the cutoffs follow the traffic.

use alloc::vec;
use alloc::vec::Vec;

/// Bands of one link at most, the top one included.
pub const BAND_COUNT: usize = 8;

const SUB_BITS: u32 = 3;
const BUCKETS: usize = 64 << SUB_BITS;
/// Jobs between two new sets of cutoffs.
const RELEARN_JOBS: u32 = 128;
/// Jobs after which what was counted weighs half.
const HALVE_JOBS: u32 = 8_192;
/// Before enough was seen: a guess from the traces of the papers.
const FIRST_MEDIAN: u64 = 2_000;
const FIRST_HIGHEST: u64 = 200_000;
/// The share of jobs above the highest cutoff: 0.75 %.
const LARGEST: (u64, u64) = (3, 400);

/// Learns the cutoffs between bands.
#[derive(Clone, Debug)]
pub struct Cutoffs {
    counts: [u32; BUCKETS],
    seen: u32,
    cutoffs: Vec<u64>,
    /// The share of jobs above the highest cutoff, as a fraction; `None` where the cutoffs were given.
    largest: Option<(u64, u64)>,
}

impl Default for Cutoffs {
    fn default() -> Self {
        Self::into_bands(BAND_COUNT as u8)
    }
}

impl Cutoffs {
    /// For so many bands, at least two.
    pub fn into_bands(bands: u8) -> Self {
        Self::learned(bands, LARGEST)
    }

    /// For so many bands, at least two; `largest` (part, of whole) of the jobs lie above the highest cutoff, if there are several.
    pub fn learned(bands: u8, largest: (u64, u64)) -> Self {
        let mut cutoffs = vec![0; usize::from(bands.max(2)) - 1];
        spread(&mut cutoffs, FIRST_MEDIAN, FIRST_HIGHEST);
        Self {
            counts: [0; BUCKETS],
            seen: 0,
            cutoffs,
            largest: Some(largest),
        }
    }

    /// The given cutoffs, ascending, for good.
    pub fn fixed(cutoffs: &[u64]) -> Self {
        Self {
            counts: [0; BUCKETS],
            seen: 0,
            cutoffs: cutoffs.into(),
            largest: None,
        }
    }

    /// A job of `size` came in.
    pub fn record(&mut self, size: u64) {
        let Some(largest) = self.largest else {
            return;
        };
        self.counts[bucket(size)] += 1;
        self.seen += 1;
        if self.seen.is_multiple_of(RELEARN_JOBS) {
            self.relearn(largest);
        }
        if self.seen >= HALVE_JOBS {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.seen = 0;
        }
    }

    /// The band of a job with `remaining` to go: 0 is served first.
    pub fn band(&self, remaining: u64) -> u8 {
        self.cutoffs.partition_point(|&cutoff| cutoff < remaining) as u8
    }

    /// The largest size of each band but the last, ascending.
    pub fn cutoffs(&self) -> &[u64] {
        &self.cutoffs
    }

    fn relearn(&mut self, (part, whole): (u64, u64)) {
        let total: u64 = self.counts.iter().map(|&count| u64::from(count)).sum();
        let median = self.quantile(total.div_ceil(2));
        let highest = self.quantile(total - total * part / whole);
        spread(&mut self.cutoffs, median, highest.max(median));
    }

    /// The upper end of the bucket that holds the job of the given rank by size, from 1.
    fn quantile(&self, rank: u64) -> u64 {
        let mut passed = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            passed += u64::from(count);
            if passed >= rank {
                return upper_end(index);
            }
        }
        u64::MAX
    }
}

/// Cutoffs from `lowest` to `highest`, evenly spaced in buckets, which is on a logarithmic scale; a single one is the lowest.
fn spread(cutoffs: &mut [u64], lowest: u64, highest: u64) {
    let (first, last) = (bucket(lowest), bucket(highest));
    let steps = cutoffs.len().saturating_sub(1).max(1);
    for (step, cutoff) in cutoffs.iter_mut().enumerate() {
        *cutoff = upper_end(first + (last - first) * step / steps);
    }
}

/// The bucket of a size: its octave and the three bits below its highest one.
fn bucket(size: u64) -> usize {
    let size = size.max(1 << SUB_BITS);
    let octave = 63 - size.leading_zeros();
    let sub = (size >> (octave - SUB_BITS)) as usize & ((1 << SUB_BITS) - 1);
    ((octave as usize) << SUB_BITS) + sub
}

/// The largest size in a bucket.
fn upper_end(index: usize) -> u64 {
    let octave = (index >> SUB_BITS) as u32;
    if octave < SUB_BITS {
        return (1 << SUB_BITS) - 1;
    }
    let sub = (index & ((1 << SUB_BITS) - 1)) as u64;
    let lower = ((1 << SUB_BITS) + sub) << (octave - SUB_BITS);
    lower + ((1 << (octave - SUB_BITS)) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_lies_in_its_bucket() {
        for size in [
            8,
            9,
            15,
            16,
            17,
            1_000,
            1_448,
            65_535,
            65_536,
            u64::MAX / 2,
            u64::MAX,
        ] {
            let index = bucket(size);
            assert!(
                upper_end(index) >= size && (index == 24 || upper_end(index - 1) < size),
                "{size}"
            );
        }
    }

    #[test]
    fn half_of_the_jobs_share_the_top_band_and_few_the_last() {
        let mut cutoffs = Cutoffs::default();
        // A Pareto-like mix: size 100 000 / i for i = 1..1000, in a scattered order.
        (0..4_096_u64).for_each(|i| cutoffs.record(100_000 / (i * 617 % 1_000 + 1)));
        let in_band = |band: u8| {
            (1..=1_000_u64)
                .filter(|i| cutoffs.band(100_000 / i) == band)
                .count()
        };
        assert!((450..=600).contains(&in_band(0)), "{}", in_band(0));
        assert!((1..=12).contains(&in_band(7)), "{}", in_band(7));
        assert!(cutoffs.cutoffs().is_sorted());
    }

    #[test]
    fn cutoffs_follow_the_traffic() {
        let mut cutoffs = Cutoffs::default();
        (0..20_000).for_each(|_| cutoffs.record(1_000));
        (0..60_000).for_each(|_| cutoffs.record(1_000_000));
        assert_eq!(cutoffs.band(900_000), 0);
    }

    #[test]
    fn equal_sizes_share_a_band() {
        let mut cutoffs = Cutoffs::default();
        (0..1_000).for_each(|_| cutoffs.record(5_000));
        assert_eq!((cutoffs.band(5_000), cutoffs.band(50_000)), (0, 7));
    }

    #[test]
    fn two_bands_are_cut_at_the_median() {
        let mut cutoffs = Cutoffs::into_bands(2);
        (0..4_096_u64).for_each(|i| cutoffs.record(100_000 / (i * 617 % 1_000 + 1)));
        let above = (1..=1_000_u64).filter(|i| cutoffs.band(100_000 / i) == 1);
        assert!((400..=550).contains(&above.count()));
        assert_eq!(cutoffs.cutoffs().len(), 1);
        assert_eq!((cutoffs.band(0), cutoffs.band(u64::MAX)), (0, 1));
    }

    #[test]
    fn the_share_above_the_highest_is_as_asked() {
        let mut cutoffs = Cutoffs::learned(16, (1, 50));
        let size = |i: u64| 1_000_000_000 / i;
        (0..4_096_u64).for_each(|i| cutoffs.record(size(i * 617 % 4_096 + 1)));
        let above = (1..=4_096_u64).filter(|i| cutoffs.band(size(*i)) == 15);
        let above = above.count();
        // 2 % are 82; the cutoff is the end of the bucket with the 98 % point, an eighth of an octave wide.
        assert!((70..=82).contains(&above), "{above}");
        assert_eq!(cutoffs.cutoffs().len(), 15);
    }

    #[test]
    fn given_cutoffs_stay() {
        let mut cutoffs = Cutoffs::fixed(&[10, 100]);
        (0..1_000).for_each(|_| cutoffs.record(5));
        assert_eq!([10, 11, 101].map(|size| cutoffs.band(size)), [0, 1, 2]);
    }
}
