//! Which of the jobs that wait outside a backend goes in next.
//!
//! What is inside cannot be stopped, so a policy has a say only when a place is free. It is asked
//! the way it is asked elsewhere, in amounts of service: on an imagined server it serves the
//! waiting jobs, each for its expected time, and the first one it is done with goes in. So what the
//! starvation guard promises holds here as well, in expected time instead of time: 5 % of the
//! imagined service goes to the job that has waited longest, which keeps what it has had.
//! Therefore, while a job waits, the jobs that came after it and went in before it have together an
//! expected time, when they went in, of at most 19 x (its own + that of the jobs that waited when it
//! came + one turn).
//! That turn counts where nothing is known of a job; any other has at most what it lacks in one.
//!
//! The same bound holds for what they took in truth, whatever was expected of them, but for those
//! that were still inside when the last of them went in: what a job took beyond its expected time
//! is owed to those it went in before ([`settle`](AdmissionQueue::settle)). Not so of a job of which
//! nothing was known, and of one that came back after it had made room for others. Without that
//! debt a few jobs that seem short and are not would make a job wait for as long as their work is,
//! 19 times over.
//! The job itself and those before it count as was expected: one that seems long waits like a long
//! one. What is expected of a job that waits may fall and never rises
//! ([`expect_less`](AdmissionQueue::expect_less)).
//!
//! A decision costs O(log n), whatever is expected, O(sizes) where a ratio to the size decides (in
//! steps of an eighth of an octave), and O(payers) for a class with a cap where those share who
//! wait: the oldest is done in 32 turns, of which those of long jobs are longer, and before each of
//! them the policy's choice has one grant at most, which ends when it is done or when the oldest's
//! turn is paid for. So 64 grants are the most.
//!
//! A class may have a cap ([`set_caps`](AdmissionQueue::set_caps)): while it has as many inside as
//! that, its jobs are not in the order and are promised nothing.
//!
//! Counting admitted jobs instead would be simpler and wrong: one job in twenty would be the
//! oldest, under shortest-first the oldest is the longest, and 5 % of the jobs can be most of the
//! work.

use crate::caps::{Caps, LineName, Place};
mod charged;
mod renewal;

use crate::order::{Order, Ranking, SharedTuning, Tuning, Within};
use charged::{Charged, Returned, Waiting};
use sooner_policy::{Arrival, JobId, Payer, Promise, Time};
use std::collections::BTreeMap;

/// The service in one turn of the oldest job, ns of expected time; more where it is expected to
/// take longer than 32 of them.
pub const TURN_NS: u64 = 10_000_000;

/// The most turns in which the oldest job is done: it bounds what a decision costs. More would be
/// finer, which moves no bound.
pub(crate) const TURNS_MAX: u64 = 32;

/// Longer expectations count as this long, ns (an hour): else what is owed to one job of which a
/// year is expected would be owed to no other for as long.
const EXPECTED_NS_MAX: u64 = 3_600_000_000_000;

/// What is known of a job that comes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// Its class, of which the lowest goes first where the order is by class.
    pub class: u8,
    /// Its class's number among the goals, by which its class is found again when they change.
    pub number: u8,
    /// How long it is expected to stay inside, ns; while nothing is known it counts as short, which
    /// is how one finds out.
    pub expected_ns: Option<u64>,
    /// When it should have been let in.
    pub promise: Option<Promise>,
    /// When it came, here or where it waited before, ns after the origin or before it.
    pub came_ns: i64,
    /// Who is charged for it, where those share who wait.
    pub payer: Option<Payer>,
    /// The number of its class where classes have no names; `None`: the one that it has.
    pub plain_class: Option<u8>,
}

/// More jobs would wait than the operator allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{waiting_max} jobs wait already, the most that may")]
pub struct QueueFull {
    /// The bound.
    pub waiting_max: usize,
}

