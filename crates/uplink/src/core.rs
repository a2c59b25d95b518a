//! The gate together with what tokio needs beside it: wakers, and the account of every response.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use sooner_policy::Time;

use crate::flow::{JobReport, ResponseStart};
use crate::gate::{Answer, FlowId, Gate};
use crate::marks::Marks;

type OnEnd = Box<dyn FnOnce(JobReport) + Send>;

/// Responses whose time has come, to be reported when the lock is released.
pub(crate) type Ended = Vec<(OnEnd, JobReport)>;

/// Everything behind the lock.
pub(crate) struct Core {
    pub(crate) gate: Option<Gate>,
    pub(crate) marks: Option<Marks>,
    policy: &'static str,
    flows: BTreeMap<FlowId, FlowRecord>,
    opened: FlowId,
    sent_bytes: u64,
    /// Until when the pacer sleeps; it must be woken for anything earlier.
    pub(crate) pacer_until: Option<Time>,
}

#[derive(Default)]
struct FlowRecord {
    waker: Option<Waker>,
    responses: VecDeque<Response>,
    waits_since: Option<Time>,
    waited_ns: u64,
    sent_bytes: u64,
    /// What had been sent when the present job began.
    job_from_bytes: u64,
    /// Bytes promised by `start`, sent or not; `None` once a size was unknown.
    promised_bytes: Option<u64>,
    /// Bytes charged to the link for this connection, packet headers included.
    charged_bytes: u64,
    band: Option<u8>,
}

struct Response {
    on_end: OnEnd,
    started_at: Time,
    rank_at_start: u64,
    body_done: bool,
    waited_before_ns: u64,
    sent_before_bytes: u64,
    all_sent_before_bytes: u64,
}

impl Core {
    pub(crate) fn new(policy: &'static str, gate: Option<Gate>, marks: Option<Marks>) -> Self {
        Self {
            gate,
            marks,
            policy,
            flows: BTreeMap::new(),
            opened: 0,
            sent_bytes: 0,
            pacer_until: None,
        }
    }

    pub(crate) fn open(&mut self, now: Time) -> FlowId {
        let flow = self
            .gate
            .as_mut()
            .map_or(self.opened, |gate| gate.open(now));
        self.opened = flow + 1;
        let charged_bytes = crate::wire::CONNECTION_BYTES;
        self.flows.insert(
            flow,
            FlowRecord {
                promised_bytes: Some(0),
                charged_bytes,
                ..FlowRecord::default()
            },
        );
        flow
    }

    /// A response begins; on a connection that is gone already it ends at once, which is for the caller to report.
    pub(crate) fn start(
        &mut self,
        flow: FlowId,
        response: ResponseStart,
        on_end: OnEnd,
        now: Time,
    ) -> Option<(OnEnd, JobReport)> {
        let size_bytes = response
            .body_bytes
            .map(|body| body + u64::from(response.head_bytes));
        let rank_at_start = match &mut self.gate {
            Some(gate) => gate.start(flow, size_bytes, response.class, now),
            None => 0,
        };
        if let (Some(marks), Some(size)) = (&mut self.marks, size_bytes) {
            marks.record(size);
        }
        let Some(record) = self.flows.get_mut(&flow) else {
            return Some((on_end, JobReport::never_sent(self.policy)));
        };
        record.promised_bytes = record
            .promised_bytes
            .zip(size_bytes)
            .map(|(promised, size)| promised + size);
        record.responses.push_back(Response {
            on_end,
            started_at: now,
            rank_at_start,
            body_done: false,
            waited_before_ns: record.waited_ns,
            sent_before_bytes: record.sent_bytes,
            all_sent_before_bytes: self.sent_bytes,
        });
        None
    }

    pub(crate) fn body_done(&mut self, flow: FlowId) {
        if let Some(response) = self
            .flows
            .get_mut(&flow)
            .and_then(|record| record.responses.back_mut())
        {
            response.body_done = true;
        }
    }

    /// Whether the flow may write `want_bytes` now; if not, its waker is kept.
    pub(crate) fn ask(
        &mut self,
        flow: FlowId,
        want_bytes: u64,
        waker: &Waker,
        now: Time,
    ) -> Answer {
        let Some(gate) = &mut self.gate else {
            return Answer::Go(want_bytes);
        };
        let answer = gate.ask(flow, want_bytes, now);
        if let Some(record) = self.flows.get_mut(&flow) {
            match answer {
                Answer::Go(_) => record.end_wait(now),
                Answer::Wait => record.begin_wait(waker, now),
            }
        }
        answer
    }

    /// The flow wrote `written_bytes`, and `sent_bytes` more than before have left its socket.
    pub(crate) fn settle(&mut self, flow: FlowId, written_bytes: u64, sent_bytes: u64, now: Time) {
        self.sent_bytes += written_bytes;
        if let Some(record) = self.flows.get_mut(&flow) {
            record.sent_bytes += written_bytes;
            record.charged_bytes += crate::wire::payload_cost_bytes(sent_bytes);
        }
        if let Some(gate) = &mut self.gate {
            gate.settle(flow, written_bytes, sent_bytes, now);
        }
    }

    /// `sent_bytes` that the flow had written before have left its socket by themselves.
    pub(crate) fn sent(&mut self, flow: FlowId, sent_bytes: u64, now: Time) {
        if let (Some(gate), Some(record)) = (&mut self.gate, self.flows.get_mut(&flow)) {
            record.charged_bytes += crate::wire::payload_cost_bytes(sent_bytes);
            gate.sent(sent_bytes, now);
        }
    }

