//! Longest job first, each to its end, and the same where a longer one interrupts.

use super::Order;
use crate::Job;

/// Serves the largest job of those that wait, and then no other until it is done: what batch
/// systems do to fill their machines.
///
/// A job of unknown size counts as the largest of all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ljf;

impl Order for Ljf {
    fn rank(&self, job: &Job) -> u64 {
        match job.attained {
            0 => (u64::MAX - job.size.unwrap_or(u64::MAX)).max(1),
            _ => 0,
        }
    }
}

/// Serves the largest job, interrupting any other: the worst order, kept so that every measurement
/// can show that it notices.
///
/// A job of unknown size counts as the largest of all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pljf;

impl Order for Pljf {
    fn rank(&self, job: &Job) -> u64 {
        u64::MAX - job.size.unwrap_or(u64::MAX)
    }
}
