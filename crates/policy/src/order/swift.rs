//! SWIFT (Rawat and Kshemkalyani 2003): by what remains and by the round trip, so that those who
//! are far away lose less to it.
//!
//! **Taken from the paper.** 16 levels of size and 16 of round trip (3.2.2). Sizes: half of the
//! requests are in level 0, the largest 2 % in level 15, the cutoffs between them logarithmic.
//! Round trips: cutoffs from 10 to 350 ms at equal intervals; below 10 ms is the last level, above
//! 350 ms the first, so the larger goes first. The weighted sum of the two levels decides (3.2.1):
//! size against round trip counts 0.8 to 0.2 below 20 KB, 0.6 to 0.4 below 500 KB, 0.25 to 0.75
//! above. A response is weighed again after every 8192 bytes, by what then remains (3.2.3).
//!
//! **Filled in.** The sum is rounded to the nearest of 16 levels, of which the lowest goes first;
//! within a level the least that remains goes first, then the older (their kernel's queues were
//! first in, first out). KB are 1024 bytes. The size cutoffs are learned from the traffic, or
//! given. The round trip is measured; theirs came in the request. Where it is not known the level
//! is the size's alone, and that is SRPT with 16 levels. A job of unknown size counts what it has
//! had.
//!
//! **What follows from it.** The weights jump: a distant response among the largest has level 4,
//! and 9 once less than 500 KB remains, so it can lose its turn by being served. The guard around
//! it bounds what that costs.
//!
//! Amounts are bytes: the weights' limits are.

use super::{BandMeasure, Order};
use crate::{Cutoffs, Job, Largest, Path};

/// Levels of size, of round trip, and of their sum.
const LEVELS: u8 = 16;
/// Of the jobs, above the highest size cutoff.
const LARGEST: Largest = Largest::Jobs(1, 50);
const LOWEST_RTT_NS: u64 = 10_000_000;
const HIGHEST_RTT_NS: u64 = 350_000_000;
const SMALL_BYTES: u64 = 20 * 1024;
const LARGE_BYTES: u64 = 500 * 1024;
/// Bytes after which a job is weighed again.
const WEIGH_BYTES: u64 = 8192;
/// Weights are in twentieths.
const WHOLE_WEIGHT: u64 = 20;
/// Bits below the level, for what remains: 256 TiB, and a rank is still a number that JSON readers
/// keep exact (below 2^53).
const REMAINING_BITS: u32 = 48;

/// The levels of jobs, with the sizes they are cut at.
#[derive(Clone, Debug)]
pub struct SwiftLevels {
    sizes: Cutoffs,
}

impl Default for SwiftLevels {
    /// With size cutoffs that are learned.
    fn default() -> Self {
        Self {
            sizes: Cutoffs::learned(LEVELS, LARGEST),
        }
    }
}

impl SwiftLevels {
    /// How many levels there are.
    pub const COUNT: u8 = LEVELS;

    /// With the given size cutoffs, ascending, 15 of them, in bytes; more are not looked at.
    pub fn with_sizes(cutoffs: &[u64]) -> Self {
        Self {
            sizes: Cutoffs::fixed(&cutoffs[..cutoffs.len().min(usize::from(LEVELS) - 1)]),
        }
    }

    /// A job of `size_bytes` came in.
    pub fn record(&mut self, size_bytes: u64) {
        self.sizes.record(size_bytes);
    }

    /// The level of a job with `size_bytes` of which `attained_bytes` are done, 0 to 15; 0 goes
    /// first.
    pub fn level(&self, size_bytes: Option<u64>, attained_bytes: u64, path: Path) -> u8 {
        let weighed_at_bytes = attained_bytes - attained_bytes % WEIGH_BYTES;
        let counted_bytes = match size_bytes {
            Some(size_bytes) => size_bytes.saturating_sub(weighed_at_bytes),
            None => weighed_at_bytes,
        };
        let size_level = self.sizes.band(counted_bytes);
        let Some(rtt_ns) = path.rtt_ns else {
            return size_level;
        };
        let (size_weight, rtt_weight) = weights(counted_bytes);
        let sum = size_weight * u64::from(size_level) + rtt_weight * rtt_level(rtt_ns);
        ((sum + WHOLE_WEIGHT / 2) / WHOLE_WEIGHT) as u8
    }
}

/// The weights of size and round trip.
fn weights(bytes: u64) -> (u64, u64) {
    match bytes {
        0..SMALL_BYTES => (16, 4),
        SMALL_BYTES..LARGE_BYTES => (12, 8),
        LARGE_BYTES.. => (5, 15),
    }
}

