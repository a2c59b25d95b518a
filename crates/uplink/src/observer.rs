//! Who else wants to know of every response: a model played beside the real uplink, for instance.

use sooner_link::JobReport;
use sooner_policy::Time;

/// Hears of every response on an uplink; called outside its lock, on the thread that made the call.
/// What threads report at the same time is heard in any order, so times may go back by a moment.
///
/// A response that found its connection gone is not heard of.
pub trait Observer: Send + Sync {
    /// The response `job` begins; `wire_bytes` are its size with packet headers and, on a new
    /// connection, the packets that opened it, `None` if unknown.
    fn started(&self, job: u64, wire_bytes: Option<u64>, now: Time);

    /// The response `job` is over, written or given up. The function that its owner gave is called
    /// next on this thread.
    fn ended(&self, job: u64, now: Time, report: &JobReport);

    /// The link is believed to carry so much from now on, none: not known; told only where its rate
    /// is found.
    fn rate_changed(&self, _rate_bits_per_sec: Option<u64>) {}
}
