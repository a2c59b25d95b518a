//! Who goes next.
//!
//! A policy is a rank function: it gives every job an integer from what is known of the job, and
//! the lowest rank is served next (after Scully, Harchol-Balter and Scheller-Wolf's SOAP). This
//! crate holds the rank functions, the queue that keeps jobs in rank order, strict priority between
//! classes, and the guard that keeps any of them from starving a job.
//!
//! It has no clock, no sockets, no floats and no dependencies: time comes in as a [`Time`], amounts
//! of service as `u64` in the unit of the caller (bytes on a link, nanoseconds on a processor),
//! decisions go out as a [`Grant`]. The same code therefore orders a real link and a simulated one.
//! Every call costs O(log n) in the number of jobs.
#![no_std]
#![forbid(unsafe_code)]
// Ranks compare exactly, on any machine.
#![deny(clippy::float_arithmetic)]

extern crate alloc;

mod classes;
mod cutoffs;
mod guard;
mod hrrn;
mod job;
mod least_used;
mod logarithm;
mod name;
pub mod order;
mod path;
mod queue;
mod scheduler;
mod shares;
mod steps;
mod targets;
mod time;
mod virtual_time;

pub use classes::Classes;
pub use cutoffs::{BAND_COUNT, Cutoffs, Largest};
pub use guard::{Guard, GuardDebts, GuardLimits, WholeGuard};
pub use hrrn::Hrrn;
pub use job::{Arrival, ClientId, Job, JobId, Payer};
pub use least_used::{HALF_LIFE_NS, LeastUsed, NETWORK_PART};
pub use name::{PolicyName, UnknownPolicy};
pub use order::Order;
pub use path::Path;
pub use queue::Queue;
pub use scheduler::{Grant, Scheduler};
pub use shares::Shares;
pub use targets::{Lateness, Promise, Targets};
pub use time::Time;
pub use virtual_time::VirtualTime;
