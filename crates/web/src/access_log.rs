//! The access log: one line a response, with what says why it took as long as it did.
//!
//! The calls, for every response: [`AccessLog::begin`] while the request is at hand,
//! [`OpenRecord::with_response`] when the status is known, and [`AccessLog::write`] when the
//! response is over. Lines are collected in memory and written by a thread of their own, so a slow
//! or full disk costs lines, never time. [`AccessLog::reopen`] is for log rotation.

mod combined;
mod config;
mod json;
mod output;
mod record;
mod timestamp;
mod upstream_facts;
mod writer;

pub use config::{Destination, LogConfig, LogFormat};
pub use record::{OpenRecord, Record, Remote, ResponseFacts, body_bytes_sent};
pub use timestamp::{WallClock, rfc3339};
pub use upstream_facts::UpstreamFacts;
pub use writer::{AccessLog, Closer};
