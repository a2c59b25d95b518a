//! Which of the jobs that wait outside a backend goes in next.
//!
//! What is inside cannot be stopped, so a policy has a say only when a place is free. It is asked the way it is asked elsewhere, in
//! amounts of service: on an imagined server it serves the waiting jobs, each for its expected time, and the first one it is done with
//! goes in. So what the starvation guard promises holds here as well, in expected time instead of time: 5 % of the imagined service
//! goes to the job that has waited longest, which keeps what it has had. Therefore, while a job waits, the jobs that came after it and
//! went in before it have together an expected time of at most 19 x (its own + that of the jobs that waited when it came + one turn).
//!
//! Counting admitted jobs instead would be simpler and wrong: one job in twenty would be the oldest, under shortest-first the oldest
//! is the longest, and 5 % of the jobs can be most of the work.

use sooner_policy::{Arrival, GuardLimits, JobId, PolicyName, Scheduler, Time};
use std::collections::{BTreeMap, BTreeSet};

/// The service in one turn of the oldest job, ns of expected time.
pub const TURN_NS: u64 = 10_000_000;

/// Longer expectations count as this long, ns (an hour): it bounds the turns in one decision.
const EXPECTED_NS_MAX: u64 = 3_600_000_000_000;

/// In which order jobs of the same class go in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The shortest expected time first.
    #[default]
    Expected,
    /// First come, first served.
    Fcfs,
}

/// More jobs would wait than the operator allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{waiting_max} jobs wait already, and no more may")]
pub struct QueueFull {
    /// The bound.
    pub waiting_max: usize,
}

/// Lets at most `limit` jobs in at once; the rest wait, class by class, in rank order.
///
/// The order of calls for a job: [`arrive`](Self::arrive), then [`leave`](Self::leave) at any time. After each of them, and after
/// [`set_limit`](Self::set_limit), [`admit`](Self::admit) until it says `None`. Unknown jobs are ignored.
pub struct Admission {
    scheduler: Box<dyn Scheduler + Send>,
    limit: usize,
    waiting_max: Option<usize>,
    /// The imagined service each waiting job still needs, ns.
    waiting: BTreeMap<JobId, u64>,
    inside: BTreeSet<JobId>,
}

impl Admission {
    /// `limit` jobs inside, the others ordered by `order`; at most `waiting_max` of them, if that is said.
    pub fn new(order: Order, limit: usize, waiting_max: Option<usize>) -> Self {
        let policy = match order {
            Order::Expected => PolicyName::Srpt,
            Order::Fcfs => PolicyName::Fcfs,
        };
        // Nobody outside a backend can be given a trickle: the guard's second promise is switched off.
        let guard = GuardLimits {
            silence_ns_max: u64::MAX,
            ..GuardLimits::with_turn(TURN_NS)
        };
        Self {
            scheduler: policy.scheduler(TURN_NS, Some(guard)),
            limit,
            waiting_max,
            waiting: BTreeMap::new(),
            inside: BTreeSet::new(),
        }
    }

    /// A job comes that is expected to stay `expected_ns` inside; while nothing is known it goes first, which is how one finds out.
    pub fn arrive(
        &mut self,
        job: JobId,
        class: u8,
        expected_ns: Option<u64>,
        now: Time,
    ) -> Result<(), QueueFull> {
        if let Some(waiting_max) = self.waiting_max
            && self.inside.len() >= self.limit
            && self.waiting.len() >= waiting_max
        {
            return Err(QueueFull { waiting_max });
        }
        if self.inside.contains(&job) || self.waiting.contains_key(&job) {
            return Ok(());
        }
        let size = expected_ns.map(|ns| ns.clamp(1, EXPECTED_NS_MAX));
        self.waiting.insert(job, size.unwrap_or(1));
        let arrival = Arrival {
            id: job,
            class,
            size,
            trickle: 0,
        };
        self.scheduler.arrive(arrival, now);
        Ok(())
    }

    /// A job is done, or given up, inside or outside.
    pub fn leave(&mut self, job: JobId, now: Time) {
        self.inside.remove(&job);
        if self.waiting.remove(&job).is_some() {
            self.scheduler.depart(job, now);
        }
    }

    /// The next job to go in, if there is a place and a job; it is inside from now on.
    pub fn admit(&mut self, now: Time) -> Option<JobId> {
        if self.inside.len() >= self.limit {
            return None;
        }
        let job = self.first_done(now)?;
        self.waiting.remove(&job);
        self.scheduler.depart(job, now);
        self.inside.insert(job);
        Some(job)
    }

    /// Serves the waiting jobs in the imagination until one has had all it is expected to need.
    fn first_done(&mut self, now: Time) -> Option<JobId> {
        loop {
            let grant = self.scheduler.next(now)?;
            let left_ns = self.waiting.get_mut(&grant.job)?;
            let served_ns = grant.max_amount.min(*left_ns);
            *left_ns -= served_ns;
            let is_done = *left_ns == 0;
            self.scheduler.progress(grant.job, served_ns, now);
            if is_done {
                return Some(grant.job);
            }
        }
    }

    /// From now on `limit` jobs may be inside; those beyond it stay until they leave.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// How many jobs may be inside.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// How many jobs are inside.
    pub fn inside(&self) -> usize {
        self.inside.len()
    }

    /// How many jobs wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
