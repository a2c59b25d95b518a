//! Fastest connection first (Murta and Corlassoli 2003, ITC 18): what would take the least time to
//! send, by its size and its own connection.
//!
//! Taken from them: size and throughput of the connection together decide, so that a short response
//! to a fast client goes before one to a slow client. Filled in: what remains stands for the size,
//! as in SRPT, and the rank is the quotient of the two, the time the rest would take if no other
//! job was served. How the throughput is estimated is the driver's affair
//! ([`Path::rate_per_sec`](crate::Path)).
//!
//! Where all clients are as fast as the link, or none is known, this is SRPT.

use super::{BandMeasure, Order};
use crate::{Job, Path};

/// What a connection of which nothing is known yet is taken for, units a second: 8 Mbit/s where the
/// unit is the byte.
const UNKNOWN_RATE_PER_SEC: u64 = 1_000_000;
const NS_PER_SEC: u128 = 1_000_000_000;

/// Serves the job that could be done soonest if it was alone.
///
/// A job of unknown size counts what it has had instead of what remains.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fcf;

impl Fcf {
    /// The time that `amount` takes over `path` alone, ns.
    pub fn expected_ns(amount: u64, path: Path) -> u64 {
        let rate_per_sec = path.rate_per_sec.unwrap_or(UNKNOWN_RATE_PER_SEC).max(1);
        let expected_ns = u128::from(amount) * NS_PER_SEC / u128::from(rate_per_sec);
        u64::try_from(expected_ns).unwrap_or(u64::MAX)
    }
}

impl Order for Fcf {
    const BANDS: BandMeasure = BandMeasure::ExpectedTime;

    fn rank(&self, job: &Job) -> u64 {
        Self::expected_ns(job.remaining().unwrap_or(job.attained), job.path)
    }
}
