//! Where the figures come from that others keep: the uplink, its shadow, the log, the upstreams.

use crate::access_log::AccessLog;
use crate::metrics::{Metrics, SIZE_CLASSES};
use serde::Serialize;
use sooner_uplink::Uplink;
use sooner_uplink::snapshot::Load;
use std::sync::Arc;

/// Everything that is asked when somebody wants to know.
pub struct Sources {
    /// What was counted.
    pub metrics: Arc<Metrics>,
    /// The log.
    pub log: AccessLog,
    /// Asks the uplink; see [`UplinkReading::of`].
    pub uplink: Box<dyn Fn() -> UplinkReading>,
    /// Asks the upstreams, one reading a server.
    pub upstreams: Box<dyn Fn() -> Vec<UpstreamReading>>,
}

/// An uplink at one moment.
#[derive(Clone, Debug, Default)]
pub struct UplinkReading {
    /// The policy in force, `none` without order.
    pub policy: String,
    /// How the order is made, in words.
    pub mechanism: String,
    /// The rate of the link; `None` without a limit.
    pub rate_bits_per_sec: Option<u64>,
    /// Bytes charged to the link since the start, packet headers included; without a limit those given to sockets.
    pub sent_wire_bytes: u64,
    /// Responses that wait for their turn, by size.
    pub waiting: [ClassLoad; SIZE_CLASSES.len()],
    /// Responses that are being sent, or wait for their own client, by size.
    pub sending: [ClassLoad; SIZE_CLASSES.len()],
}

impl UplinkReading {
    /// Asks `uplink`.
    pub fn of(uplink: &Uplink) -> Self {
        let now = uplink.snapshot();
        Self {
            policy: now.policy.into(),
            mechanism: uplink.describe().into(),
            rate_bits_per_sec: now.rate_bits_per_sec,
            sent_wire_bytes: now.wire_bytes.unwrap_or(now.socket_bytes),
            waiting: now.waiting.map(ClassLoad::of),
            sending: now.sending.map(ClassLoad::of),
        }
    }
}

/// Responses of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClassLoad {
    /// How many.
    pub jobs: u64,
    /// Bytes they still have to send.
    pub bytes: u64,
}

impl ClassLoad {
    fn of(load: Load) -> Self {
        Self {
            jobs: load.jobs,
            bytes: load.remaining_bytes,
        }
    }
}

/// A server behind this one at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct UpstreamReading {
    /// The upstream's name.
    pub upstream: String,
    /// The server's address.
    pub server: String,
    /// Whether requests are sent to it.
    pub is_up: bool,
    /// Requests it has now.
    pub requests_inside: u64,
    /// How many it may have at once; `None`: no limit.
    pub requests_inside_max: Option<u64>,
    /// Requests that wait outside for a place at this upstream.
    pub requests_waiting: u64,
    /// Requests it got in all.
    pub requests_total: u64,
    /// Requests that failed there: no connection, no answer in time, a broken one.
    pub failures_total: u64,
}
