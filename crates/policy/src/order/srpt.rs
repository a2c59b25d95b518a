//! Shortest remaining processing time: the least possible mean response time on one server (Schrage
//! 1968).

use super::{BandMeasure, Order};
use crate::Job;

/// Serves the job with the least service left.
///
/// A job of unknown size ranks by the service it has had, as under LAS: what has been long so far
/// is expected to stay long.
#[derive(Clone, Copy, Debug, Default)]
pub struct Srpt;

impl Order for Srpt {
    const BANDS: BandMeasure = BandMeasure::Remaining;

    fn rank(&self, job: &Job) -> u64 {
        job.remaining().unwrap_or(job.attained)
    }
}
