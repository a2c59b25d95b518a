//! The gate together with what tokio needs beside it: wakers, and the account of every response.

mod record;
mod streams;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::task::Waker;

use sooner_policy::{ClientId, Path, PolicyName, Time};

use crate::gate::{Answer, FlowId, Gate};
use crate::marks::{Marked, Marks};
use crate::path::{Look, PathEstimate};
use crate::response::{JobReport, ResponseStart};
use crate::siblings::StreamRule;
use crate::snapshot::{Load, Snapshot, size_class};
use crate::wire;
use record::{FlowRecord, Response, Tunnel};

/// Called once, when a response is over.
pub type OnEnd = Box<dyn FnOnce(JobReport) + Send>;

/// A response whose time has come.
pub struct Ended {
    pub job: u64,
    pub on_end: OnEnd,
    pub report: JobReport,
}

/// What is left to do when the lock is released.
#[derive(Default)]
pub struct Outcome {
    pub ended: Vec<Ended>,
    pub wakers: Vec<Waker>,
}

/// A response that has begun.
pub struct Started {
    pub job: u64,
    /// Its size on the wire, if known.
    pub wire_bytes: Option<u64>,
}

/// What an uplink is told of the order; no policy where nothing is ordered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    pub policy: Option<PolicyName>,
    pub rate_bits_per_sec: Option<u64>,
    pub streams: StreamRule,
}

/// Everything behind the lock.
pub struct Core {
    pub gate: Option<Gate>,
    pub marks: Option<Marks>,
    order: Order,
    /// Whether the gate paces all writes; without pacing it only orders streams.
    is_paced: bool,
    flows: BTreeMap<FlowId, FlowRecord>,
    opened: FlowId,
    started: u64,
    /// Written for responses; the frames around streams belong to none.
    response_bytes: u64,
    /// Written to sockets.
    socket_bytes: u64,
    /// When the link was last looked at, and what had been charged to it.
    looked_at: (Time, u64),
    /// Until when the pacer sleeps; it must be woken for anything earlier.
    pub pacer_until: Option<Time>,
}

impl Core {
    /// With a gate all writes are paced.
    pub fn new(order: Order, gate: Option<Gate>, marks: Option<Marks>, now: Time) -> Self {
        Self {
            is_paced: gate.is_some(),
            gate,
            marks,
            order,
            flows: BTreeMap::new(),
            opened: 0,
            started: 0,
            response_bytes: 0,
            socket_bytes: 0,
            looked_at: (now, 0),
            pacer_until: None,
        }
    }

    pub fn open(&mut self, now: Time) -> FlowId {
        let flow = self.new_name();
        if let Some(gate) = self.gate.as_mut().filter(|_| self.is_paced) {
            gate.open(flow, now);
        }
        self.flows.insert(flow, FlowRecord::new(None));
        flow
    }

    /// What the connection writes are records of up to `record_bytes`.
    pub fn in_records(&mut self, flow: FlowId, record_bytes: u64) {
        if let Some(gate) = &mut self.gate {
            gate.in_records(flow, record_bytes);
        }
    }

    /// The connection is `client`'s.
    pub fn of_client(&mut self, connection: FlowId, client: ClientId) {
        if let Some(record) = self.flows.get_mut(&connection) {
            record.client = Some(client);
        }
        if let Some(gate) = &mut self.gate {
            gate.of_client(connection, client);
        }
    }

    fn new_name(&mut self) -> FlowId {
        let flow = self.opened;
        self.opened += 1;
        flow
    }