/// The level of a round trip: 15 below the lowest cutoff, 0 from the highest on.
fn rtt_level(rtt_ns: u64) -> u64 {
    let last = u64::from(LEVELS) - 1;
    let cutoffs = u64::from(LEVELS) - 1;
    let Some(above_ns) = rtt_ns.checked_sub(LOWEST_RTT_NS) else {
        return last;
    };
    let range_ns = HIGHEST_RTT_NS - LOWEST_RTT_NS;
    let passed = 1 + above_ns.min(range_ns) * (cutoffs - 1) / range_ns;
    last - passed
}

/// Serves the job of the lowest level.
#[derive(Clone, Debug, Default)]
pub struct Swift {
    levels: SwiftLevels,
}

impl Swift {
    /// With the given levels.
    pub fn new(levels: SwiftLevels) -> Self {
        Self { levels }
    }

    /// The level a job keeps until it is weighed again is its tag: cutoffs that are learned
    /// meanwhile move no other job.
    fn weigh(&self, job: &mut Job, attained_bytes: u64) {
        let level = self.levels.level(job.size, attained_bytes, job.path);
        job.tag = u64::from(level);
    }
}

impl Order for Swift {
    const BANDS: BandMeasure = BandMeasure::Level;

    fn rank(&self, job: &Job) -> u64 {
        let counted_bytes = job.remaining().unwrap_or(job.attained);
        let most = (1 << REMAINING_BITS) - 1;
        (job.tag << REMAINING_BITS) | counted_bytes.min(most)
    }

    fn arrived(&mut self, job: &mut Job) {
        if let Some(size_bytes) = job.size {
            self.levels.record(size_bytes);
        }
        self.weigh(job, job.attained);
    }

    fn progressed(&mut self, job: &mut Job, amount: u64) {
        let attained_bytes = job.attained.saturating_add(amount);
        if attained_bytes / WEIGH_BYTES != job.attained / WEIGH_BYTES {
            self.weigh(job, attained_bytes);
        }
    }

    fn enlarged(&mut self, job: &mut Job, _additional: u64) {
        self.weigh(job, job.attained);
    }

    fn observed(&mut self, job: &mut Job) {
        self.weigh(job, job.attained);
    }

    fn moved_in(&mut self, job: &mut Job) {
        self.weigh(job, job.attained);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(rtt_ms: u64) -> Path {
        Path {
            rtt_ns: Some(rtt_ms * MS),
            ..Path::default()
        }
    }

    /// Cutoffs of 1 KB, 2 KB and so on by doubling.
    fn doubling() -> SwiftLevels {
        let cutoffs: [u64; 15] = core::array::from_fn(|step| 1024 << step);
        SwiftLevels::with_sizes(&cutoffs)
    }

    #[test]
    fn round_trips_have_the_levels_of_the_paper() {
        let levels = [0, 9, 10, 34, 35, 50, 115, 325, 326, 350, 5_000].map(|ms| rtt_level(ms * MS));
        assert_eq!(levels, [15, 15, 14, 14, 13, 13, 10, 2, 1, 0, 0]);
    }

    #[test]
    fn sums_are_weighed_by_size() {
        let levels = doubling();
        let level = |bytes: u64, rtt_ms| levels.level(Some(bytes), 0, at(rtt_ms));
        // 0.8 x 0 + 0.2 x 15 = 3, and 0.8 x 0 + 0.2 x 0.
        assert_eq!((level(1_000, 1), level(1_000, 400)), (3, 0));
        // Size level 7: 0.6 x 7 + 0.4 x 15 = 10.2, and 4.2.
        assert_eq!((level(100 << 10, 1), level(100 << 10, 400)), (10, 4));
        // Size level 10: 0.25 x 10 + 0.75 x 15 = 13.75, and 2.5.
        assert_eq!((level(1 << 20, 1), level(1 << 20, 400)), (14, 3));
    }

    #[test]
    fn without_a_round_trip_the_size_alone_decides() {
        let levels = doubling();
        for level in 0..16_u8 {
            let bytes = 1024_u64 << level;
            assert_eq!(levels.level(Some(bytes), 0, Path::default()), level);
        }
    }

    #[test]
    fn a_job_is_weighed_after_every_8_kib() {
        let levels = doubling();
        let size = Some(32 << 10);
        let level = |attained| levels.level(size, attained, Path::default());
        assert_eq!((level(0), level(8191)), (5, 5));
        // 24 KiB are still above 16 KiB, 16 KiB are not.
        assert_eq!((level(8192), level(16_383), level(16_384)), (5, 5, 4));
    }

    #[test]
    fn more_than_fifteen_cutoffs_make_no_more_levels() {
        let levels = SwiftLevels::with_sizes(&[1; 100]);
        assert_eq!(levels.level(Some(u64::MAX), 0, Path::default()), 15);
    }
}
