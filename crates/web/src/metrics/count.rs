//! Counters at the price of plain integers: one thread writes, so adding needs no locked
//! instruction, and any thread may read.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that one thread changes. Were there two, additions could be lost, nothing worse.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds.
    pub fn add(&self, more: u64) {
        self.set(self.get().wrapping_add(more));
    }

    /// Replaces.
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Reads.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// Upper bounds of the buckets of time, ns: three a decade from half a millisecond, where a fast
/// link's small responses are, to five minutes, where the largest are under overload.
pub const BOUNDS_NS: [u64; 17] = [
    MS / 2,
    MS,
    5 * MS / 2,
    5 * MS,
    10 * MS,
    25 * MS,
    50 * MS,
    100 * MS,
    250 * MS,
    500 * MS,
    S,
    5 * S / 2,
    5 * S,
    10 * S,
    30 * S,
    60 * S,
    300 * S,
];

/// How many took how long.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [Count; BOUNDS_NS.len() + 1],
    sum_ns: Count,
}

impl Histogram {
    /// Counts one that took `ns`.
    pub fn record(&self, ns: u64) {
        let bucket = BOUNDS_NS.partition_point(|&bound| bound < ns);
        self.buckets[bucket].add(1);
        self.sum_ns.add(ns);
    }

    /// Adds what `other` has counted.
    pub fn add_all(&self, other: &Self) {
        for (bucket, more) in self.buckets.iter().zip(other.buckets()) {
            bucket.add(more);
        }
        self.sum_ns.add(other.sum_ns());
    }

    /// How many were in each bucket; the last one is for what is beyond all bounds.
    pub fn buckets(&self) -> [u64; BOUNDS_NS.len() + 1] {
        std::array::from_fn(|bucket| self.buckets[bucket].get())
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.buckets().iter().sum()
    }

    /// What they took together, ns.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_the_bucket_below_it() {
        assert!(BOUNDS_NS.is_sorted());
        let histogram = Histogram::default();
        for ns in [0, MS / 2, MS / 2 + 1, 300 * S, 300 * S + 1] {
            histogram.record(ns);
        }
        let buckets = histogram.buckets();
        assert_eq!((buckets[0], buckets[1]), (2, 1));
        assert_eq!((buckets[16], buckets[17]), (1, 1));
        assert_eq!(
            (histogram.count(), histogram.sum_ns()),
            (5, 600 * S + MS + 2)
        );
    }

    #[test]
    fn histograms_add_up() {
        let (sum, other) = (Histogram::default(), Histogram::default());
        sum.record(MS);
        other.record(MS);
        other.record(300 * S + 1);
        sum.add_all(&other);
        let buckets = sum.buckets();
        assert_eq!((buckets[1], buckets[17]), (2, 1));
        assert_eq!((sum.count(), sum.sum_ns()), (3, 300 * S + 2 * MS + 1));
        assert_eq!(other.count(), 2);
    }
}
