//! Nudge-M: first come, first served, where a small job passes the large ones that wait and are
//! among the last M that came before it (Grosof, Yang, Scully and Harchol-Balter 2021 for one;
//! Charlet and Van Houdt 2024 for M).
//!
//! It needs to tell two kinds apart and no more, and no clock: the rank follows from the place in
//! the order of arrival. A large job counts as if it had come M places later; none is passed by a
//! job that came more than M places after it.

use super::Order;
use crate::Job;

/// Serves in the order of arrival but for small jobs, and each to its end.
///
/// A job of unknown size is large.
#[derive(Clone, Copy, Debug)]
pub struct Nudge {
    small_max: u64,
    places: u64,
}

impl Nudge {
    /// Jobs up to `small_max` are small, and pass large ones among the last `places`.
    pub fn new(small_max: u64, places: u64) -> Self {
        Self { small_max, places }
    }
}

impl Order for Nudge {
    fn rank(&self, job: &Job) -> u64 {
        if job.attained > 0 {
            return 0;
        }
        let is_small = job.size.is_some_and(|size| size <= self.small_max);
        // Twice the place, so that a small job goes just before the last one it passes.
        let double = |place: u64| place.saturating_mul(2);
        if is_small {
            double(job.sequence).saturating_add(1)
        } else {
            double(job.sequence.saturating_add(self.places)).saturating_add(2)
        }
    }
}
