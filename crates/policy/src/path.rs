//! What is known of the network between a server and a job's client.

/// One client's network as it was measured last; what is not known is left out, and a policy that
/// wants it then orders as SRPT does.
///
/// Both must be figures of the network alone. A round trip that includes the wait in the server's
/// own queue, or a rate that is low because others were served, would feed an order with its own
/// consequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// The least round trip there and back, ns.
    pub rtt_ns: Option<u64>,
    /// What the client could be sent if no other job was served, in the driver's unit of service a
    /// second.
    pub rate_per_sec: Option<u64>,
}

impl Path {
    /// Whether anything was measured.
    pub fn is_known(&self) -> bool {
        self.rtt_ns.is_some() || self.rate_per_sec.is_some()
    }
}
