//! How late packets are released: a histogram of nanoseconds in bounded memory, with values known
//! to 1.6 %.

/// Each power of two is divided into 64 buckets; below 64 ns every value has its own.
const DIVISION_BITS: u32 = 6;
const DIVISIONS: usize = 1 << DIVISION_BITS;
const BUCKETS: usize = DIVISIONS * (64 - DIVISION_BITS as usize + 1);

/// Counts of values.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    n: u64,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            counts: vec![0; BUCKETS],
            n: 0,
            max_ns: 0,
        }
    }
}

impl Histogram {
    /// Counts a value.
    pub fn record(&mut self, ns: u64) {
        self.counts[bucket(ns)] += 1;
        self.n += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    /// The smallest value that `share` of the values do not exceed, at most 1.6 % too large; 0 of
    /// no values.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let wanted = ((self.n as f64 * share).ceil() as u64).clamp(1, self.n.max(1));
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return largest_ns(index).min(self.max_ns);
            }
        }
        0
    }

    /// The largest value, exactly.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }
}

fn bucket(ns: u64) -> usize {
    let power = ns.checked_ilog2().unwrap_or(0);
    match power.checked_sub(DIVISION_BITS) {
        None => ns as usize,
        Some(shift) => DIVISIONS * shift as usize + (ns >> shift) as usize,
    }
}

/// The largest value that belongs to a bucket.
fn largest_ns(index: usize) -> u64 {
    if index < DIVISIONS {
        return index as u64;
    }
    let shift = (index / DIVISIONS - 1) as u32;
    let division = (index % DIVISIONS + DIVISIONS) as u64;
    (division << shift) + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_of_known_values() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.quantile_ns(0.5), histogram.max_ns()), (0, 0));
        for ns in 1..=100 {
            histogram.record(ns * 1_000);
        }
        let (p50, p99) = (histogram.quantile_ns(0.5), histogram.quantile_ns(0.99));
        assert!((50_000..50_800).contains(&p50), "{p50}");
        assert!((99_000..=100_000).contains(&p99), "{p99}");
        assert_eq!(histogram.max_ns(), 100_000);
        histogram.record(u64::MAX);
        assert_eq!(histogram.quantile_ns(1.0), u64::MAX);
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_values_and_is_narrow(ns: u64) {
            let largest = largest_ns(bucket(ns));
            prop_assert!(largest >= ns);
            prop_assert!(largest - ns <= ns / 64);
            prop_assert_eq!(bucket(largest), bucket(ns));
            if largest < u64::MAX {
                prop_assert_eq!(bucket(largest + 1), bucket(ns) + 1);
            }
        }
    }
}
