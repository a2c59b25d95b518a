//! Boost: first come, first served, where a small job counts as if it had come earlier (Yu and
//! Scully 2024, gamma-Boost).
//!
//! The rank is the arrival less b(s) = ln(1 / (1 - e^(-s / scale))) x scale. A job of many scales
//! has no boost; one of a scale has about half a scale, and each halving of a small size is worth
//! ln 2 of a scale more. So the scale says how long a small job may pass large ones: none is first
//! come, first served, and one far above all waits is shortest first. With a light tail of sizes
//! and 1 / scale the rate at which the tail of first come, first served decays, no order has a
//! smaller tail in the limit.
//!
//! Sizes and the scale are in the unit of time: ns. What is served goes on to its end, as behind a
//! backend that cannot be interrupted.

use super::Order;
use crate::Job;
use crate::logarithm::{self, FRACTION_BITS};

/// The longest scale, ns: two years. Longer ones order alike.
const SCALE_MAX: u64 = 1 << 56;

/// Serves the job with the earliest boosted arrival, and then no other until it is done.
///
/// A job of unknown size has no boost.
#[derive(Clone, Copy, Debug)]
pub struct Boost {
    scale: u64,
    /// Of the smallest job: it keeps ranks above 0.
    most: u64,
    interrupts: bool,
}

impl Boost {
    /// With a scale in ns, 0 for first come, first served.
    pub fn new(scale: u64) -> Self {
        let scale = scale.min(SCALE_MAX);
        let mut boost = Self {
            scale,
            most: 0,
            interrupts: false,
        };
        boost.most = boost.earlier_ns(1);
        boost
    }

    /// The same where the job in service is interrupted by one with an earlier boosted arrival.
    pub fn interrupting(scale: u64) -> Self {
        Self {
            interrupts: true,
            ..Self::new(scale)
        }
    }

    /// How much earlier than it came a job of `size` counts, ns.
    pub fn earlier_ns(&self, size: u64) -> u64 {
        if self.scale == 0 {
            return 0;
        }
        let boost = u128::from(logarithm::boost(size, self.scale)) * u128::from(self.scale);
        u64::try_from(boost >> FRACTION_BITS).unwrap_or(u64::MAX)
    }
}

impl Order for Boost {
    fn rank(&self, job: &Job) -> u64 {
        if job.attained > 0 && !self.interrupts {
            return 0;
        }
        job.tag
    }

    fn arrived(&mut self, job: &mut Job) {
        let boost = job.size.map_or(0, |size| self.earlier_ns(size));
        let latest = job.arrived_at.as_ns().saturating_add(self.most);
        job.tag = latest.saturating_sub(boost).saturating_add(1);
    }

    fn enlarged(&mut self, job: &mut Job, _additional: u64) {
        self.arrived(job);
    }
}
