//! Where to cut sizes into priority bands, learned from the traffic.
//!
//! A kernel has a handful of bands, a policy as many ranks as bytes. As in the web-server thesis
//! (Schroeder 2005, 3.2.1) the lowest cutoff is the median, so that half of all jobs share the top
//! band, and the others follow on a logarithmic scale; with two bands the median is the only one
//! (4.2.2). The highest is ours: jobs above it may have a tenth of the bytes. The thesis leaves
//! 0.5-1 % of the jobs above it, which are half of all bytes where tails are heavy, and these share
//! the link with each other: nginx under `sooner attach` at load 0.9 of the EPA trace has 1.43
//! times ideal SRPT's mean with that, and 1.17 with a tenth of the bytes (experiments/attach-web).
//!
//! Sizes are counted in eighths of octaves and forgotten by halves, so the cutoffs follow the
//! traffic.

use crate::steps::{COUNT as BUCKETS, step as bucket, upper_end};
use alloc::vec;
use alloc::vec::Vec;

/// Bands of one link at most, the top one included.
pub const BAND_COUNT: usize = 8;

/// Jobs between two new sets of cutoffs.
const RELEARN_JOBS: u32 = 128;
/// Jobs after which what was counted weighs half.
const HALVE_JOBS: u32 = 8_192;
/// Before enough was seen: a guess from the traces of the papers.
const FIRST_MEDIAN: u64 = 2_000;
const FIRST_HIGHEST: u64 = 1_000_000;
/// What a job counts: more than one, so that a rare large one is not forgotten at the first
/// halving.
const JOB_WEIGHT: u32 = 16;

/// What lies above the highest cutoff at most, as a fraction (part, of whole).
#[derive(Clone, Copy, Debug)]
pub enum Largest {
    /// So many of the jobs.
    Jobs(u64, u64),
    /// So many of the bytes.
    Bytes(u64, u64),
}

/// Learns the cutoffs between bands.
#[derive(Clone, Debug)]
pub struct Cutoffs {
    counts: [u32; BUCKETS],
    seen: u32,
    cutoffs: Vec<u64>,
    /// `None` where the cutoffs were given.
    largest: Option<Largest>,
}

impl Default for Cutoffs {
    fn default() -> Self {
        Self::into_bands(BAND_COUNT as u8)
    }
}

impl Cutoffs {
    /// For so many bands, at least two.
    pub fn into_bands(bands: u8) -> Self {
        Self::learned(bands, Largest::Bytes(1, 10))
    }

    /// For so many bands, at least two; `largest` lies above the highest cutoff, if there are
    /// several.
    pub fn learned(bands: u8, largest: Largest) -> Self {
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
        self.counts[bucket(size)] += JOB_WEIGHT;
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

    fn relearn(&mut self, largest: Largest) {
        let jobs = |_: usize, count: u32| u128::from(count);
        let bytes = |index: usize, count: u32| u128::from(upper_end(index)) * u128::from(count);
        let median = self.above_which((1, 2), jobs);
        let highest = match largest {
            Largest::Jobs(part, whole) => self.above_which((part, whole), jobs),
            Largest::Bytes(part, whole) => self.above_which((part, whole), bytes),
        };
        spread(&mut self.cutoffs, median, highest.max(median));
        assert!(self.cutoffs.is_sorted(), "bands follow each other in size");
    }

    /// The smallest upper end of a bucket above which `share` of all weight lies, or less.
    fn above_which(&self, share: (u64, u64), weight: impl Fn(usize, u32) -> u128) -> u64 {
        let weights = || {
            let counts = self.counts.iter().enumerate();
            counts.map(|(index, &count)| weight(index, count))
        };
        let total: u128 = weights().sum();
        let allowed = total * u128::from(share.0) / u128::from(share.1);
        let mut above = total;
        for (index, weight) in weights().enumerate() {
            above -= weight;
            if above <= allowed {
                return upper_end(index);
            }
        }
        u64::MAX
    }
}

/// Cutoffs from `lowest` to `highest`, evenly spaced in buckets, which is on a logarithmic scale; a
/// single one is the lowest.
fn spread(cutoffs: &mut [u64], lowest: u64, highest: u64) {
    let (first, last) = (bucket(lowest), bucket(highest));
    let steps = cutoffs.len().saturating_sub(1).max(1);
    for (step, cutoff) in cutoffs.iter_mut().enumerate() {
        *cutoff = upper_end(first + (last - first) * step / steps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_jobs_share_the_top_band_and_a_tenth_of_the_bytes_the_last() {
        let mut cutoffs = Cutoffs::default();
        // Pareto with a tail index of 1.5, in a scattered order.
        let sizes = (1..=4_000_u32).map(|i| (1e8 / f64::from(i).powf(1.0 / 1.5)) as u64);
        let sizes: Vec<u64> = sizes.collect();
        (0..8_000).for_each(|i| cutoffs.record(sizes[i * 617 % 4_000]));
        let band = |&size: &u64| cutoffs.band(size);
        let jobs = sizes.iter().filter(|&size| band(size) == 0).count();
        assert!((1_900..=2_200).contains(&jobs), "{jobs}");
        let last: u64 = sizes.iter().filter(|&size| band(size) == 7).sum();
        let share = last as f64 / sizes.iter().sum::<u64>() as f64;
        // At most a tenth, and the bucket that the cutoff ends is an eighth of an octave wide.
        assert!((0.05..=0.1).contains(&share), "{share}");
        assert!(cutoffs.cutoffs().is_sorted());
    }

    #[test]
    fn a_rare_large_job_is_remembered_for_a_while_and_then_forgotten() {
        let mut cutoffs = Cutoffs::default();
        cutoffs.record(1_000_000_000);
        let mut highest_after = |small: u32| {
            (0..small).for_each(|_| cutoffs.record(1_000));
            *cutoffs.cutoffs().last().unwrap()
        };
        assert!(highest_after(2 * HALVE_JOBS) >= 1_000_000_000);
        assert!(highest_after(6 * HALVE_JOBS) < 2_000);
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
        let mut cutoffs = Cutoffs::learned(16, Largest::Jobs(1, 50));
        let size = |i: u64| 1_000_000_000 / i;
        (0..4_096_u64).for_each(|i| cutoffs.record(size(i * 617 % 4_096 + 1)));
        let above = (1..=4_096_u64).filter(|i| cutoffs.band(size(*i)) == 15);
        let above = above.count();
        // 2 % are 82; the cutoff is the end of the bucket with the 98 % point, an eighth of an
        // octave wide.
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
