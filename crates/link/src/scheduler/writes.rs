//! What connections write: settled with the policy, charged to the link.

use super::{FlowId, LinkScheduler};
use crate::wire;
use sooner_policy::{Arrival, JobId, Time};

impl LinkScheduler {
    /// The connection was granted a turn and wrote `written_bytes` (0 if its socket took nothing),
    /// after which `sent_bytes` more than before have left its socket; it must ask again for more.
    ///
    /// The two differ where the client's window or the congestion window is shut: what lies in the
    /// socket does not occupy the link yet, and is charged when it goes ([`sent`](Self::sent)).
    pub fn settle(&mut self, connection: FlowId, written_bytes: u64, sent_bytes: u64, now: Time) {
        self.socket_bytes += written_bytes;
        let Some(flow) = self.flows.get_mut(&connection) else {
            return;
        };
        flow.account.sent_bytes += written_bytes;
        match &mut flow.streams {
            None => self.response_bytes += written_bytes,
            Some(streams) => streams.send_buffer.write(written_bytes, sent_bytes),
        }
        if !flow.is_ordered {
            return;
        }
        let has_streams = flow.streams.is_some();
        flow.is_owed = false;
        // One that wrote less has a full socket: it could not have gone all the time.
        let took_all = written_bytes >= flow.granted_bytes;
        self.audit.settle(&mut flow.granted_bytes, written_bytes);
        let cost_bytes = flow.charge_sent(sent_bytes);
        if cost_bytes > 0 {
            let credit_ns = self.limits.credit_of(self.turns.is_late(flow));
            let band = flow.granted_band;
            self.lanes.charge(band, cost_bytes, credit_ns, now);
            flow.leaves_at = self.lanes.free_at(band);
        }
        if flow.has_job {
            if written_bytes > 0 {
                flow.wrote_at = took_all.then_some(now);
                let served_bytes = wire::payload_cost_bytes(written_bytes);
                flow.paid_bytes += served_bytes;
                let scheduler = &mut self.turns.scheduler;
                scheduler.progress(JobId(connection), served_bytes, now);
            }
            let outgrown_bytes = flow.account.outgrown_bytes();
            self.turns.set_ready(connection, flow, false, now);
            if let Some(additional_bytes) = outgrown_bytes {
                self.enlarge(connection, additional_bytes, now);
            }
        }
        if has_streams {
            self.review_send_buffer(connection, now);
        }
        self.check();
    }

    /// `sent_bytes` that the connection had written before have left its socket by themselves.
    pub fn sent(&mut self, connection: FlowId, sent_bytes: u64, now: Time) {
        let flow = self.flows.get_mut(&connection);
        let Some(flow) = flow.filter(|flow| flow.is_ordered) else {
            return;
        };
        if let Some(streams) = &mut flow.streams {
            streams.send_buffer.send(sent_bytes);
        }
        let cost_bytes = flow.charge_sent(sent_bytes);
        let band = flow.granted_band;
        self.charge_in(band, cost_bytes, now);
        self.review_send_buffer(connection, now);
        self.check();
    }

    /// The kernel counted `wire_bytes` for the connection in all; what was not charged yet
    /// (retransmissions, acknowledgements) is.
    pub fn account(&mut self, connection: FlowId, wire_bytes: u64, now: Time) {
        let flow = self.flows.get_mut(&connection);
        let Some(flow) = flow.filter(|flow| flow.is_ordered) else {
            return;
        };
        let uncharged_bytes = wire_bytes.saturating_sub(flow.charged_bytes);
        flow.charged_bytes += uncharged_bytes;
        let band = flow.granted_band;
        self.charge_in(band, uncharged_bytes, now);
        self.settle_payment(connection, false, now);
    }

    /// What was written for the connection's responses has been paid; from now on what was sent has
    /// as well: retransmissions, frames, and handshakes, which its client pays where no response
    /// began. At its end what is lost is given back; before, what lies in the socket will be sent.
    pub(super) fn settle_payment(&mut self, connection: FlowId, is_end: bool, now: Time) {
        let flow = self.flows.get_mut(&connection);
        let Some(flow) = flow.filter(|flow| flow.is_ordered && flow.stream.is_none()) else {
            return;
        };
        let Some(payer) = flow.last_payer.or(flow.client) else {
            return;
        };
        let sent_bytes = match is_end {
            true => flow.sent_wire_bytes(),
            false => flow.sent_wire_bytes().max(flow.paid_bytes),
        };
        let paid_bytes = std::mem::replace(&mut flow.paid_bytes, sent_bytes);
        let paid_for = Arrival {
            id: JobId(connection),
            class: 0,
            size: Some(paid_bytes),
            trickle: 0,
            client: None,
            payer: Some(payer),
        };
        self.turns.scheduler.settle(&paid_for, sent_bytes, now);
    }

    /// `wire_bytes` went out that no grant accounts for, before all bands: acknowledgements, other
    /// traffic.
    pub fn charge(&mut self, wire_bytes: u64, now: Time) {
        self.charge_in(0, wire_bytes, now);
    }

    fn charge_in(&mut self, band: u8, wire_bytes: u64, now: Time) {
        let credit_ns = self.limits.credit_of(self.turns.waiting() > 0);
        self.lanes.charge(band, wire_bytes, credit_ns, now);
    }
}
