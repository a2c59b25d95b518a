//! What a link is told at its start.

use crate::band_chooser::BandChooser;
use crate::bucket::transmission_ns;
use crate::siblings::StreamRule;
use crate::wire;
use sooner_policy::{GuardLimits, PolicyName};

/// The most payload that a connection's streams hand over without a limit, and that it may hold
/// before it gets more, bytes: both together bound what a client that does not read costs.
const UNLIMITED_QUANTUM_BYTES: u64 = 32_768;

/// The order of one link.
#[derive(Debug, Default)]
pub struct LinkConfig {
    /// Who goes first; `None`: nothing is ordered but streams, which take turns.
    pub policy: Option<PolicyName>,
    /// Whether, where writes wait, of the clients of a class the one goes first that received the
    /// least of late; the policy then orders the responses of one client.
    pub by_client: bool,
    /// The rate of the link, if there is a limit.
    pub rate_bits_per_sec: Option<u64>,
    /// How the streams of one connection are ordered among themselves.
    pub stream_rule: StreamRule,
    /// How writes wait for the link; `None`: they pass.
    pub pacing: Option<Pacing>,
    /// Chooses the kernel bands, where there are any.
    pub bands: Option<BandChooser>,
}

/// How writes wait for the link.
#[derive(Clone, Copy, Debug)]
pub struct Pacing {
    /// How the link is metered.
    pub limits: LinkLimits,
    /// What keeps every response from starving.
    pub guard: Option<GuardLimits>,
}

impl Pacing {
    /// A link that is never busy, where only the connections' own limits order their streams.
    pub(super) fn of_streams_only() -> Self {
        let limits = LinkLimits::without_rate();
        Self {
            limits,
            guard: Some(GuardLimits::with_turn(limits.quantum_wire_bytes())),
        }
    }
}

/// How a link is metered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLimits {
    /// The rate at which bytes are let out.
    pub rate_bits_per_sec: u64,
    /// The most bytes in one grant.
    pub quantum_bytes: u64,
    /// The most bytes in one grant of a long response above bands, which order what lies ahead of
    /// the link; as much again may lie there.
    pub long_grant_bytes: u64,
    /// How far grants may run ahead of the link, ns of its time: what keeps it busy while the next
    /// writer wakes up.
    pub ahead_ns: u64,
    /// How much time lost to late wake-ups is made up for, ns.
    pub credit_ns: u64,
}

impl LinkLimits {
    /// Grants of half a millisecond: whole segments, at least one, at most 64 KiB; up to two grants
    /// or 1 ms of lateness are made up for.
    pub fn at_rate(rate_bits_per_sec: u64) -> Self {
        let half_ms_bytes = rate_bits_per_sec / 16_000;
        let segments = (half_ms_bytes / wire::SEGMENT_BYTES).clamp(1, 65_536 / wire::SEGMENT_BYTES);
        let quantum_bytes = segments * wire::SEGMENT_BYTES;
        let quantum_ns =
            transmission_ns(wire::payload_cost_bytes(quantum_bytes), rate_bits_per_sec);
        Self {
            rate_bits_per_sec,
            quantum_bytes,
            long_grant_bytes: quantum_bytes,
            ahead_ns: 0,
            credit_ns: (2 * quantum_ns).max(1_000_000),
        }
    }

    /// The same above kernel bands. They order what lies ahead of the link, so a long response gets
    /// 5 ms at a time, and 20 ms of lateness are made up for.
    pub fn above_bands(self) -> Self {
        let bytes = self.rate_bits_per_sec / 1_600;
        let segments = (bytes / wire::SEGMENT_BYTES).min(65_536 / wire::SEGMENT_BYTES);
        Self {
            long_grant_bytes: self.quantum_bytes.max(segments * wire::SEGMENT_BYTES),
            credit_ns: self.credit_ns.max(20_000_000),
            ..self
        }
    }

    /// A link that is never busy: only the connections' own limits order their streams.
    pub fn without_rate() -> Self {
        Self {
            rate_bits_per_sec: u64::MAX,
            quantum_bytes: UNLIMITED_QUANTUM_BYTES,
            long_grant_bytes: UNLIMITED_QUANTUM_BYTES,
            ahead_ns: 0,
            credit_ns: 0,
        }
    }

    /// What is made up for of unused time, ns: nothing of what was idle.
    pub(super) fn credit_of(&self, is_late: bool) -> u64 {
        if is_late { self.credit_ns } else { 0 }
    }

    /// A full grant with its packets' headers: the quantum in the unit in which jobs are counted.
    pub fn quantum_wire_bytes(&self) -> u64 {
        wire::payload_cost_bytes(self.quantum_bytes)
    }

    /// The longest turn that a policy or the guard has to give: of the unit in which jobs are
    /// counted.
    pub fn long_grant_wire_bytes(&self) -> u64 {
        wire::payload_cost_bytes(self.long_grant_bytes)
    }

    /// The most payload in one grant to a stream: with its frames and records it fills whole
    /// segments, as other grants do.
    pub fn stream_quantum_bytes(&self) -> u64 {
        self.quantum_bytes
            .saturating_sub(wire::framing_bytes(self.quantum_bytes))
            .max(1)
    }
}