    /// The kernel counted `wire_bytes` for the connection in all; what was not charged yet (retransmissions, acknowledgements) is.
    pub(crate) fn account(&mut self, flow: FlowId, wire_bytes: u64, now: Time) {
        if let (Some(gate), Some(record)) = (&mut self.gate, self.flows.get_mut(&flow)) {
            let uncharged_bytes = wire_bytes.saturating_sub(record.charged_bytes);
            record.charged_bytes += uncharged_bytes;
            gate.charge(uncharged_bytes, now);
        }
    }

    /// The band the flow's next bytes belong in, if it is another than theirs so far, and that one.
    pub(crate) fn new_band(&self, flow: FlowId) -> Option<(u8, Option<u8>)> {
        let marks = self.marks.as_ref()?;
        let record = self.flows.get(&flow)?;
        let remaining = record
            .promised_bytes
            .map(|promised| promised.saturating_sub(record.sent_bytes));
        let attained = record.sent_bytes - record.job_from_bytes;
        let size = record
            .promised_bytes
            .map(|promised| promised.saturating_sub(record.job_from_bytes));
        let band = marks.band(remaining, attained, size);
        (record.band != Some(band)).then_some((band, record.band))
    }

    /// The flow's socket was marked for `band`.
    pub(crate) fn set_band(&mut self, flow: FlowId, band: u8) {
        if let Some(record) = self.flows.get_mut(&flow) {
            record.band = Some(band);
        }
    }

    /// All that was buffered is written: responses whose bodies are done are over.
    pub(crate) fn flushed(&mut self, flow: FlowId, now: Time) -> Ended {
        let ended = self.end(flow, true, now);
        if let Some(record) = self.flows.get_mut(&flow)
            && record.responses.is_empty()
        {
            record.promised_bytes = Some(record.sent_bytes);
            record.job_from_bytes = record.sent_bytes;
            if let Some(gate) = &mut self.gate {
                gate.finish(flow, now);
            }
        }
        ended
    }

    /// The connection is gone, and with it what was not written.
    pub(crate) fn close(&mut self, flow: FlowId, now: Time) -> Ended {
        let ended = self.end(flow, false, now);
        self.flows.remove(&flow);
        if let Some(gate) = &mut self.gate {
            gate.close(flow, now);
        }
        ended
    }

    /// The waker of the flow whose turn it is, if the link can take more.
    pub(crate) fn call(&mut self, now: Time) -> Option<Waker> {
        let flow = self.gate.as_mut()?.call(now)?;
        self.flows.get_mut(&flow)?.waker.take()
    }

    fn end(&mut self, flow: FlowId, completed: bool, now: Time) -> Ended {
        let (policy, all_sent_bytes) = (self.policy, self.sent_bytes);
        let Some(record) = self.flows.get_mut(&flow) else {
            return Ended::new();
        };
        let mut ended = Ended::new();
        while record
            .responses
            .front()
            .is_some_and(|response| response.body_done || !completed)
        {
            let Some(response) = record.responses.pop_front() else {
                break;
            };
            let sent_bytes = record.sent_bytes - response.sent_before_bytes;
            let wait_ns = record.waited_ns_at(now) - response.waited_before_ns;
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
            ended.push((response.on_end, report));
        }
        ended
    }
}

impl FlowRecord {
    fn begin_wait(&mut self, waker: &Waker, now: Time) {
        self.waits_since.get_or_insert(now);
        match &mut self.waker {
            Some(kept) => kept.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    fn end_wait(&mut self, now: Time) {
        self.waited_ns = self.waited_ns_at(now);
        self.waits_since = None;
    }

    fn waited_ns_at(&self, now: Time) -> u64 {
        self.waited_ns + self.waits_since.map_or(0, |since| now.since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_policy::PolicyName;

    fn start(core: &mut Core, flow: FlowId, bytes: u64) {
        let response = ResponseStart {
            body_bytes: Some(bytes),
            head_bytes: 0,
            class: 0,
        };
        let gone = core.start(flow, response, Box::new(|_| {}), Time::ZERO);
        assert!(gone.is_none());
    }

    #[test]
    fn bands_count_the_job_and_not_what_the_connection_had_before() {
        for policy in [PolicyName::Srpt, PolicyName::Psjf, PolicyName::Las] {
            let mut core = Core::new(policy.as_str(), None, Some(Marks::for_policy(policy)));
            let flow = core.open(Time::ZERO);
            start(&mut core, flow, 10_000_000);
            core.settle(flow, 10_000_000, 0, Time::ZERO);
            if let Some((band, _)) = core.new_band(flow) {
                core.set_band(flow, band);
            }
            core.body_done(flow);
            assert_eq!(core.flushed(flow, Time::ZERO).len(), 1);
            start(&mut core, flow, 100);
            let band = core.new_band(flow);
            assert!(matches!(band, Some((0, _)) | None), "{policy}: {band:?}");
            core.set_band(flow, 0);
            core.settle(flow, 100, 0, Time::ZERO);
            assert_eq!(core.new_band(flow), None, "{policy}: it stays on top");
        }
    }

    #[test]
    fn a_response_on_a_connection_that_is_gone_ends_at_once() {
        let mut core = Core::new("srpt", None, None);
        let flow = core.open(Time::ZERO);
        core.close(flow, Time::ZERO);
        let response = ResponseStart {
            body_bytes: None,
            head_bytes: 0,
            class: 0,
        };
        let gone = core.start(flow, response, Box::new(|_| {}), Time::ZERO);
        assert!(gone.is_some_and(|(_, report)| !report.completed));
    }
}
