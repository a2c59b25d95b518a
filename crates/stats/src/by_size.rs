//! Response time by size: the requests in order of size, in equal buckets.

use crate::group::{completed, mean_slowdown};
use crate::order::mean;
use crate::{Sample, ms};
use serde::{Deserialize, Serialize};

/// Buckets the requests are divided into (fewer when there are fewer requests).
pub const BUCKETS: usize = 200;

/// The requests between two percentiles of size. Means are over those that completed; none if none
/// did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SizeBucket {
    /// Upper end of the bucket: the percentage of all requests that are in this or an earlier
    /// bucket.
    pub size_percentile: f64,
    /// Smallest response of the bucket, body bytes.
    pub min_size_bytes: u64,
    /// Largest response of the bucket, body bytes.
    pub max_size_bytes: u64,
    /// Requests in the bucket, however they ended.
    pub n: u64,
    /// Mean response time in ms.
    pub mean_response_ms: Option<f64>,
    /// Mean of response time / time alone.
    pub mean_slowdown: Option<f64>,
    /// Mean response time of the same requests under ideal SRPT, in ms.
    pub ideal_srpt_mean_response_ms: Option<f64>,
    /// Mean response time of the same requests under ideal processor sharing, in ms.
    pub ideal_ps_mean_response_ms: Option<f64>,
}

/// Orders samples by size, equal sizes by arrival: the rank every group is cut by.
pub fn rank_by_size(samples: &mut [Sample]) {
    samples.sort_by_key(|sample| (sample.size_bytes, sample.arrival_ns));
}

/// Cuts `ranked` (see [`rank_by_size`]) into [`BUCKETS`] buckets of equal count, give or take one.
pub fn by_size(ranked: &[Sample], rate_bits_per_sec: u64) -> Vec<SizeBucket> {
    let count = BUCKETS.min(ranked.len());
    (0..count)
        .map(|bucket| {
            let (from, to) = (
                bucket * ranked.len() / count,
                (bucket + 1) * ranked.len() / count,
            );
            SizeBucket::new(
                &ranked[from..to],
                to as f64 * 100.0 / ranked.len() as f64,
                rate_bits_per_sec,
            )
        })
        .collect()
}

impl SizeBucket {
    fn new(ranked: &[Sample], size_percentile: f64, rate_bits_per_sec: u64) -> Self {
        let mean_ms = |of: fn(&Sample, u64) -> u64| {
            mean(completed(ranked).map(|(sample, response_ns)| of(sample, response_ns) as f64))
                .map(ms)
        };
        Self {
            size_percentile,
            min_size_bytes: ranked.first().map_or(0, |sample| sample.size_bytes),
            max_size_bytes: ranked.last().map_or(0, |sample| sample.size_bytes),
            n: ranked.len() as u64,
            mean_response_ms: mean_ms(|_, response_ns| response_ns),
            mean_slowdown: mean_slowdown(ranked, rate_bits_per_sec),
            ideal_srpt_mean_response_ms: mean_ms(|sample, _| sample.ideal_srpt_ns),
            ideal_ps_mean_response_ms: mean_ms(|sample, _| sample.ideal_ps_ns),
        }
    }
}
