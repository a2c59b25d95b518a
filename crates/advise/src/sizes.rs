//! Sizes of responses, or how long they took, in bounded memory.

use hdrhistogram::Histogram;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Largest sizes that are kept exactly, for the tail.
const LARGEST_KEPT: usize = 20_000;
/// Fewest sizes that a tail is told from.
const TAIL_LEAST: usize = 50;

/// Collects sizes.
pub struct Sizes {
    histogram: Histogram<u64>,
    n: u64,
    sum: f64,
    square_sum: f64,
    largest: BinaryHeap<Reverse<u64>>,
}

/// What sizes are like.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeFigures {
    /// Mean, bytes.
    pub mean_bytes: f64,
    /// Squared coefficient of variation.
    pub c2: f64,
    /// Half are not larger, bytes.
    pub median_bytes: u64,
    /// 90 % are not larger.
    pub p90_bytes: u64,
    /// 99 % are not larger.
    pub p99_bytes: u64,
    /// 99.9 % are not larger.
    pub p99_9_bytes: u64,
    /// The largest.
    pub max_bytes: u64,
    /// Share of all bytes that is in the largest 1 %.
    pub top_1_percent_share: f64,
    /// Tail index by Hill's estimator over the largest 1 %, at most 20 000; none of too few.
    pub tail_index: Option<f64>,
    /// Its standard error.
    pub tail_index_error: Option<f64>,
}

impl Sizes {
    /// None yet.
    pub fn new() -> Self {
        Self {
            histogram: Histogram::new_with_bounds(1, u64::MAX / 2, 3)
                .expect("bounds and digits that a histogram may have"),
            n: 0,
            sum: 0.0,
            square_sum: 0.0,
            largest: BinaryHeap::new(),
        }
    }

    /// Counts one.
    pub fn add(&mut self, bytes: u64) {
        self.histogram.saturating_record(bytes);
        self.n += 1;
        self.sum += bytes as f64;
        self.square_sum += bytes as f64 * bytes as f64;
        if self.largest.len() < LARGEST_KEPT {
            self.largest.push(Reverse(bytes));
        } else if self.largest.peek().is_some_and(|least| least.0 < bytes) {
            self.largest.pop();
            self.largest.push(Reverse(bytes));
        }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.n
    }

    /// The largest ones, at most 20 000, the very largest first.
    pub fn largest(&self) -> Vec<u64> {
        let mut largest: Vec<u64> = self.largest.iter().map(|size| size.0).collect();
        largest.sort_unstable_by(|left, right| right.cmp(left));
        largest
    }

    /// The figures; none of no sizes, or of nothing but zeros.
    pub fn figures(&self) -> Option<SizeFigures> {
        if self.sum <= 0.0 {
            return None;
        }
        let n = self.n as f64;
        let mean = self.sum / n;
        let tail = self.tail();
        let quantile = |share: f64| self.histogram.value_at_quantile(share);
        Some(SizeFigures {
            mean_bytes: mean,
            c2: (self.square_sum / n / (mean * mean) - 1.0).max(0.0),
            median_bytes: quantile(0.5),
            p90_bytes: quantile(0.9),
            p99_bytes: quantile(0.99),
            p99_9_bytes: quantile(0.999),
            max_bytes: self.histogram.max(),
            top_1_percent_share: self.top_share(),
            tail_index: tail.map(|(index, _)| index),
            tail_index_error: tail.map(|(_, error)| error),
        })
    }

    /// Share of the bytes in the largest 1 %, to 0.1 %.
    fn top_share(&self) -> f64 {
        let mut left = (self.n as f64 * 0.01).round().max(1.0);
        let mut bytes = 0.0;
        let values: Vec<_> = self.histogram.iter_recorded().collect();
        for value in values.iter().rev() {
            let taken = left.min(value.count_at_value() as f64);
            bytes += taken * value.value_iterated_to() as f64;
            left -= taken;
            if left <= 0.0 {
                break;
            }
        }
        (bytes / self.sum).min(1.0)
    }

    /// Hill's estimate and its standard error.
    fn tail(&self) -> Option<(f64, f64)> {
        let mut largest = self.largest();
        largest.retain(|size| *size > 0);
        let k = (self.n as usize / 100).min(largest.len().saturating_sub(1));
        if k < TAIL_LEAST {
            return None;
        }
        let border = largest[k] as f64;
        let sum: f64 = largest[..k]
            .iter()
            .map(|size| (*size as f64 / border).ln())
            .sum();
        let index = k as f64 / sum;
        index
            .is_finite()
            .then(|| (index, index / (k as f64).sqrt()))
    }
}
