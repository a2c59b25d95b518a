//! The responses of one flow: what was promised, what was sent, and for how long others went.

use crate::response::JobReport;
use crate::wire;
use sooner_policy::Time;
use std::collections::VecDeque;

/// What of its size a response may have more than was announced, at least and as a part of it.
const OUTGROWN_BYTES_MIN: u64 = 4 * wire::SEGMENT_BYTES;
const OUTGROWN_PART: u64 = 64;

/// Called once, when a response is over.
pub type OnEnd = Box<dyn FnOnce(JobReport) + Send>;

/// A response that has begun.
pub struct StartedResponse {
    /// Its number.
    pub job: u64,
    /// Its size on the wire, if known.
    pub wire_bytes: Option<u64>,
}

/// A response that is over.
pub struct EndedResponse {
    /// Its number.
    pub job: u64,
    /// What its owner wants to be called with the report.
    pub on_end: OnEnd,
    /// How it went.
    pub report: JobReport,
}

/// The responses of a flow.
pub(super) struct Account {
    responses: VecDeque<Response>,
    wait: Option<WaitStart>,
    waited_ns: u64,
    pub(super) sent_bytes: u64,
    /// What had been sent when the present job began.
    job_from_bytes: u64,
    /// Announced by responses, sent or not; `None` once a size was unknown.
    promised_bytes: Option<u64>,
    has_had_response: bool,
}

/// A response from its start to its end.
pub(super) struct Response {
    pub(super) job: u64,
    pub(super) on_end: OnEnd,
    pub(super) started_at: Time,
    pub(super) rank_at_start: u64,
    /// Written for the responses of all flows before it.
    pub(super) all_sent_before_bytes: u64,
    is_body_done: bool,
    waited_before_ns: u64,
    sent_before_bytes: u64,
}

/// When a wait began, and for how long the connection had been backed up by then.
#[derive(Clone, Copy)]
struct WaitStart {
    at: Time,
    backed_up_ns: u64,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            responses: VecDeque::new(),
            wait: None,
            waited_ns: 0,
            sent_bytes: 0,
            job_from_bytes: 0,
            promised_bytes: Some(0),
            has_had_response: false,
        }
    }
}

impl Response {
    /// A response that begins now.
    pub(super) fn new(job: u64, on_end: OnEnd, rank_at_start: u64, now: Time) -> Self {
        Self {
            job,
            on_end,
            started_at: now,
            rank_at_start,
            all_sent_before_bytes: 0,
            is_body_done: false,
            waited_before_ns: 0,
            sent_before_bytes: 0,
        }
    }
}

impl Account {
    /// Another response is to be written; whether it is the first.
    pub(super) fn start(&mut self, response: Response, size_bytes: Option<u64>) -> bool {
        let promised = self.promised_bytes.zip(size_bytes);
        self.promised_bytes = promised.map(|(promised, size)| promised.saturating_add(size));
        self.responses.push_back(Response {
            waited_before_ns: self.waited_ns_at(0, response.started_at),
            sent_before_bytes: self.sent_bytes,
            ..response
        });
        !std::mem::replace(&mut self.has_had_response, true)
    }

    /// A response is so much larger than was announced.
    pub(super) fn enlarge(&mut self, additional_bytes: u64) {
        if let Some(promised_bytes) = &mut self.promised_bytes {
            *promised_bytes = promised_bytes.saturating_add(additional_bytes);
        }
    }

    /// The body of the response started last has given its last byte.
    pub(super) fn end_last_body(&mut self) {
        if let Some(response) = self.responses.back_mut() {
            response.is_body_done = true;
        }
    }

    /// The bodies of all responses have given their last byte.
    pub(super) fn end_bodies(&mut self) {
        let responses = self.responses.iter_mut();
        responses.for_each(|response| response.is_body_done = true);
    }

    /// Takes the oldest response: if all is written (`completed`) one with its body done, else any.
    pub(super) fn take_ended(
        &mut self,
        completed: bool,
        policy: &'static str,
        (all_sent_bytes, backed_up_ns): (u64, u64),
        now: Time,
    ) -> Option<EndedResponse> {
        let front = self.responses.front()?;
        if completed && !front.is_body_done {
            return None;
        }
        let response = self.responses.pop_front()?;
        let sent_bytes = self.sent_bytes - response.sent_before_bytes;
        let wait_ns = self.waited_ns_at(backed_up_ns, now) - response.waited_before_ns;
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
        Some(EndedResponse {
            job: response.job,
            on_end: response.on_end,
            report,
        })
    }

    /// Time during which its own connection is backed up does not count: others are not what it
    /// waits for.
    pub(super) fn begin_wait(&mut self, backed_up_ns: u64, now: Time) {
        self.wait.get_or_insert(WaitStart {
            at: now,
            backed_up_ns,
        });
    }

    pub(super) fn end_wait(&mut self, backed_up_ns: u64, now: Time) {
        self.waited_ns = self.waited_ns_at(backed_up_ns, now);
        self.wait = None;
    }

    pub(super) fn waited_ns_at(&self, backed_up_ns: u64, now: Time) -> u64 {
        let waits_ns = self.wait.map_or(0, |start| {
            let backed_up_ns = backed_up_ns.saturating_sub(start.backed_up_ns);
            now.since(start.at).saturating_sub(backed_up_ns)
        });
        self.waited_ns + waits_ns
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.wait.is_some()
    }

    pub(super) fn has_responses(&self) -> bool {
        !self.responses.is_empty()
    }

    /// Whether the flow ever had a response.
    pub(super) fn has_had_response(&self) -> bool {
        self.has_had_response
    }

    /// Everything was flushed: what comes next is another job.
    pub(super) fn end_job(&mut self) {
        if self.responses.is_empty() {
            self.promised_bytes = Some(self.sent_bytes);
        }
        self.job_from_bytes = self.sent_bytes;
    }

    /// Bytes of the present job still to be sent, if the size is known.
    pub(super) fn remaining_bytes(&self) -> Option<u64> {
        self.promised_bytes
            .map(|promised| promised.saturating_sub(self.sent_bytes))
    }

    /// How much larger the present job is to be taken for, once it has outgrown what was announced:
    /// it is half done then, as one of unknown size is. An announcement is an estimate, and a little
    /// more is its end.
    pub(super) fn outgrown_bytes(&self) -> Option<u64> {
        let promised_bytes = self.promised_bytes.filter(|_| self.has_responses())?;
        let excess_bytes = self.sent_bytes.checked_sub(promised_bytes)?;
        let size_bytes = promised_bytes.saturating_sub(self.job_from_bytes);
        let allowed_bytes = size_bytes / OUTGROWN_PART + OUTGROWN_BYTES_MIN;
        (excess_bytes > allowed_bytes).then(|| self.attained_bytes() + excess_bytes)
    }

    /// Bytes sent of the present job.
    pub(super) fn attained_bytes(&self) -> u64 {
        self.sent_bytes - self.job_from_bytes
    }

    /// The size of the present job in bytes, if it is known.
    pub(super) fn size_bytes(&self) -> Option<u64> {
        self.promised_bytes
            .map(|promised| promised.saturating_sub(self.job_from_bytes))
    }
}
