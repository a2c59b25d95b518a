//! What is written down when a response is over.

use super::{GivenBytes, ProxyOutcome};
use crate::access_log::{AccessLog, Record, body_bytes_sent};
use crate::grace_end::GraceEnd;
use crate::metrics::{Metrics, RequestFacts};
use crate::proxy::{Failure, TunnelEnd};
use sooner_link::JobReport;
use std::sync::Arc;

/// The line of a response that was forwarded, if it was, as is known at its end.
fn with_upstream(mut record: Record, outcome: Option<ProxyOutcome>) -> Record {
    record.set_upstream_facts(outcome.map(|outcome| outcome.upstream_facts()));
    record
}

/// What is written down of a response when it is over.
pub struct Completion {
    /// The bytes of a body that is framed in chunks.
    pub given: Option<GivenBytes>,
    /// What is counted.
    pub facts: RequestFacts,
    /// Its line in the log.
    pub record: Option<Record>,
    /// How it was forwarded.
    pub outcome: Option<ProxyOutcome>,
    /// Whether the server has stopped.
    pub grace_end: GraceEnd,
    /// Where the line goes.
    pub log: AccessLog,
    /// Where it is counted.
    pub metrics: Arc<Metrics>,
}

impl Completion {
    /// The response is over, as the uplink reports.
    pub fn close(mut self, report: &JobReport) {
        if let Some(given) = &self.given {
            let body_bytes = given.get();
            self.facts.body_bytes = Some(body_bytes);
            if let Some(record) = &mut self.record {
                record.set_body_bytes(body_bytes);
            }
        }
        let report = &self.told_of_cut(*report);
        self.metrics.request_done(&self.facts, report);
        if let Some(record) = self.record {
            let fair_ns = self.metrics.fair_response_ns(report);
            self.log
                .write(&with_upstream(record, self.outcome), report, fair_ns);
        }
    }

    /// What the uplink reports, not complete where the upstream's response broke off. Why a
    /// forwarded response came to no end is noted for the log, if that is not known yet.
    fn told_of_cut(&self, mut report: JobReport) -> JobReport {
        let Some(outcome) = &self.outcome else {
            return report;
        };
        let mut forwarded = outcome.report.lock();
        report.completed &= forwarded.cut.is_none();
        let (head_bytes, body_bytes) = (self.facts.head_bytes, self.facts.body_bytes);
        let sent_bytes = body_bytes_sent(&report, head_bytes, body_bytes);
        let is_whole = report.completed && body_bytes.is_none_or(|all| sent_bytes == all);
        if !is_whole && self.grace_end.is_over() {
            forwarded.note_cut(&Failure::Stopped);
        } else if !is_whole && forwarded.answered_at.is_some() {
            forwarded.note_cut(&"the client left before the end of the response");
        }
        report
    }

    /// The uplink knows a connection's bytes and its end, but not whether a protocol it does not
    /// speak had come to its own.
    pub fn close_tunnel(self, mut report: JobReport, end: TunnelEnd) {
        report.sent_bytes = end
            .to_client_bytes
            .saturating_add(self.facts.head_bytes.into());
        report.completed = end.is_clean;
        self.metrics.tunnel_done(&self.facts, &report);
        if let Some(record) = self.record {
            let record = with_upstream(record, self.outcome);
            self.log.write(&record, &report, None);
        }
    }
}
