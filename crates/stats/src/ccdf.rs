//! The complementary distribution of the response time: which share of the requests took at least
//! so long.

use crate::group::completed;
use crate::{Sample, ms};
use serde::{Deserialize, Serialize};

/// Most points kept of the curve; log-spaced in the share, so that the tail keeps every request and
/// the body is thinned.
pub const MAX_POINTS: usize = 400;

/// One point: this share of the completed requests took at least so long, measured and under each
/// ideal.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;

    fn samples(responses_ms: impl Iterator<Item = u64>) -> Vec<Sample> {
        let sample = |response_ms: u64| Sample {
            arrival_ns: 0,
            size_bytes: 1,
            work_bytes: 1,
            response_ns: Some(response_ms * 1_000_000),
            first_byte_ns: None,
            longest_silence_ns: None,
            send_lag_ns: 0,
            outcome: Outcome::Ok,
            client: 0,
            aborts: 0,
            ideal_srpt_ns: 1_000_000,
            ideal_las_ns: response_ms * 1_500_000,
            ideal_ps_ns: response_ms * 2_000_000,
        };
        responses_ms.map(sample).collect()
    }

    #[test]
    fn each_share_takes_at_least_so_long() {
        let points = ccdf(&samples([30, 10, 20, 20].into_iter()));
        let measured: Vec<(f64, f64)> = points
            .iter()
            .map(|point| (point.fraction_at_least, point.response_ms))
            .collect();
        assert_eq!(
            measured,
            [(1.0, 10.0), (0.75, 20.0), (0.5, 20.0), (0.25, 30.0)]
        );
        assert!(
            points
                .iter()
                .all(|point| point.ideal_srpt_response_ms == 1.0)
        );
        assert!(
            points
                .iter()
                .all(|point| point.ideal_ps_response_ms == 2.0 * point.response_ms)
        );
    }

    #[test]
    fn the_tail_is_kept_and_the_body_thinned() {
        let points = ccdf(&samples(1..=100_000));
        assert!(points.len() <= MAX_POINTS && points.len() > 300);
        let longest: Vec<f64> = points
            .iter()
            .rev()
            .take(10)
            .map(|point| point.response_ms)
            .collect();
        assert_eq!(longest[..3], [100_000.0, 99_999.0, 99_998.0]);
        assert_eq!(
            (points[0].fraction_at_least, points[0].response_ms),
            (1.0, 1.0)
        );
        assert!(points.is_sorted_by(
            |a, b| a.fraction_at_least > b.fraction_at_least && a.response_ms < b.response_ms
        ));
    }

    #[test]
    fn without_a_completed_request_there_is_no_curve() {
        assert_eq!(ccdf(&[]), []);
        let lost = Sample {
            outcome: Outcome::Incomplete,
            ..samples([1].into_iter())[0]
        };
        assert_eq!(ccdf(&[lost]), []);
    }
}
