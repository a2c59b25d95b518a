//! Arrival times inside a phase, as fractions of its length.

use crate::rng::Rng;
use crate::trace::Trace;
use std::ops::Range;

/// `count` arrivals of a Poisson process given that number: count + 1 exponential gaps, scaled to the phase.
pub fn poisson(count: u64, rng: &mut Rng) -> Vec<f64> {
    scaled((0..=count).map(|_| rng.exponential()).collect())
}

/// The arrivals of the requests `run` at the trace's own pace: the gap before each and the gap after the last, scaled to the phase.
///
/// Between the last request of the trace and its repetition lies one mean gap. A run without any gap is spread evenly.
pub fn of_trace(trace: &Trace, run: Range<u64>) -> Vec<f64> {
    let requests = &trace.requests;
    let span_s = requests[requests.len() - 1].time_s - requests[0].time_s;
    let gap_s = |index: u64| match (index % requests.len() as u64) as usize {
        0 => span_s / requests.len() as f64,
        at => requests[at].time_s - requests[at - 1].time_s,
    };
    scaled((run.start..=run.end).map(gap_s).collect())
}

/// Sums up all gaps but the last, in units of all of them.
fn scaled(mut gaps: Vec<f64>) -> Vec<f64> {
    if gaps.iter().sum::<f64>() <= 0.0 {
        gaps.fill(1.0);
    }
    let total: f64 = gaps.iter().sum();
    gaps.pop();
    let mut sum = 0.0;
    for gap in &mut gaps {
        sum += *gap;
        *gap = sum / total;
    }
    gaps
}
