//! Least attained service (foreground-background): needs no sizes.

use super::{BandMeasure, Order};
use crate::Job;

/// Serves the job that has had the least; equals take turns of one quantum, and so share.
#[derive(Clone, Copy, Debug)]
pub struct Las {
    quantum: u64,
}

impl Las {
    /// Turns of `quantum` units of service.
    pub fn new(quantum: u64) -> Self {
        Self {
            quantum: quantum.max(1),
        }
    }
}

impl Order for Las {
    const BANDS: BandMeasure = BandMeasure::Attained;

    fn rank(&self, job: &Job) -> u64 {
        job.attained
    }

    fn max_amount(&self, _job: &Job) -> u64 {
        self.quantum
    }
}
