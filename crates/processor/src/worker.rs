//! One worker between two looks.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::bounds::{Bounds, LEVEL_COUNT};
use crate::history::RequestKind;
use crate::profile::{Cutoffs, Profile};
use crate::reading::{Doing, Ended, Reading};

/// Of one that has answered and sleeps for so long, the client is quiet: a request is over.
const ANSWERED_NS: u64 = 2_000_000;
/// Where beginnings cannot be seen, a worker that slept for so long begins a new request.
pub const LONG_SLEEP_NS: u64 = 10_000_000;

/// What is remembered of one.
#[derive(Debug, Clone, Default)]
pub struct Worker {
    /// What it had used when its request began.
    base_run_ns: u64,
    began_ns: u64,
    requests: u64,
    /// Whether it was at rest since it is known.
    has_begun: bool,
    /// Whether its last request is over, and what comes next is not known.
    is_over: bool,
    /// The level it has.
    pub level: u8,
    /// It goes before all until it has used so much.
    pub favoured_until_run_ns: Option<u64>,
    /// The levels of a request of which its application said what it will use.
    said: Option<Said>,
}

#[derive(Debug, Clone)]
struct Said {
    said_ns: NonZeroU64,
    bounds_ns: [u64; LEVEL_COUNT - 1],
    profile: Arc<Profile>,
}

impl Worker {
    /// One that is seen for the first time: what it did before is not known.
    pub fn new(reading: &Reading, now_ns: u64) -> Worker {
        Worker {
            base_run_ns: reading.run_ns,
            began_ns: now_ns,
            requests: reading.requests,
            ..Worker::default()
        }
    }

    /// What its request has used so far, ns.
    pub fn used_ns(&self, reading: &Reading) -> u64 {
        reading.run_ns.saturating_sub(self.base_run_ns)
    }

    /// Takes a reading; gives what a sleep seems to have ended since the last, of one of which no
    /// beginning was seen: of others, what sees them says it.
    pub fn take(&mut self, reading: &Reading, now_ns: u64) -> Option<Ended> {
        if reading.requests > self.requests {
            self.requests = reading.requests;
            self.base_run_ns = reading.begin_run_ns;
            self.began_ns = reading.begin_at_ns;
            self.is_over = false;
            return None;
        }
        let is_seen = reading.requests > 0;
        if !self.rests(reading, now_ns) {
            return None;
        }
        self.is_over = true;
        let used_ns = self.used_ns(reading);
        let began_ns = std::mem::replace(&mut self.began_ns, now_ns);
        self.base_run_ns = reading.run_ns;
        // Of what was under way before it was first at rest nothing is known.
        let had_begun = std::mem::replace(&mut self.has_begun, true);
        (!is_seen && had_begun && used_ns > 0).then_some(Ended {
            kind: None,
            began_ns,
            used_ns,
        })
    }

    /// What its request has in common with others, where that is known.
    pub fn kind(&self, reading: &Reading) -> Option<RequestKind> {
        reading.kind.filter(|_| !self.is_over)
    }

    /// The levels of its request where its application has said what it will use, between these
    /// bounds.
    pub fn said(&mut self, reading: &Reading, bounds: &Bounds) -> Option<Arc<Profile>> {
        let said_ns = reading.said_ns.filter(|_| !self.is_over)?;
        let bounds_ns = bounds.bounds_ns();
        let is_same = |said: &&Said| said.said_ns == said_ns && said.bounds_ns == bounds_ns;
        if let Some(said) = self.said.as_ref().filter(is_same) {
            return Some(said.profile.clone());
        }
        let cutoffs = Cutoffs::without_end(bounds_ns, bounds.law());
        let all_of_it = vec![(said_ns.get() as f64, 1.0)];
        let profile = Arc::new(Profile::new(&all_of_it, cutoffs));
        self.said = Some(Said {
            said_ns,
            bounds_ns,
            profile: profile.clone(),
        });
        Some(profile)
    }

    /// Whether it waits for its next request.
    pub fn rests(&self, reading: &Reading, now_ns: u64) -> bool {
        match reading.doing {
            _ if reading.hands_on => true,
            Doing::Idle { .. } => true,
            Doing::Asleep { .. } => self
                .rests_after_ns(reading)
                .is_some_and(|after_ns| reading.doing.quiet_ns(now_ns) >= after_ns),
            _ => false,
        }
    }

    /// After how long a sleep it counts as waiting for its next request, ns; none where no sleep
    /// says so.
    pub fn rests_after_ns(&self, reading: &Reading) -> Option<u64> {
        match (reading.requests, reading.has_answered) {
            (0, _) => Some(LONG_SLEEP_NS),
            (_, true) => Some(ANSWERED_NS),
            (_, false) => None,
        }
    }
}
