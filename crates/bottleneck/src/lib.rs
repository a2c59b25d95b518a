//! Finds what the narrowest link on the way out carries, while traffic flows.
//!
//! When a link beyond this host is full, all clients' packets wait in its queue: their delays rise
//! together, and what arrives at all of them together is what the link carries. From then on
//! [`Search`] asks for a little less, so that the queue stands here, where it can be ordered;
//! follows the link down at once, and up by probes. Where a lower rate does not make the delays
//! fall, the queue is not ours, and nothing is limited. Without traffic nothing is known, and
//! nothing changes.
//!
//! Time, delays and counters come in as values, ten times a second; decisions with their reasons
//! go out.

mod addresses;
mod decision;
mod journal;
mod rates;
mod search;

pub use addresses::Waits;
pub use decision::{Decision, State, Why};
pub use journal::Journal;
pub use rates::Totals;
pub use search::{Limits, STEP_NS, Search};

/// The most where neither the device nor the operator gives one, bits a second: no link beyond is
/// as fast.
pub const NO_LIMIT_BITS_PER_SEC: u64 = 10_000_000_000;

/// A rate as a limit, bits a second; none where it limits nothing.
pub fn limit(rate_bits_per_sec: u64) -> Option<u64> {
    (rate_bits_per_sec < NO_LIMIT_BITS_PER_SEC).then_some(rate_bits_per_sec)
}
