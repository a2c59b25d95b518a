//! The access log: one line of JSON a response, with what says why it took as long as it did.
//!
//! Lines are collected in memory and written by a thread of their own, so a slow or full disk costs lines, never time.

mod json;
mod record;
mod timestamp;
mod writer;

pub use record::{Record, Remote};
pub use timestamp::WallClock;
pub use writer::{AccessLog, Closer, Destination};
