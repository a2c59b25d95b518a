//! An attachment at one instant, as values: what `attach top` and `attach status` show, and what
//! programs read (docs/attach.md).

use serde::{Deserialize, Serialize};

/// An attachment at one instant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The process that holds it.
    pub pid: u32,
    /// The device.
    pub device: String,
    /// Rate of the link; where it is found, what may leave now, none: nothing is limited.
    pub rate_bits_per_sec: Option<u64>,
    /// How that rate is found; none: it was given.
    pub uplink: Option<UplinkView>,
    /// The servers' ports.
    pub ports: Vec<u16>,
    /// Since when, s.
    pub uptime_s: f64,
    /// How the programs hang on the device: `tcx` or `clsact`.
    pub via: String,
    /// Whether lengths in heads are read.
    pub reads_heads: bool,
    /// TLS libraries before which lengths are read, as their processes see them.
    pub tls_libraries: Vec<String>,
    /// Why lengths under TLS are not read, or not all.
    pub tls_problem: Option<String>,
    /// Highest first.
    pub bands: Vec<BandView>,
    /// Smallest first.
    pub sizes: Vec<SizeView>,
    /// Responses that began.
    pub responses: u64,
    /// Those of them that had a known length.
    pub sized_responses: u64,
    /// Those of them with a length that was read before it was encrypted.
    pub sized_by_tls: u64,
    /// Responses without a known length for which it counted what stood in their socket.
    pub ordered_by_socket: u64,
    /// Responses that ended and did not have the length that was known of them.
    pub wrong_lengths: u64,
    /// Calls by which servers handed plain text to their TLS libraries.
    pub tls_writes: u64,
    /// Responses under way.
    pub under_way: u64,
    /// Responses on connections that were reset.
    pub broken_responses: u64,
    /// Packets sent again.
    pub resent_packets: u64,
    /// SYN-ACKs.
    pub syn_acks: u64,
    /// Those of them that went last in a flood.
    pub lowered_syn_acks: u64,
    /// Beginnings and ends that were not seen in time.
    pub lost_events: u64,
    /// What ordering would give, where it is only looked at.
    pub observed: Option<ObservedView>,
}

/// What the last responses took, and what the same ones would have taken on the same link by other
/// orders, without clients' round trips.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedView {
    /// The queue that is before the device, and would be replaced; none: there is none.
    pub queue: Option<String>,
    /// How many responses.
    pub responses: u64,
    /// What they took in the mean, ms.
    pub mean_response_ms: Option<f64>,
    /// The same of a link that is shared equally.
    pub equal_mean_response_ms: Option<f64>,
    /// The same shortest first.
    pub shortest_mean_response_ms: Option<f64>,
}

/// An uplink with a rate that is found while traffic flows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct UplinkView {
    /// What is believed: `open`, `trial`, `drain`, `hold` or `probe`.
    pub state: String,
    /// Whether nothing is changed, and `decisions` are what would be.
    pub observes: bool,
    /// The most that is ever let through; none: neither given nor known of the device.
    pub most_bits_per_sec: Option<u64>,
    /// What the link is believed to carry; none: not known.
    pub carries_bits_per_sec: Option<u64>,
    /// What arrived in a second, over the last half.
    pub delivered_bits_per_sec: u64,
    /// What all clients wait for beyond this host, ms.
    pub waits_ms: f64,
    /// Clients heard of just now.
    pub clients: u64,
    /// Those of them with next to nothing under way, who can say what all wait for.
    pub light_clients: u64,
    /// Decisions so far.
    pub decided: u64,
    /// The last of them, oldest first.
    pub decisions: Vec<DecisionView>,
}

/// A change of the rate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DecisionView {
    /// How long ago, s.
    pub ago_s: f64,
    /// What is believed from then on.
    pub state: String,
    /// What may leave from then on; none: nothing is limited.
    pub rate_bits_per_sec: Option<u64>,
    /// What the link was believed to carry; none: not known.
    pub carries_bits_per_sec: Option<u64>,
    /// What clients waited for, ms.
    pub waits_ms: f64,
    /// Why.
    pub why: String,
}

/// One band.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BandView {
    /// The most that a response in it still lacks, or has had where its length is not known, bytes;
    /// none: the last band.
    pub up_to_bytes: Option<u64>,
    /// Flows that had their last packet in it, closed ones that are remembered among them.
    pub flows: u64,
    /// Packets that left in it.
    pub sent_packets: u64,
    /// Bytes that left in it.
    pub sent_bytes: u64,
    /// Packets there was no room for.
    pub dropped_packets: u64,
    /// Bytes that wait.
    pub backlog_bytes: u64,
}

/// Responses of one size class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeView {
    /// The largest of the class, bytes; none: the last class.
    pub up_to_bytes: Option<u64>,
    /// Responses that ended.
    pub responses: u64,
    /// Their mean response time, ms.
    pub mean_response_ms: Option<f64>,
    /// Those of them that FAIR has done too.
    pub compared_responses: u64,
    /// Their mean, ms.
    pub compared_mean_response_ms: Option<f64>,
    /// The mean that FAIR would have given them, ms.
    pub fair_mean_response_ms: Option<f64>,
}

/// A mean in ms of a sum in ns.
pub(crate) fn mean_ms(sum_ns: u128, count: u64) -> Option<f64> {
    (count > 0).then(|| sum_ns as f64 / count as f64 / 1e6)
}
