//! One request as it was measured: the only input of this crate.

use serde::{Deserialize, Serialize};

/// One request of a run. Times are nanoseconds; `arrival_ns` counts from the start of the run, the
/// others are durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// When the request was sent, in ns since the start of the run.
    pub arrival_ns: u64,
    /// Body of the response in bytes: what the groups are ranked by.
    pub size_bytes: u64,
    /// Bytes of the whole response on the wire (`sooner_workload::wire::work_bytes`).
    pub work_bytes: u64,
    /// From the arrival (the first packet, also of the connection if new) to the last byte, in ns,
    /// of the last attempt where there were several; none unless the outcome is [`Outcome::Ok`].
    pub response_ns: Option<u64>,
    /// From the arrival to the first byte of the response, in ns; none if no byte came.
    pub first_byte_ns: Option<u64>,
    /// Longest time in which nothing of the response came, from the request to its last byte, in
    /// ns; none unless the outcome is [`Outcome::Ok`].
    #[serde(default)]
    pub longest_silence_ns: Option<u64>,
    /// How late the generator sent the request, in ns after the time it was planned for.
    pub send_lag_ns: u64,
    /// How the request ended.
    pub outcome: Outcome,
    /// Index of the source address it came from.
    #[serde(default)]
    pub client: u32,
    /// How often its user gave up waiting and closed the connection.
    #[serde(default)]
    pub aborts: u32,
    /// Response time under ideal SRPT for the very same arrivals, in ns.
    pub ideal_srpt_ns: u64,
    /// Response time under ideal least attained service for the very same arrivals, in ns.
    #[serde(default)]
    pub ideal_las_ns: u64,
    /// Response time under ideal processor sharing for the very same arrivals, in ns.
    pub ideal_ps_ns: u64,
}

impl Sample {
    /// The response time in ns if the request was answered in full.
    pub fn completed_ns(&self) -> Option<u64> {
        match self.outcome {
            Outcome::Ok => self.response_ns,
            Outcome::Error(_) | Outcome::Incomplete | Outcome::GivenUp => None,
        }
    }

    /// The time in ns this response would take alone on a link of `rate_bits_per_sec`.
    pub fn alone_ns(&self, rate_bits_per_sec: u64) -> f64 {
        self.work_bytes as f64 * 8e9 / rate_bits_per_sec as f64
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Answered in full and as expected.
    Ok,
    /// Failed.
    Error(ErrorKind),
    /// Still under way when the run ended.
    Incomplete,
    /// Its user waited as often as it would, and got nothing.
    GivenUp,
}

/// What went wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The connection was refused or could not be made.
    Connect,
    /// The connection was reset or closed before the response's end.
    Reset,
    /// Nothing came for longer than the client waits.
    Timeout,
    /// The status code was not the expected one.
    Status,
    /// The response was not HTTP, or its length was not as announced.
    Protocol,
    /// The body differed from the file's content.
    Body,
    /// The generator's own fault: no descriptor or port was left.
    Local,
}
