//! Plays a workload against a policy, without sockets and without a clock.
//!
//! The ranks are those of the crate `policy`, the same that order a real link. Jobs, users and
//! sizes are those of the crate `workload`. Time and work are whole ticks, [`TICKS_PER_MEAN`] of
//! them to the mean size; every server does one unit of work in one unit of time.
//!
//! What a simulation of heavy tails says is easily wrong, so every result comes with an interval
//! over independent replications, with what was really offered, and with warnings where it should
//! not be believed ([`estimate`]). Every single run checks itself: Little's law as an identity of
//! the run, and the work done against the time the servers were busy ([`play`]).

pub mod estimate;
pub mod given;
mod orders;
pub mod play;
pub mod policy;
pub mod replicate;
pub mod server;
pub mod source;
pub mod system;
pub mod tally;

pub use estimate::Estimate;
pub use policy::{Policy, UnknownPolicy};
pub use replicate::{Effort, simulate};
pub use system::{System, SystemError};
pub use tally::{Group, Tally};

/// Ticks of the mean size: what is rounded is below a millionth of it, and a run may be 10^12 sizes
/// long.
pub const TICKS_PER_MEAN: f64 = 16_777_216.0;
