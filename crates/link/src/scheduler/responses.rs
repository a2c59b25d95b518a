//! Responses, from the word that one comes to the flush that ends it, and the jobs that they are.

use super::account::{EndedResponse, OnEnd, Response, StartedResponse};
use super::flow::Tunnel;
use super::{Effects, FlowId, LinkScheduler};
use crate::response::{JobReport, ResponseStart};
use crate::snapshot::{Load, Snapshot, size_class};
use crate::wire;
use sooner_policy::{Arrival, JobId, Payer, PolicyName, Time};

/// A job that a response is, or a part of one.
struct NewJob {
    /// All of it, if known.
    wire_bytes: Option<u64>,
    /// What it has had of that.
    had_bytes: u64,
    class: u8,
    /// Who is charged; `None`: the connection's client.
    payer: Option<Payer>,
}

impl LinkScheduler {
    /// A response is about to be written; on a flow that is gone already it ends at once, which is
    /// for the caller to report.
    ///
    /// Jobs are counted in bytes on the wire, as the ideals are; a connection's first job has its
    /// packets without payload behind it.
    pub fn start(
        &mut self,
        flow: FlowId,
        response: ResponseStart,
        on_end: OnEnd,
        now: Time,
    ) -> Result<StartedResponse, (OnEnd, JobReport)> {
        let Some(record) = self.flows.get(&flow) else {
            return Err((on_end, JobReport::never_sent(self.policy_name())));
        };
        let is_stream = record.stream.is_some();
        // A stream's head and frames are the connection's.
        let size_bytes = if is_stream {
            response.body_bytes
        } else {
            response.size_bytes()
        };
        let is_opening = !is_stream && !record.account.has_had_response();
        let opening_bytes = if is_opening {
            wire::CONNECTION_BYTES
        } else {
            0
        };
        let job_bytes = size_bytes.map(|size| opening_bytes + wire::payload_cost_bytes(size));
        let job = NewJob {
            wire_bytes: job_bytes,
            had_bytes: opening_bytes,
            class: response.class,
            payer: response.payer,
        };
        let rank_at_start = self.start_job(flow, job, now);
        if let Some(size_bytes) = size_bytes {
            self.record_size(flow, size_bytes);
        }
        self.started += 1;
        if let Some(record) = self.flows.get_mut(&flow) {
            if response.is_tunnel {
                record.tunnel = Some(Tunnel {
                    class: response.class,
                    payer: response.payer,
                    is_in_burst: true,
                });
            }
            let mut begun = Response::new(self.started, on_end, rank_at_start, now);
            begun.all_sent_before_bytes = self.response_bytes;
            record.account.start(begun, size_bytes);
        }
        self.check();
        // What is only estimated has no figure beside FAIR.
        let exact_bytes = response.size_bytes().filter(|_| !response.is_estimate);
        let wire_bytes = exact_bytes.map(wire::payload_cost_bytes);
        Ok(StartedResponse {
            job: self.started,
            wire_bytes: wire_bytes.map(|bytes| opening_bytes + bytes),
        })
    }

    /// The response started last is `additional_bytes` larger than was estimated. No effect where
    /// no size was said.
    pub fn enlarge(&mut self, flow: FlowId, additional_bytes: u64, now: Time) {
        let Some(record) = self.flows.get_mut(&flow) else {
            return;
        };
        record.account.enlarge(additional_bytes);
        if record.is_ordered && record.has_job {
            let amount = wire::payload_cost_bytes(additional_bytes);
            self.turns.scheduler.enlarge(JobId(flow), amount, now);
        }
        self.check();
    }

    /// The body of the response started last has given its last byte.
    pub fn body_done(&mut self, flow: FlowId) {
        if let Some(flow) = self.flows.get_mut(&flow) {
            flow.account.end_last_body();
        }
    }

    /// All that the connection had buffered is written: its responses with their bodies done are
    /// over, and those of streams of which the last was written.
    pub fn flushed(&mut self, connection: FlowId, now: Time) -> Effects {
        let mut ended = self.end_responses(connection, true, now);
        if let Some(flow) = self.flows.get_mut(&connection) {
            let has_streams = flow.streams.is_some();
            if !flow.account.has_responses() || flow.tunnel.is_some() {
                flow.account.end_job();
                if let Some(tunnel) = &mut flow.tunnel {
                    tunnel.is_in_burst = false;
                }
                self.finish_job(connection, now);
            }
            if has_streams {
                self.end_written_streams(connection, &mut ended, now);
            }
        }
        self.check();
        Effects {
            ended,
            wakers: Vec::new(),
        }
    }

