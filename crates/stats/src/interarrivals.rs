//! How far the gaps between a run's arrivals were from the requested law.

use serde::{Deserialize, Serialize};

/// The result of a test of the gaps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interarrivals {
    /// The requested law.
    pub law: GapLaw,
    /// Gaps tested.
    pub gaps: u64,
    /// Distance from the law: for `exponential` the largest between the two distributions, for
    /// `trace` the share of gaps that are off by more than half a mean gap.
    pub distance: f64,
    /// Largest distance of a run that may be believed.
    pub limit: f64,
}

/// How gaps between arrivals are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GapLaw {
    /// Exponential: a Poisson process.
    Exponential,
    /// Each as in the trace, scaled.
    Trace,
}
