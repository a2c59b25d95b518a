//! Preemptive shortest job first: by the whole size, not by what is left.

use super::{BandMeasure, Order};
use crate::Job;

/// Serves the smallest job; a job of unknown size ranks by the service it has had.
#[derive(Clone, Copy, Debug, Default)]
pub struct Psjf;

impl Order for Psjf {
    const BANDS: BandMeasure = BandMeasure::Size;

    fn rank(&self, job: &Job) -> u64 {
        job.size.unwrap_or(job.attained)
    }
}
