//! Arrival times inside a phase, as fractions of its length.

use crate::rng::Rng;
use crate::trace::Trace;
use std::ops::Range;

/// `count` arrivals of a Poisson process given that number: count + 1 exponential gaps, scaled to
/// the phase.
pub fn poisson(count: u64, rng: &mut Rng) -> Vec<f64> {
    scaled((0..=count).map(|_| rng.exponential()).collect())
}

/// The arrivals of the requests `run` at the trace's own pace: the gap before each and the gap
/// after the last, scaled to the phase.
///
/// Between the last request of the trace and its repetition lies one mean gap. A run without any
/// gap is spread evenly.
pub fn of_trace(trace: &Trace, run: Range<u64>) -> Vec<f64> {
    let gaps = (run.start..=run.end).map(|index| trace.gap_s(index));
    scaled(gaps.collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_gaps_have_the_mean_and_the_variation_of_the_exponential() {
        let count = 100_000;
        let times = poisson(count, &mut Rng::new(1, 0));
        assert_eq!(times.len() as u64, count);
        assert!(times.is_sorted() && times[0] > 0.0 && times[times.len() - 1] < 1.0);
        let gaps: Vec<f64> = times
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) * count as f64)
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let longer_than_mean =
            gaps.iter().filter(|&&gap| gap > 1.0).count() as f64 / gaps.len() as f64;
        assert!(
            (mean - 1.0).abs() < 0.01 && (variance - 1.0).abs() < 0.03,
            "{mean} {variance}"
        );
        assert!(
            (longer_than_mean - (-1.0f64).exp()).abs() < 0.01,
            "{longer_than_mean}"
        );
    }

    fn trace(times: &[f64]) -> Trace {
        let lines: String = times
            .iter()
            .map(|time| format!("{time},1,0,0,200\n"))
            .collect();
        let requests = format!("t,bytes,client,object,status\n{lines}");
        let objects = "object,requests,max_bytes,ext\n0,1,1,html\n";
        Trace::read("web", (requests.as_bytes(), "a"), (objects.as_bytes(), "b")).expect("a trace")
    }

    #[test]
    fn the_traces_gaps_keep_their_proportions() {
        let trace = trace(&[0.0, 0.5, 2.0, 4.0]);
        // Before request 1 0.5 s, before 2 1.5 s, after it 2 s.
        assert_eq!(of_trace(&trace, 1..3), [0.125, 0.5]);
        // Round the end: 2 s, then the mean gap of 1 s, then 0.5 s.
        assert_eq!(of_trace(&trace, 3..5), [2.0 / 3.5, 3.0 / 3.5]);
    }

    #[test]
    fn a_trace_without_gaps_is_spread_evenly() {
        assert_eq!(of_trace(&trace(&[0.5, 0.5, 0.5]), 0..3), [0.25, 0.5, 0.75]);
    }
}
