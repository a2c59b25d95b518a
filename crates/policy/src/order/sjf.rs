//! Shortest job first, each to its end: what a backend does that cannot be interrupted.

use super::Order;
use crate::Job;

/// Serves the smallest job of those that wait, and then no other until it is done.
///
/// A job of unknown size counts as the largest of all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sjf;

impl Order for Sjf {
    fn rank(&self, job: &Job) -> u64 {
        match job.attained {
            0 => job.size.unwrap_or(u64::MAX),
            _ => 0,
        }
    }
}
