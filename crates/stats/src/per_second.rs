//! The run over time: every second in which requests arrived.

use crate::group::completed;
use crate::order::mean;
use crate::{Outcome, Sample, ms};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The requests that arrived within one second. Means are over those that completed, whenever that
/// was; none if none did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Whole seconds since the start of the run.
    pub second: u64,
    /// Requests that arrived in this second.
    pub n: u64,
    /// Requests of this second that ended in an error.
    pub errors: u64,
    /// Work that arrived in this second / what the link carries in a second.
    pub load: f64,
    /// Mean response time in ms.
    pub mean_response_ms: Option<f64>,
    /// Mean response time of the same requests under ideal SRPT, in ms.
    pub ideal_srpt_mean_response_ms: Option<f64>,
    /// Mean response time of the same requests under ideal processor sharing, in ms.
    pub ideal_ps_mean_response_ms: Option<f64>,
}

/// One entry a second in which requests arrived, in order of time; seconds without an arrival have
/// none.
pub fn per_second(samples: &[Sample], rate_bits_per_sec: u64) -> Vec<Second> {
    let mut seconds: BTreeMap<u64, Vec<Sample>> = BTreeMap::new();
    for &sample in samples {
        seconds
            .entry(sample.arrival_ns / 1_000_000_000)
            .or_default()
            .push(sample);
    }
    seconds
        .into_iter()
        .map(|(second, samples)| Second::new(second, &samples, rate_bits_per_sec))
        .collect()
}

impl Second {
    fn new(second: u64, samples: &[Sample], rate_bits_per_sec: u64) -> Self {
        let mean_ms = |of: fn(&Sample, u64) -> u64| {
            mean(completed(samples).map(|(sample, response_ns)| of(sample, response_ns) as f64))
                .map(ms)
        };
        Self {
            second,
            n: samples.len() as u64,
            errors: samples
                .iter()
                .filter(|sample| matches!(sample.outcome, Outcome::Error(_)))
                .count() as u64,
            load: samples
                .iter()
                .map(|sample| sample.alone_ns(rate_bits_per_sec))
                .sum::<f64>()
                / 1e9,
            mean_response_ms: mean_ms(|_, response_ns| response_ns),
            ideal_srpt_mean_response_ms: mean_ms(|sample, _| sample.ideal_srpt_ns),
            ideal_ps_mean_response_ms: mean_ms(|sample, _| sample.ideal_ps_ns),
        }
    }
}
