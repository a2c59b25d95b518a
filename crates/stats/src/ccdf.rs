//! The complementary distribution of the response time: which share of the requests took at least so long.

use crate::group::completed;
use crate::{Sample, ms};
use serde::{Deserialize, Serialize};

/// Most points kept of the curve; log-spaced in the share, so that the tail keeps every request and the body is thinned.
pub const MAX_POINTS: usize = 400;

/// One point: this share of the completed requests took at least so long, measured and under each ideal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CcdfPoint {
    /// Share of the completed requests, 1 down to 1/completed.
    pub fraction_at_least: f64,
    /// Measured response time in ms.
    pub response_ms: f64,
    /// Response time under ideal SRPT in ms.
    pub ideal_srpt_response_ms: f64,
    /// Response time under ideal processor sharing in ms.
    pub ideal_ps_response_ms: f64,
}

/// The curve of the completed requests, from the shortest response to the longest.
pub fn ccdf(samples: &[Sample]) -> Vec<CcdfPoint> {
    let measured = descending(completed(samples).map(|(_, response_ns)| response_ns));
    let srpt = descending(completed(samples).map(|(sample, _)| sample.ideal_srpt_ns));
    let ps = descending(completed(samples).map(|(sample, _)| sample.ideal_ps_ns));
    kept_counts(measured.len())
        .map(|count| CcdfPoint {
            fraction_at_least: count as f64 / measured.len() as f64,
            response_ms: ms(measured[count - 1] as f64),
            ideal_srpt_response_ms: ms(srpt[count - 1] as f64),
            ideal_ps_response_ms: ms(ps[count - 1] as f64),
        })
        .collect()
}

fn descending(values: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable_by(|a, b| b.cmp(a));
    values
}

/// Which counts out of `n` become points: from `n` down to 1, log-spaced, each once.
fn kept_counts(n: usize) -> impl Iterator<Item = usize> {
    let mut counts: Vec<usize> = (0..if n == 0 { 0 } else { MAX_POINTS })
        .map(|step| {
            (n as f64)
                .powf(1.0 - step as f64 / (MAX_POINTS - 1) as f64)
                .round() as usize
        })
        .collect();
    counts.dedup();
    counts.into_iter()
}