/// Lets at most `limit` jobs in at once; the rest wait, class by class, in rank order.
///
/// The order of calls for a job: [`arrive`](Self::arrive), then [`leave`](Self::leave) at any time.
/// After each of them, and after [`set_limit`](Self::set_limit), [`admit`](Self::admit) until it
/// says `None`. Unknown jobs are ignored.
pub struct AdmissionQueue {
    order: Order,
    ranking: Ranking,
    tuning: SharedTuning,
    limit: usize,
    waiting_max: Option<usize>,
    waiting: BTreeMap<JobId, Waiting>,
    /// Those who have been inside and come back, in front of all others, in the order in which they
    /// came back.
    back: BTreeMap<u64, Returned>,
    /// Where each of them is.
    back_at: BTreeMap<JobId, u64>,
    /// With what was expected of them.
    inside: BTreeMap<JobId, Request>,
    /// How those inside were charged for what was expected of them.
    charged: BTreeMap<JobId, Charged>,
    weights: BTreeMap<u8, u32>,
    caps: Caps,
    arrivals: u64,
    grants: u64,
}

impl Request {
    fn size_ns(&self) -> Option<u64> {
        self.expected_ns.map(|ns| ns.clamp(1, EXPECTED_NS_MAX))
    }

    fn arrival(&self, job: JobId) -> Arrival {
        Arrival {
            id: job,
            class: self.class,
            size: self.size_ns(),
            trickle: 0,
            client: None,
            payer: self.payer,
        }
    }
}

impl AdmissionQueue {
    /// `limit` jobs inside, the others ordered by `order`; at most `waiting_max` of them, if that
    /// is said.
    pub fn new(order: Order, limit: usize, waiting_max: Option<usize>) -> Self {
        let tuning = SharedTuning::default();
        Self {
            order,
            ranking: Ranking::new(order, &tuning),
            tuning,
            limit,
            waiting_max,
            waiting: BTreeMap::new(),
            back: BTreeMap::new(),
            back_at: BTreeMap::new(),
            inside: BTreeMap::new(),
            charged: BTreeMap::new(),
            weights: BTreeMap::new(),
            caps: Caps::default(),
            arrivals: 0,
            grants: 0,
        }
    }

    /// From now on at most so many wait; those that do stay.
    pub fn set_waiting_max(&mut self, waiting_max: Option<usize>) {
        self.waiting_max = waiting_max;
    }

    /// A job comes.
    pub fn arrive(&mut self, job: JobId, request: Request, now: Time) -> Result<(), QueueFull> {
        if let Some(waiting_max) = self.waiting_max
            && self.is_full(request.number, waiting_max)
        {
            return Err(QueueFull { waiting_max });
        }
        if self.inside.contains_key(&job) || self.waiting.contains_key(&job) {
            return Ok(());
        }
        let waiting = Waiting {
            request,
            left_ns: request.size_ns().unwrap_or(1),
            sequence: self.arrivals,
            arrived_at: now,
            charged_ns: 0,
            charged_at: now,
        };
        self.arrivals += 1;
        self.waiting.insert(job, waiting);
        if !self.enqueue(job, waiting) {
            self.ranking.scheduler().block(job, now);
        }
        Ok(())
    }

    /// A class with a cap is counted by itself, or those that its cap holds would shut out all
    /// others.
    fn is_full(&self, number: u8, waiting_max: usize) -> bool {
        let must_wait = self.inside.len() >= self.limit || !self.caps.has_room(number);
        let waiting = if self.caps.is_capped(number) {
            self.caps.waiting(number)
        } else {
            self.waiting.len() - self.caps.all_waiting()
        };
        must_wait && waiting >= waiting_max
    }

    /// A job comes back that was let in and has made room for others: it goes in before all who
    /// wait.
    pub fn return_to(&mut self, job: JobId, request: Request) {
        if self.back_at.contains_key(&job) {
            return;
        }
        let returned = Returned {
            job,
            request,
            charged_ns: request.size_ns().unwrap_or(1),
        };
        self.back.insert(self.arrivals, returned);
        self.back_at.insert(job, self.arrivals);
        self.arrivals += 1;
    }

    /// Into the order; `false` where it cannot be next, and is to be blocked.
    fn enqueue(&mut self, job: JobId, waiting: Waiting) -> bool {
        let request = waiting.request;
        let arrival = Arrival {
            size: request.expected_ns.map(|_| waiting.left_ns),
            ..request.arrival(job)
        };
        let scheduler = self.ranking.scheduler();
        let is_held = !self.caps.has_room(request.number);
        if is_held {
            scheduler.arrive_blocked(arrival, waiting.arrived_at);
        } else {
            scheduler.arrive(arrival, waiting.arrived_at);
        }
        if let Some(promise) = request.promise {
            self.ranking.promise(job, promise);
        }
        self.hold(job, request, waiting.sequence) || is_held
    }