    /// What is there now, and how busy the link was since the last snapshot. Looks at every flow.
    pub fn snapshot(&mut self, now: Time) -> Snapshot {
        let charged_bytes = self.is_paced.then(|| self.charged_bytes());
        let (since, charged_before_bytes) =
            std::mem::replace(&mut self.last_snapshot, (now, charged_bytes.unwrap_or(0)));
        let mut snapshot = Snapshot {
            policy: self.policy_name(),
            rate_bits_per_sec: self.rate_bits_per_sec,
            socket_bytes: self.socket_bytes,
            wire_bytes: charged_bytes,
            ..Snapshot::default()
        };
        if let Some(charged_bytes) = charged_bytes {
            snapshot.note_busy(charged_bytes - charged_before_bytes, now.since(since));
        }
        for flow in self.flows.values() {
            if flow.stream.is_some() {
                snapshot.streams += 1;
            } else {
                snapshot.connections += 1;
            }
            if !flow.is_busy() {
                continue;
            }
            let account = &flow.account;
            let class = size_class(account.size_bytes().unwrap_or(account.attained_bytes()));
            let loads = if account.is_waiting() {
                &mut snapshot.waiting
            } else {
                &mut snapshot.sending
            };
            loads[class].add(Load {
                jobs: 1,
                remaining_bytes: account.remaining_bytes().unwrap_or(0),
            });
        }
        snapshot
    }

    fn policy_name(&self) -> &'static str {
        self.policy.map_or("none", PolicyName::as_str)
    }

    /// What a tunnel writes after a flush is another job.
    pub(super) fn begin_burst(&mut self, flow: FlowId, now: Time) {
        let record = self.flows.get_mut(&flow);
        let Some(tunnel) = record.and_then(|record| record.tunnel.as_mut()) else {
            return;
        };
        if !std::mem::replace(&mut tunnel.is_in_burst, true) {
            let burst = NewJob {
                wire_bytes: None,
                had_bytes: 0,
                class: tunnel.class,
                payer: tunnel.payer,
            };
            self.start_job(flow, burst, now);
        }
    }

    /// The flow has a new job, or its job is so much larger; returns the rank.
    fn start_job(&mut self, flow: FlowId, new: NewJob, now: Time) -> u64 {
        let (client, path) = self.client_of(flow);
        let payer = new.payer.unwrap_or(client);
        let record = self.flows.get_mut(&flow);
        let Some(record) = record.filter(|record| record.is_ordered) else {
            return 0;
        };
        let (job, scheduler) = (JobId(flow), &mut self.turns.scheduler);
        let is_new = !record.has_job;
        if record.has_job {
            scheduler.enlarge(job, new.wire_bytes.unwrap_or(0), now);
        } else {
            record.has_job = true;
            let arrival = Arrival {
                id: job,
                class: new.class,
                size: new.wire_bytes,
                trickle: record.record_bytes,
                client: Some(client.client),
                payer: Some(payer),
            };
            scheduler.arrive(arrival, now);
            // Not by comparison with the default: the compiler takes 13 KB of code for that.
            if path.is_known() {
                scheduler.observe(job, path, now);
            }
            if new.had_bytes > 0 {
                scheduler.progress(job, new.had_bytes, now);
            }
            scheduler.block(job, now);
        }
        let rank = scheduler.rank(job).unwrap_or(0);
        let connection = self.connection_of_stream(flow).unwrap_or(flow);
        if let Some(record) = self.flows.get_mut(&connection) {
            // Those of one job are all paid by who began it.
            if is_new {
                record.last_payer = Some(payer);
            }
            record.paid_bytes += new.had_bytes;
        }
        rank
    }

    /// Everything of the flow's job is written, or given up.
    pub(super) fn finish_job(&mut self, flow: FlowId, now: Time) {
        self.leave(flow, now);
        if let Some(record) = self.flows.get_mut(&flow)
            && std::mem::take(&mut record.has_job)
        {
            record.wrote_at = None;
            self.turns.scheduler.depart(JobId(flow), now);
        }
    }

    /// Ends the flow's responses that have their bodies done (`completed`), or all.
    pub(super) fn end_responses(
        &mut self,
        flow: FlowId,
        completed: bool,
        now: Time,
    ) -> Vec<EndedResponse> {
        let connection = self.connection_of_stream(flow);
        let sums = (self.response_bytes, self.backed_up_ns(connection, now));
        let policy = self.policy_name();
        let Some(record) = self.flows.get_mut(&flow) else {
            return Vec::new();
        };
        let account = &mut record.account;
        std::iter::from_fn(|| account.take_ended(completed, policy, sums, now)).collect()
    }

    /// Ends the responses of streams that are written now that the connection has flushed.
    fn end_written_streams(
        &mut self,
        connection: FlowId,
        ended: &mut Vec<EndedResponse>,
        now: Time,
    ) {
        let Some(streams) = self.streams_of(connection) else {
            return;
        };
        streams.send_buffer.flush();
        let written = std::mem::take(&mut streams.written);
        self.review_send_buffer(connection, now);
        for stream in written {
            ended.append(&mut self.end_responses(stream, true, now));
            self.stop_ordering(stream, now);
            self.remove(stream);
        }
    }
}
