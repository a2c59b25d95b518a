//! The figures of one group of requests: all, the smallest half, the largest 1 %, the largest.

use crate::order::{mean, percentile, squared_variation};
use crate::{ErrorKind, Outcome, Sample, ms};
use serde::{Deserialize, Serialize};

/// One group's figures (`G` in the JSON). Every mean and percentile is over the requests that
/// completed; none if none did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Requests in the group, however they ended.
    pub n: u64,
    /// Requests of the group answered in full: the number behind every mean and percentile.
    pub completed: u64,
    /// Requests of the group that ended in an error.
    pub errors: u64,
    /// Requests of the group that their users gave up: incomplete for them.
    #[serde(default)]
    pub given_up: u64,
    /// Attempts at requests of the group that were aborted because they took too long.
    #[serde(default)]
    pub aborts: u64,
    /// Mean response time in ms.
    pub mean_response_ms: Option<f64>,
    /// The same in ms with the requests that were never answered, because the run ended before or
    /// their connection timed out, for as long as they had waited when the last response came: at
    /// most what it would have been. [`None`] where no kind is there.
    #[serde(default)]
    pub mean_response_at_least_ms: Option<f64>,
    /// Median response time in ms.
    pub p50_response_ms: Option<f64>,
    /// 95th percentile of the response time in ms.
    pub p95_response_ms: Option<f64>,
    /// 99th percentile of the response time in ms.
    pub p99_response_ms: Option<f64>,
    /// 99.9th percentile of the response time in ms.
    pub p99_9_response_ms: Option<f64>,
    /// Longest response time in ms.
    pub max_response_ms: Option<f64>,
    /// Squared coefficient of variation of the response time.
    pub response_c2: Option<f64>,
    /// Mean time to the first byte in ms.
    pub mean_first_byte_ms: Option<f64>,
    /// Longest time in which nothing of a response came, in ms.
    #[serde(default)]
    pub longest_silence_ms: Option<f64>,
    /// Mean of response time / time the response would take alone on the link.
    pub mean_slowdown: Option<f64>,
    /// Mean response time of the same requests under ideal SRPT, in ms.
    pub ideal_srpt_mean_response_ms: Option<f64>,
    /// Mean response time of the same requests under ideal least attained service, in ms.
    #[serde(default)]
    pub ideal_las_mean_response_ms: Option<f64>,
    /// Mean response time of the same requests under ideal processor sharing, in ms.
    pub ideal_ps_mean_response_ms: Option<f64>,
}

impl Group {
    /// The figures of `samples` on a link of `rate_bits_per_sec`; the last response of the run
    /// ended at `last_end_ns`.
    pub fn new(samples: &[Sample], rate_bits_per_sec: u64, last_end_ns: u64) -> Self {
        let completed: Vec<(&Sample, u64)> = completed(samples).collect();
        let mut sorted: Vec<u64> = completed
            .iter()
            .map(|&(_, response_ns)| response_ns)
            .collect();
        sorted.sort_unstable();
        let percentile_ms = |per_mille| percentile(&sorted, per_mille).map(|ns| ms(ns as f64));
        let mean_ms = |of: fn(&Sample) -> u64| {
            mean(completed.iter().map(|(sample, _)| of(sample) as f64)).map(ms)
        };
        Self {
            n: samples.len() as u64,
            completed: completed.len() as u64,
            errors: samples
                .iter()
                .filter(|sample| matches!(sample.outcome, Outcome::Error(_)))
                .count() as u64,
            given_up: samples
                .iter()
                .filter(|sample| sample.outcome == Outcome::GivenUp)
                .count() as u64,
            aborts: samples.iter().map(|sample| u64::from(sample.aborts)).sum(),
            mean_response_ms: mean(sorted.iter().map(|&ns| ns as f64)).map(ms),
            mean_response_at_least_ms: mean_at_least_ms(samples, last_end_ns),
            p50_response_ms: percentile_ms(500),
            p95_response_ms: percentile_ms(950),
            p99_response_ms: percentile_ms(990),
            p99_9_response_ms: percentile_ms(999),
            max_response_ms: percentile_ms(1000),
            response_c2: squared_variation(&sorted),
            mean_first_byte_ms: mean(
                completed
                    .iter()
                    .filter_map(|(sample, _)| sample.first_byte_ns)
                    .map(|ns| ns as f64),
            )
            .map(ms),
            longest_silence_ms: completed
                .iter()
                .filter_map(|(sample, _)| sample.longest_silence_ns)
                .max()
                .map(|ns| ms(ns as f64)),
            mean_slowdown: mean_slowdown(samples, rate_bits_per_sec),
            ideal_srpt_mean_response_ms: mean_ms(|sample| sample.ideal_srpt_ns),
            ideal_las_mean_response_ms: mean_ms(|sample| sample.ideal_las_ns),
            ideal_ps_mean_response_ms: mean_ms(|sample| sample.ideal_ps_ns),
        }
    }
}

/// The completed requests with their response times in ns.
pub(crate) fn completed(samples: &[Sample]) -> impl Iterator<Item = (&Sample, u64)> {
    samples
        .iter()
        .filter_map(|sample| Some((sample, sample.completed_ns()?)))
}

/// When the last response of a run ended, in ns since its start.
pub(crate) fn last_end_ns(samples: &[Sample]) -> u64 {
    let ends = completed(samples).map(|(sample, response_ns)| sample.arrival_ns + response_ns);
    ends.max().unwrap_or(0)
}

fn mean_at_least_ms(samples: &[Sample], last_end_ns: u64) -> Option<f64> {
    let waited = |sample: &Sample| match sample.outcome {
        Outcome::Incomplete | Outcome::Error(ErrorKind::Timeout) => {
            Some(last_end_ns.saturating_sub(sample.arrival_ns))
        }
        Outcome::Ok | Outcome::Error(_) | Outcome::GivenUp => sample.completed_ns(),
    };
    mean(samples.iter().filter_map(waited).map(|ns| ns as f64)).map(ms)
}

/// Mean of response time / time alone over the completed requests.
pub(crate) fn mean_slowdown(samples: &[Sample], rate_bits_per_sec: u64) -> Option<f64> {
    mean(
        completed(samples)
            .filter(|(sample, _)| sample.work_bytes > 0)
            .map(|(sample, response_ns)| response_ns as f64 / sample.alone_ns(rate_bits_per_sec)),
    )
}
