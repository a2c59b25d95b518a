//! A response as it is announced, and how it went.

use sooner_policy::Payer;

/// A response that is about to be written.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResponseStart {
    /// Bytes of the body, if known.
    pub body_bytes: Option<u64>,
    /// Whether that is an estimate, which may prove too low ([`crate::LinkScheduler::enlarge`]).
    pub is_estimate: bool,
    /// Bytes of the head; an estimate will do.
    pub head_bytes: u32,
    /// What is written around head and body: TLS records ([`crate::wire::tls_overhead_bytes`]),
    /// chunk sizes, frames; an estimate will do.
    pub overhead_bytes: u64,
    /// Its class, across all connections: 0 goes before 1, whatever the policy says. What a client
    /// says must not decide it.
    pub class: u8,
    /// Who is charged for it, where that is another than the connection's client: whom a proxy in
    /// between names.
    pub payer: Option<Payer>,
    /// Whether another protocol follows, for as long as the connection lasts (status 101). Each of
    /// its bursts, from a write to the flush that leaves nothing to write, is then a job of its
    /// own: as one job it would always be the oldest of all, and of the lowest rank after all it
    /// ever sent.
    pub is_tunnel: bool,
}

impl ResponseStart {
    /// Everything that will be written, bytes, if known.
    pub fn size_bytes(&self) -> Option<u64> {
        let around_bytes = u64::from(self.head_bytes).saturating_add(self.overhead_bytes);
        self.body_bytes
            .map(|body_bytes| body_bytes.saturating_add(around_bytes))
    }
}

/// How a response went: the fields that say why it took as long as it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobReport {
    /// Time the response was ready to be written and others went, ns.
    pub wait_ns: u64,
    /// The rest of its time, ns: being written, or waiting for its own client.
    pub service_ns: u64,
    /// Bytes written for it, head included; of a stream, the payload of its DATA frames.
    pub sent_bytes: u64,
    /// The policy in force.
    pub policy: &'static str,
    /// Its rank when it started; lower goes first.
    pub rank_at_start: u64,
    /// Bytes written for other responses between its start and its end.
    pub bytes_of_others_meanwhile: u64,
    /// Whether all of it was handed to the kernel.
    pub completed: bool,
}

impl JobReport {
    /// Of a response on a connection that was gone before its first byte.
    pub fn never_sent(policy: &'static str) -> Self {
        Self {
            wait_ns: 0,
            service_ns: 0,
            sent_bytes: 0,
            policy,
            rank_at_start: 0,
            bytes_of_others_meanwhile: 0,
            completed: false,
        }
    }
}