    /// A job that waits is one of a class with a cap, if its class has one; gives whether it stays
    /// in the order.
    fn hold(&mut self, job: JobId, request: Request, sequence: u64) -> bool {
        if !self.caps.is_capped(request.number) {
            return true;
        }
        let rank = self.ranking.rank_in_line(job);
        let place = Place {
            line: self.line(request, rank),
            rank,
            sequence,
            job,
        };
        self.caps.came(request.number, place)
    }

    /// In which line of its class a job of this rank waits.
    fn line(&self, request: Request, rank: u64) -> LineName {
        let has_promises = matches!(self.order, Order::Targets(_));
        let has_payers = matches!(self.order, Order::LeastUsed(_));
        let has_ratios = self.order.within() == Some(Within::Hrrn);
        LineName {
            is_without_promise: has_promises && request.promise.is_none(),
            payer: request
                .payer
                .filter(|_| has_payers)
                .map(|payer| (payer.client, payer.network)),
            size_step: if has_ratios { rank } else { 0 },
        }
    }

    /// Those of classes with a cap are in the order that may be next.
    fn renew_heads(&mut self, now: Time) {
        let changes = self.caps.changes();
        let scheduler = self.ranking.scheduler();
        changes
            .put_in
            .into_iter()
            .for_each(|job| scheduler.unblock(job, now));
        changes
            .taken_out
            .into_iter()
            .for_each(|job| scheduler.block(job, now));
    }

    /// A job is done, or given up, inside or outside.
    pub fn leave(&mut self, job: JobId, now: Time) {
        self.charged.remove(&job);
        if let Some(request) = self.inside.remove(&job) {
            self.caps.left(request.number);
        }
        if let Some(at) = self.back_at.remove(&job) {
            self.back.remove(&at);
        }
        if let Some(one) = self.waiting.remove(&job) {
            self.caps.gone(job);
            // Before it goes: a class is not without a job for a moment.
            self.renew_heads(now);
            let scheduler = self.ranking.scheduler();
            scheduler.depart(job, now);
            // What it had was imagined: about as much is given back, as if it had been charged at once.
            if one.charged_ns > 0 {
                scheduler.settle(&one.charged(job), 0, one.charged_at);
            }
        }
    }

    /// A job inside took `actual_ns`, whatever was expected; to be said once.
    pub fn settle(&mut self, job: JobId, actual_ns: u64) {
        let charged = self.charged.remove(&job);
        if let (Some(request), Some(charged)) = (self.inside.get(&job), charged) {
            // Of what nothing was known nothing was promised either, and as long as nothing is known
            // of those that wait they would pay with nothing for what they are owed.
            if let Some(expected_ns) = request.size_ns()
                && charged.has_passed
            {
                let more_ns = actual_ns.saturating_sub(expected_ns);
                self.ranking.owe(more_ns, charged.at);
            }
            let arrival = Arrival {
                size: Some(charged.charged_ns),
                ..request.arrival(job)
            };
            // As if that had been expected: what was charged then counts for less by now.
            self.ranking
                .scheduler()
                .settle(&arrival, actual_ns, charged.at);
        }
    }

    /// The next job to go in, if there is a place and a job; it is inside from now on.
    pub fn admit(&mut self, now: Time) -> Option<JobId> {
        if self.inside.len() >= self.limit {
            return None;
        }
        let may_return = |(_, back): &(&u64, &Returned)| self.caps.has_room(back.request.number);
        let returned = self.back.iter().find(may_return).map(|(&at, _)| at);
        let returned = returned.and_then(|at| self.back.remove(&at));
        let (job, request, has_passed, charged_ns) = match returned {
            Some(back) => {
                self.back_at.remove(&back.job);
                (back.job, back.request, false, back.charged_ns)
            }
            None => {
                let job = self.first_done(now)?;
                let waiting = self.waiting.remove(&job)?;
                let has_passed = self.ranking.oldest() != Some(job);
                self.caps.gone(job);
                (job, waiting.request, has_passed, waiting.charged_ns)
            }
        };
        assert!(self.caps.has_room(request.number), "a cap is kept");
        self.caps.entered(request.number);
        // As in [`leave`](Self::leave), where more of the class may go in.
        if self.caps.has_room(request.number) {
            self.renew_heads(now);
        }
        self.ranking.scheduler().depart(job, now);
        let charged = Charged {
            at: now,
            has_passed,
            charged_ns,
        };
        self.charged.insert(job, charged);
        let before = self.inside.insert(job, request);
        assert!(before.is_none(), "a job goes in once");
        assert!(self.inside.len() <= self.limit, "no more go in than may");
        Some(job)
    }

