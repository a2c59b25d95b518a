//! One worker between two looks.

use crate::reading::{Doing, Reading};

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
    /// Whether a request has begun since it is known, and is not over.
    has_begun: bool,
    /// The level it has.
    pub level: u8,
    /// It goes before all until it has used so much.
    pub favoured_until_run_ns: Option<u64>,
}

/// A request that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over {
    /// When it began, ns.
    pub began_ns: u64,
    /// What it used, ns.
    pub used_ns: u64,
    /// So many that could not be told apart, each with this.
    pub count: u64,
    /// How far apart they are taken to have begun, ns.
    pub step_ns: u64,
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

    /// Takes a reading; gives what is over since the last.
    pub fn take(&mut self, reading: &Reading, now_ns: u64) -> Option<Over> {
        if reading.requests > self.requests {
            let count = reading.requests - self.requests;
            let used_ns = reading.begin_run_ns.saturating_sub(self.base_run_ns);
            // The last of them has only begun, and of what was under way before the beginning is
            // not known.
            let over = count - u64::from(!self.has_begun || self.requests == 0);
            let over = self.over(used_ns, over, reading.begin_at_ns);
            self.requests = reading.requests;
            self.base_run_ns = reading.begin_run_ns;
            self.began_ns = reading.begin_at_ns;
            self.has_begun = true;
            return over;
        }
        if reading.requests > 0 && matches!(reading.doing, Doing::Idle { .. }) {
            let is_over = std::mem::replace(&mut self.has_begun, false);
            let over = self.over(self.used_ns(reading), is_over.into(), now_ns);
            self.base_run_ns = reading.run_ns;
            self.began_ns = now_ns;
            return over;
        }
        if reading.requests == 0 && self.rests(reading, now_ns) {
            let used_ns = self.used_ns(reading);
            let is_over = std::mem::replace(&mut self.has_begun, true) && used_ns > 0;
            let over = self.over(used_ns, is_over.into(), now_ns);
            self.base_run_ns = reading.run_ns;
            self.began_ns = now_ns;
            return over;
        }
        None
    }

    /// So many requests are over at that time, which used so much together; none where none is.
    fn over(&self, used_ns: u64, count: u64, end_ns: u64) -> Option<Over> {
        (count > 0).then(|| Over {
            began_ns: self.began_ns,
            used_ns: used_ns / count,
            count,
            step_ns: end_ns.saturating_sub(self.began_ns) / count,
        })
    }

    /// Whether it waits for its next request.
    pub fn rests(&self, reading: &Reading, now_ns: u64) -> bool {
        match reading.doing {
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
