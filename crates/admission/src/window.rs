//! What was seen of a backend between two looks of the controller of its limit.
//!
//! Integrals over time, so that it does not matter how often the controller looks: how many jobs
//! were inside, whether one waited outside. Only while one waited does the number of completed jobs
//! say something about the limit; else it says how many came.

use sooner_policy::Time;

/// Sums since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// How long it was, ns.
    pub duration_ns: u64,
    /// In which a job waited outside, ns.
    pub backlogged_ns: u64,
    /// Jobs inside, times how long they were, ns.
    pub inside_ns: u128,
    /// Jobs that were done.
    pub completed: u64,
    /// The time inside of these, ns.
    pub service_sum_ns: u128,
    /// Its squares, ns².
    pub service_squares_ns2: f64,
}

/// A look says something about the limit if a job waited for this share of it.
const BACKLOGGED: f64 = 0.95;

impl Window {
    /// Whether a job waited nearly all the time.
    pub fn is_backlogged(&self) -> bool {
        self.duration_ns > 0 && self.backlogged_ns as f64 >= BACKLOGGED * self.duration_ns as f64
    }
}

/// Keeps the sums. [`Admission`](crate::Admission) has one of its backend; where that is several
/// servers, each may have one of its own.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    window: Window,
    seen_at: Time,
}

impl Windows {
    /// The first begins now, and not with the time.
    pub fn since(now: Time) -> Self {
        Self {
            seen_at: now,
            ..Self::default()
        }
    }

    /// `inside` and `waiting` were so since the last call; they change now.
    pub fn pass(&mut self, inside: usize, waiting: usize, now: Time) {
        let passed_ns = now.since(self.seen_at);
        self.seen_at = self.seen_at.max(now);
        self.window.duration_ns += passed_ns;
        self.window.inside_ns += inside as u128 * u128::from(passed_ns);
        if waiting > 0 {
            self.window.backlogged_ns += passed_ns;
        }
    }

    /// One was done.
    pub fn completed(&mut self, service_ns: u64) {
        self.window.completed += 1;
        self.window.service_sum_ns += u128::from(service_ns);
        self.window.service_squares_ns2 += (service_ns as f64).powi(2);
    }

    /// The sums; they begin anew.
    pub fn take(&mut self) -> Window {
        std::mem::take(&mut self.window)
    }
}
