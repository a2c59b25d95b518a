//! Times inside the second: logs of whole seconds are spread by a fixed, seeded rule.
//!
//! The n requests logged in second t get the n sorted values t + u, u uniform in [0, 1), from a
//! generator seeded by t alone. The order is kept, the same trace always gives the same times,
//! whatever the seed of the run. A trace with any fraction of a second in it is taken as it is.

use super::TraceRequest;
use crate::rng::Rng;

/// Names the random stream of this rule.
const PURPOSE: u64 = 1;

/// Spreads requests with equal whole-second times inside their second; in order of time before and
/// after.
pub fn within_seconds(requests: &mut [TraceRequest]) {
    if requests.iter().any(|request| request.time_s.fract() != 0.0) {
        return;
    }
    for same_second in requests.chunk_by_mut(|a, b| a.time_s == b.time_s) {
        let mut rng = Rng::new(same_second[0].time_s as u64, PURPOSE);
        let mut offsets_s: Vec<f64> = same_second.iter().map(|_| rng.uniform()).collect();
        offsets_s.sort_by(f64::total_cmp);
        for (request, offset_s) in same_second.iter_mut().zip(offsets_s) {
            request.time_s += offset_s;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(times_s: &[f64]) -> Vec<f64> {
        let request = |(client, &time_s): (usize, &f64)| TraceRequest {
            time_s,
            object: 0,
            client: client as u32,
        };
        let mut requests: Vec<TraceRequest> = times_s.iter().enumerate().map(request).collect();
        within_seconds(&mut requests);
        assert!(requests.iter().map(|request| request.client).is_sorted());
        requests.iter().map(|request| request.time_s).collect()
    }

    #[test]
    fn each_stays_in_its_second_and_in_order() {
        let logged_s = [0.0, 0.0, 0.0, 5.0, 6.0, 6.0];
        let spread_s = spread(&logged_s);
        assert!(spread_s.is_sorted_by(|a, b| a < b));
        assert!(
            logged_s
                .iter()
                .zip(&spread_s)
                .all(|(logged_s, spread_s)| *logged_s == spread_s.floor())
        );
    }

    #[test]
    fn a_second_is_spread_the_same_in_any_trace() {
        assert_eq!(spread(&[0.0, 7.0, 7.0])[1..], spread(&[7.0, 7.0]));
    }

    #[test]
    fn times_with_fractions_are_kept() {
        assert_eq!(spread(&[0.0, 0.0, 0.5]), [0.0, 0.0, 0.5]);
    }
}