    fn policy_name(&self) -> &'static str {
        self.order.policy.map_or("none", PolicyName::as_str)
    }

    /// A response begins; on a connection that is gone already it ends at once, which is for the caller to report.
    pub fn start(
        &mut self,
        flow: FlowId,
        response: ResponseStart,
        on_end: OnEnd,
        now: Time,
    ) -> Result<Started, (OnEnd, JobReport)> {
        let path = self.path_of(flow);
        let Some(record) = self.flows.get_mut(&flow) else {
            return Err((on_end, JobReport::never_sent(self.policy_name())));
        };
        // A stream's head and frames are the connection's.
        let size_bytes = match record.connection {
            Some(_) => response.body_bytes,
            None => response.size_bytes(),
        };
        let rank_at_start = match &mut self.gate {
            Some(gate) => gate.start(flow, size_bytes, response.class, now),
            None => 0,
        };
        if let (Some(marks), Some(size)) = (&mut self.marks, size_bytes) {
            marks.record(size, path);
        }
        if response.is_tunnel {
            record.tunnel = Some(Tunnel {
                class: response.class,
                is_in_burst: true,
            });
        }
        record.promised_bytes = record
            .promised_bytes
            .zip(size_bytes)
            .map(|(promised, size)| promised.saturating_add(size));
        self.started += 1;
        record.responses.push_back(Response {
            job: self.started,
            on_end,
            started_at: now,
            rank_at_start,
            body_done: false,
            waited_before_ns: record.waited_ns_at(0, now),
            sent_before_bytes: record.sent_bytes,
            all_sent_before_bytes: self.response_bytes,
        });
        let is_first = !std::mem::replace(&mut record.has_had_response, true);
        let opens = is_first && record.connection.is_none();
        let opening_bytes = if opens { wire::CONNECTION_BYTES } else { 0 };
        Ok(Started {
            job: self.started,
            wire_bytes: response
                .size_bytes()
                .map(|size| opening_bytes + wire::payload_cost_bytes(size)),
        })
    }

    pub fn body_done(&mut self, flow: FlowId) {
        if let Some(response) = self
            .flows
            .get_mut(&flow)
            .and_then(|record| record.responses.back_mut())
        {
            response.body_done = true;
        }
    }

    /// Whether the flow may write `want_bytes` now; if not, its waker is kept.
    pub fn ask(&mut self, flow: FlowId, want_bytes: u64, waker: &Waker, now: Time) -> Answer {
        let Some(gate) = &mut self.gate else {
            return Answer::Go(want_bytes);
        };
        let mut record = self.flows.get_mut(&flow);
        if let Some(tunnel) = record.as_mut().and_then(|record| record.tunnel.as_mut())
            && !std::mem::replace(&mut tunnel.is_in_burst, true)
        {
            gate.start(flow, None, tunnel.class, now);
        }
        let answer = gate.ask(flow, want_bytes, now);
        if let Some(record) = record {
            let backed_up_ns = match record.connection {
                Some(_) => gate.backed_up_ns(flow, now),
                None => 0,
            };
            match answer {
                Answer::Go(_) => record.end_wait(backed_up_ns, now),
                Answer::Wait => record.begin_wait(waker, backed_up_ns, now),
            }
        }
        answer
    }

    /// The flow wrote `written_bytes`, and `sent_bytes` more than before have left its socket.
    pub fn settle(&mut self, flow: FlowId, written_bytes: u64, sent_bytes: u64, now: Time) {
        self.socket_bytes += written_bytes;
        if let Some(record) = self.flows.get_mut(&flow) {
            record.sent_bytes += written_bytes;
            if record.streams.is_none() {
                self.response_bytes += written_bytes;
            }
        }
        if let Some(gate) = &mut self.gate {
            gate.settle(flow, written_bytes, sent_bytes, now);
        }
    }

    /// `sent_bytes` that the flow had written before have left its socket by themselves.
    pub fn sent(&mut self, flow: FlowId, sent_bytes: u64, now: Time) {
        if let Some(gate) = &mut self.gate {
            gate.sent(flow, sent_bytes, now);
        }
    }

    /// The kernel counted `wire_bytes` for the connection in all; what was not charged yet (retransmissions, acknowledgements) is.
    pub fn account(&mut self, flow: FlowId, wire_bytes: u64, now: Time) {
        if let Some(gate) = &mut self.gate {
            gate.account(flow, wire_bytes, now);
        }
    }

    /// Whether the policy wants to know the networks to the clients.
    pub fn asks_for_paths(&self) -> bool {
        let orders = self.gate.is_some() || self.marks.is_some();
        orders && self.order.policy.is_some_and(PolicyName::asks_for_path)
    }

    /// The kernel was asked about the connection.
    pub fn look(&mut self, connection: FlowId, look: Look) {
        let is_paced = self.is_paced;
        let Some(record) = self.flows.get_mut(&connection) else {
            return;
        };
        // A connection with streams does not wait, they do.
        let takes_turns = is_paced && record.streams.is_none();
        let look = Look {
            own_bytes: record.sent_bytes,
            all_bytes: self.socket_bytes,
            waited_ns: takes_turns.then(|| record.waited_ns_at(0, look.at)),
            ..look
        };
        let link_bytes_per_sec = self.order.rate_bits_per_sec.unwrap_or(u64::MAX) / 8;
        let estimate = record.path.get_or_insert_default();
        let path = estimate.take(look, link_bytes_per_sec);
        if let Some(gate) = &mut self.gate {
            gate.observe(connection, path, look.at);
        }
    }

    /// The network to the client of a connection, or of a stream's connection.
    pub(super) fn path_of(&self, flow: FlowId) -> Path {
        let record = self.flows.get(&flow);
        let connection = record.and_then(|record| record.connection);
        let of = connection.map_or(record, |connection| self.flows.get(&connection));
        of.and_then(|record| record.path.as_deref())
            .map_or_else(Path::default, PathEstimate::path)
    }

    /// The band the flow's next bytes belong in, if it is another than theirs so far, and that one; with streams, the best of theirs.
    pub fn new_band(&self, flow: FlowId) -> Option<(u8, Option<u8>)> {
        let marks = self.marks.as_ref()?;
        let path = self.path_of(flow);
        let band_of = |record: &FlowRecord| {
            marks.band(Marked {
                size_bytes: record.size_bytes(),
                sent_bytes: record.attained_bytes(),
                path,
            })
        };
        let nothing = Marked {
            size_bytes: Some(0),
            path,
            ..Marked::default()
        };
        let record = self.flows.get(&flow)?;
        let band = match &record.streams {
            None => band_of(record),
            Some(streams) => {
                let records = streams
                    .present
                    .iter()
                    .filter_map(|stream| self.flows.get(stream))
                    .filter(|record| !record.responses.is_empty());
                // Frames without a response are as urgent as a response of no size.
                records
                    .map(band_of)
                    .min()
                    .unwrap_or_else(|| marks.band(nothing))
            }
        };
        (record.band != Some(band)).then_some((band, record.band))
    }

    /// The flow's socket was marked for `band`.
    pub fn set_band(&mut self, flow: FlowId, band: u8) {
        if let Some(record) = self.flows.get_mut(&flow) {
            record.band = Some(band);
        }
    }

    /// All that was buffered is written: responses whose bodies are done are over.
    pub fn flushed(&mut self, flow: FlowId, now: Time) -> Outcome {
        let mut ended = self.end(flow, true, now);
        if let Some(record) = self.flows.get_mut(&flow) {
            let has_streams = record.streams.is_some();
            if record.responses.is_empty() {
                record.promised_bytes = Some(record.sent_bytes);
            }
            if record.responses.is_empty() || record.tunnel.is_some() {
                record.end_job();
                if let Some(gate) = &mut self.gate {
                    gate.finish(flow, now);
                }
            }
            if has_streams {
                self.end_written_streams(flow, &mut ended, now);
            }
        }
        Outcome {
            ended,
            wakers: Vec::new(),
        }
    }

    /// The connection is gone, and with it what was not written, its streams' as well.
    pub fn close(&mut self, flow: FlowId, now: Time) -> Outcome {
        let mut outcome = Outcome {
            ended: self.end(flow, false, now),
            wakers: Vec::new(),
        };
        let streams = self.flows.remove(&flow).and_then(|record| record.streams);
        for stream in streams.into_iter().flat_map(|streams| streams.present) {
            outcome.ended.append(&mut self.end(stream, false, now));
            let record = self.flows.remove(&stream);
            outcome
                .wakers
                .extend(record.and_then(|record| record.waker));
        }
        if let Some(gate) = &mut self.gate {
            gate.close(flow, now);
        }
        outcome
    }

    /// The waker of the flow whose turn it is, if the link can take more.
    pub fn call(&mut self, now: Time) -> Option<Waker> {
        let flow = self.gate.as_mut()?.call(now)?;
        self.flows.get_mut(&flow)?.waker.take()
    }

    /// What is there now, and how busy the link was since the last time this was asked.
    pub fn snapshot(&mut self, now: Time) -> Snapshot {
        let paced = self.gate.as_ref().filter(|_| self.is_paced);
        let charged_bytes = paced.map(Gate::charged_bytes);
        let (since, charged_before_bytes) =
            std::mem::replace(&mut self.looked_at, (now, charged_bytes.unwrap_or(0)));
        let mut snapshot = Snapshot {
            policy: self.policy_name(),
            rate_bits_per_sec: self.order.rate_bits_per_sec,
            socket_bytes: self.socket_bytes,
            wire_bytes: charged_bytes,
            ..Snapshot::default()
        };
        if let Some(charged_bytes) = charged_bytes {
            snapshot.note_busy(charged_bytes - charged_before_bytes, now.since(since));
        }
        for record in self.flows.values() {
            match record.connection {
                Some(_) => snapshot.streams += 1,
                None => snapshot.connections += 1,
            }
            if !record.has_job() {
                continue;
            }
            let class = size_class(record.size_bytes().unwrap_or(record.attained_bytes()));
            let loads = match record.is_waiting() {
                true => &mut snapshot.waiting,
                false => &mut snapshot.sending,
            };
            loads[class].add(Load {
                jobs: 1,
                remaining_bytes: record.remaining_bytes().unwrap_or(0),
            });
        }
        snapshot
    }

    fn end(&mut self, flow: FlowId, completed: bool, now: Time) -> Vec<Ended> {
        let (policy, all_sent_bytes) = (self.policy_name(), self.response_bytes);
        let Some(record) = self.flows.get_mut(&flow) else {
            return Vec::new();
        };
        let backed_up_ns = match (record.connection, &self.gate) {
            (Some(_), Some(gate)) => gate.backed_up_ns(flow, now),
            _ => 0,
        };
        let mut ended = Vec::new();
        while record
            .responses
            .front()
            .is_some_and(|response| response.body_done || !completed)
        {
            let Some(response) = record.responses.pop_front() else {
                break;
            };
            let sent_bytes = record.sent_bytes - response.sent_before_bytes;
            let wait_ns = record.waited_ns_at(backed_up_ns, now) - response.waited_before_ns;
            let report = JobReport {
                wait_ns,
                service_ns: now.since(response.started_at).saturating_sub(wait_ns),
                sent_bytes,
                policy,
                rank_at_start: response.rank_at_start,
                bytes_of_others_meanwhile: (all_sent_bytes - response.all_sent_before_bytes)
                    .saturating_sub(sent_bytes),
                completed,
            };
            ended.push(Ended {
                job: response.job,
                on_end: response.on_end,
                report,
            });
        }
        ended
    }
}
