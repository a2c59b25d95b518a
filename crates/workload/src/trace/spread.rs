//! Times inside the second: logs of whole seconds are spread by a fixed, seeded rule.
//!
//! The n requests logged in second t get the n sorted values t + u, u uniform in [0, 1), from a generator seeded by t alone. The
//! order is kept, the same trace gives the same times for ever, whatever the seed of the run. A trace with any fraction of a
//! second in it is taken as it is.

use super::TraceRequest;
use crate::rng::Rng;

/// Names the random stream of this rule.
const PURPOSE: u64 = 1;

/// Spreads requests with equal whole-second times inside their second; in order of time before and after.
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
