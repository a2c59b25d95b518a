//! Longest job first: the worst order, kept so that every measurement can show that it notices.

use super::Order;
use crate::Job;

/// Serves the largest job; a job of unknown size counts as the largest of all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ljf;

impl Order for Ljf {
    fn rank(&self, job: &Job) -> u64 {
        u64::MAX - job.size.unwrap_or(u64::MAX)
    }
}
