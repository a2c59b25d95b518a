//! The record of a connection or a stream: all that is known of it.

use super::FlowId;
use super::account::Account;
use crate::band_chooser::BandInput;
use crate::path_estimate::PathEstimate;
use crate::send_buffer::SendBuffer;
use crate::siblings::{Sibling, Siblings};
use crate::wire;
use sooner_policy::{Path, Payer, Time};
use std::collections::BTreeSet;
use std::task::Waker;

/// A connection or a stream.
#[derive(Default)]
pub(super) struct Flow {
    /// Whether it takes turns: a connection where the link is paced or it has streams, a stream
    /// until it has handed over everything.
    pub(super) is_ordered: bool,
    /// Whether the policy has a job of it.
    pub(super) has_job: bool,
    /// Whether the policy may give it a turn.
    pub(super) is_ready: bool,
    /// Whether it could have gone before the turn it has now.
    pub(super) has_waited: bool,
    /// When it wrote last.
    pub(super) wrote_at: Option<Time>,
    /// Whether the grant that it has is owed to it, out of the order.
    pub(super) is_owed: bool,
    /// The band that was found open for the grant: what goes of it is charged there.
    pub(super) granted_band: u8,
    /// When the link will have sent what it was charged for last. Until then packets in the host
    /// keep its socket in its band: those for a better one would overtake them.
    pub(super) leaves_at: Time,
    /// Granted and not settled.
    pub(super) granted_bytes: u64,
    /// Whom to wake when its turn has come.
    pub(super) waker: Option<Waker>,
    /// Its responses.
    pub(super) account: Account,
    /// Whether it speaks another protocol by now.
    pub(super) tunnel: Option<Tunnel>,
    /// Of a stream: its place on its connection.
    pub(super) stream: Option<Stream>,
    /// Of a connection: its streams, once it had one.
    pub(super) streams: Option<Box<Streams>>,
    /// Of a connection: its client, where that is known; else the connection counts as one.
    pub(super) client: Option<Payer>,
    /// Of a connection: who was charged for its last response.
    pub(super) last_payer: Option<Payer>,
    /// Of a connection: what was charged to those, packet headers included.
    pub(super) paid_bytes: u64,
    /// Of a connection: the network to its client, where the policy asks for it.
    pub(super) path: Path,
    /// Of a connection: what its path is estimated from.
    pub(super) path_estimate: Option<Box<PathEstimate>>,
    /// Of a connection: the kernel band that its socket is marked for.
    pub(super) band: Option<u8>,
    /// Of a connection: what its client can read nothing of before it has all of it, bytes on the
    /// wire: a record of TLS. 0 in clear text.
    pub(super) record_bytes: u64,
    /// Of a connection: charged to the link for it, packet headers included, without those the
    /// kernel does not count.
    pub(super) charged_bytes: u64,
}

/// A flow on which every burst of bytes is a job.
#[derive(Clone, Copy)]
pub(super) struct Tunnel {
    pub(super) class: u8,
    pub(super) payer: Option<Payer>,
    /// Between a write and the flush after it.
    pub(super) is_in_burst: bool,
}

/// What a stream has beyond a connection.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    pub(super) connection: FlowId,
    /// Its place among the streams of the connection.
    pub(super) sibling: Sibling,
}

/// What a connection with streams has beyond one without.
#[derive(Default)]
pub(super) struct Streams {
    /// Those that are open, or finished and not flushed.
    pub(super) present: BTreeSet<FlowId>,
    /// Those of which everything is written; their responses end at the next flush.
    pub(super) written: Vec<FlowId>,
    /// Those that wait, in the order that the client wants.
    pub(super) siblings: Siblings,
    /// What was handed over and is not sent.
    pub(super) send_buffer: SendBuffer,
    /// Charged when streams handed over, and not sent yet, bytes on the wire.
    pub(super) prepaid_bytes: u64,
}

impl Flow {
    /// A connection that takes no turns yet.
    pub(super) fn connection() -> Self {
        Self::default()
    }

    /// A stream of `connection`.
    pub(super) fn stream(connection: FlowId) -> Self {
        Self {
            is_ordered: true,
            stream: Some(Stream {
                connection,
                sibling: Sibling::default(),
            }),
            ..Self::default()
        }
    }

    /// It is not its turn yet: `waker` is to be woken then.
    pub(super) fn wait(&mut self, waker: &Waker, backed_up_ns: u64, now: Time) {
        self.account.begin_wait(backed_up_ns, now);
        match &mut self.waker {
            Some(kept) => kept.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    /// What its band follows from, at the end of `path`.
    pub(super) fn band_input(&self, path: Path) -> BandInput {
        BandInput {
            size_bytes: self.account.size_bytes(),
            sent_bytes: self.account.attained_bytes(),
            path,
        }
    }

    /// Whether there is something to send now, or will be shortly.
    pub(super) fn is_busy(&self) -> bool {
        let is_quiet = self.tunnel.is_some_and(|tunnel| !tunnel.is_in_burst);
        self.account.has_responses() && !is_quiet
    }

    /// What has left the connection's socket, packet headers and what the kernel does not count
    /// included.
    pub(super) fn sent_wire_bytes(&self) -> u64 {
        let streams = self.streams.as_deref();
        let prepaid_bytes = streams.map_or(0, |streams| streams.prepaid_bytes);
        self.charged_bytes + wire::UNCOUNTED_BYTES - prepaid_bytes
    }

    /// Takes what the connection's streams paid in advance of the cost of `sent_bytes`; the rest is
    /// charged to the connection, and returned.
    pub(super) fn charge_sent(&mut self, sent_bytes: u64) -> u64 {
        let mut cost_bytes = wire::payload_cost_bytes(sent_bytes);
        if let Some(streams) = &mut self.streams {
            let prepaid_bytes = cost_bytes.min(streams.prepaid_bytes);
            streams.prepaid_bytes -= prepaid_bytes;
            cost_bytes -= prepaid_bytes;
        }
        self.charged_bytes += cost_bytes;
        cost_bytes
    }

    /// A stream of the connection hands over `written_bytes` and pays `cost_bytes` for them.
    pub(super) fn prepay(&mut self, written_bytes: u64, cost_bytes: u64) {
        if let Some(streams) = &mut self.streams {
            self.charged_bytes += cost_bytes;
            streams.prepaid_bytes += cost_bytes;
            streams.send_buffer.hand_over(written_bytes);
        }
    }
}