    /// Serves the waiting jobs in the imagination until one has had all it is expected to need.
    fn first_done(&mut self, now: Time) -> Option<JobId> {
        if self.waiting.len() == self.caps.held() {
            return None;
        }
        self.renew_heads(now);
        loop {
            let grant = self.ranking.scheduler().next(now)?;
            self.grants += 1;
            let waiting = self.waiting.get_mut(&grant.job)?;
            assert!(waiting.left_ns > 0, "a job that is served waits for more");
            let served_ns = grant.max_amount.min(waiting.left_ns);
            waiting.left_ns -= served_ns;
            waiting.charge(served_ns, now);
            let is_done = waiting.left_ns == 0;
            self.ranking.scheduler().progress(grant.job, served_ns, now);
            if is_done {
                return Some(grant.job);
            }
            let rank = self.ranking.rank_in_line(grant.job);
            self.caps.moved(grant.job, rank);
            self.renew_heads(now);
        }
    }

    /// In an order by weights `class` gets so many parts of the service; 1 unless it is set.
    pub fn set_weight(&mut self, class: u8, weight: u32) {
        self.weights.insert(class, weight);
        self.ranking.set_weight(class, weight);
    }

    /// What orders by boosts and nudges go by, for jobs that come from now on.
    pub fn set_tuning(&mut self, tuning: Tuning) {
        self.tuning.set(tuning);
    }

    /// The same; who waits goes in as if it had been so when it came. Else jobs that are alike would
    /// go in by the tuning at their time, and not as they came.
    pub fn retune(&mut self, tuning: Tuning, now: Time) {
        if self.tuning.get() != tuning {
            self.tuning.set(tuning);
            self.reorder(now);
        }
    }

    /// From now on `limit` jobs may be inside; those beyond it stay until they leave.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The number of the class of a job that is here.
    pub fn number_of(&self, job: JobId) -> Option<u8> {
        Some(self.request_of(job)?.number)
    }

    /// How long a job that is here is expected to take, as it is expected now, or was when it went
    /// in, ns; `None` while nothing is known.
    pub fn expected_ns(&self, job: JobId) -> Option<u64> {
        self.request_of(job)?.expected_ns
    }

    fn request_of(&self, job: JobId) -> Option<&Request> {
        let back = || {
            self.back
                .get(self.back_at.get(&job)?)
                .map(|back| &back.request)
        };
        let waiting = || self.waiting.get(&job).map(|one| &one.request);
        let inside = self.inside.get(&job);
        inside.or_else(waiting).or_else(back)
    }

    /// The numbers of the classes of all who are here.
    pub fn numbers(&self) -> impl Iterator<Item = u8> {
        let waiting = self.waiting.values().map(|one| one.request.number);
        let back = self.back.values().map(|back| back.request.number);
        let inside = self.inside.values().map(|request| request.number);
        inside.chain(waiting).chain(back)
    }

    /// How many jobs may be inside.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// How many grants the imagined server has carried out so far: what the decisions have cost.
    pub fn grants(&self) -> u64 {
        self.grants
    }

    /// How many jobs are inside.
    pub fn inside(&self) -> usize {
        self.inside.len()
    }

    /// How many jobs wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len() + self.back.len()
    }

    /// How many of them a cap holds, whatever the limit is.
    pub fn held(&self) -> usize {
        let back = self.back.values();
        let back = back.filter(|back| !self.caps.has_room(back.request.number));
        self.caps.held() + back.count()
    }

    /// How many jobs of each class are inside, by number.
    pub fn inside_by_class(&self) -> BTreeMap<u8, usize> {
        let mut counts = BTreeMap::new();
        for request in self.inside.values() {
            *counts.entry(request.number).or_default() += 1;
        }
        counts
    }
}
