//! Whether the table agrees with itself: assertions that stay on.
//!
//! Sums are compared at every grant. What takes a walk through the table is compared in builds with
//! debug assertions only, fuzzing among them, and once in as many calls as there are flows.

use super::LinkScheduler;
use super::flow::Flow;

/// Sums of what was granted, bytes.
#[derive(Debug, Default)]
pub(super) struct Audit {
    granted_bytes: u64,
    written_bytes: u64,
    given_back_bytes: u64,
    under_way_bytes: u64,
    unchecked_calls: usize,
}

impl Audit {
    /// A flow is granted `bytes`; `under_way_bytes` is what it was granted and has not settled.
    pub(super) fn grant(&mut self, under_way_bytes: &mut u64, bytes: u64) {
        self.settle(under_way_bytes, 0);
        *under_way_bytes = bytes;
        self.granted_bytes += bytes;
        self.under_way_bytes += bytes;
    }

    /// A flow wrote `written_bytes` of what it was granted, and gives the rest back.
    pub(super) fn settle(&mut self, under_way_bytes: &mut u64, written_bytes: u64) {
        let granted_bytes = std::mem::take(under_way_bytes);
        let used_bytes = written_bytes.min(granted_bytes);
        self.written_bytes += used_bytes;
        self.given_back_bytes += granted_bytes - used_bytes;
        self.under_way_bytes -= granted_bytes;
        assert_eq!(
            self.granted_bytes,
            self.written_bytes + self.given_back_bytes + self.under_way_bytes,
            "what was granted was written, given back, or is under way"
        );
    }
}

impl LinkScheduler {
    /// Compares the table with itself now and then, where debug assertions are on.
    pub(super) fn check(&mut self) {
        if !cfg!(debug_assertions) {
            return;
        }
        self.audit.unchecked_calls += 1;
        if self.audit.unchecked_calls > self.flows.len() {
            self.audit.unchecked_calls = 0;
            self.assert_consistent();
        }
    }

    fn assert_consistent(&self) {
        let flows = || self.flows.values();
        let ready = flows().filter(|flow| flow.is_ready).count();
        assert_eq!(ready, self.turns.waiting(), "flows that wait are counted");
        let under_way_bytes: u64 = flows().map(|flow| flow.granted_bytes).sum();
        assert_eq!(under_way_bytes, self.audit.under_way_bytes);
        for (&id, flow) in &self.flows {
            let takes_turns = flow.is_ordered && flow.has_job;
            assert!(takes_turns || !flow.is_ready, "{id} is ready without a job");
            assert_eq!(takes_turns, self.rank(id).is_some(), "{id} has one job");
            if let Some(streams) = &flow.streams {
                let knows = |stream| self.flows.contains_key(stream);
                assert!(streams.present.iter().all(knows), "streams of {id}");
                assert!(streams.prepaid_bytes <= flow.charged_bytes);
            }
            self.assert_stream_consistent(id, flow);
        }
        for stream in &self.returning {
            let flow = self.flows.get(stream);
            assert!(flow.is_some_and(|flow| flow.stream.is_some() && flow.is_ordered));
        }
    }

    fn assert_stream_consistent(&self, id: u64, flow: &Flow) {
        let Some(stream) = flow.stream.filter(|_| flow.is_ordered) else {
            return;
        };
        let connection = self.flows.get(&stream.connection);
        let streams = connection.and_then(|connection| connection.streams.as_deref());
        let Some(streams) = streams else {
            panic!("the connection of stream {id} is gone");
        };
        assert!(streams.present.contains(&id), "{id} is on its connection");
        assert_eq!(flow.is_ready, streams.may_go(id, &stream.sibling), "{id}");
        assert!(
            !stream.sibling.returns || self.returning.contains(&id),
            "{id}"
        );
    }
}
