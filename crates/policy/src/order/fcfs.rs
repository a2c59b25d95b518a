//! First come, first served.

use super::Order;
use crate::Job;

/// Serves jobs to the end in the order of arrival.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fcfs;

impl Order for Fcfs {
    fn rank(&self, job: &Job) -> u64 {
        job.sequence
    }
}
