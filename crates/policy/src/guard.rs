//! Keeps every job from starving, whatever policy is inside.
//!
//! Two promises, each paid from a share of the service that others get. Clients
//! ([`Arrival::client`]) take turns with that share, so that no number of jobs of one client keeps
//! another client waiting:
//! - The oldest job of the client that has the turn gets at least one part in `oldest_share` (20: 5
//!   %). With capacity C and N clients a job is therefore done no later than N x (its own size +
//!   the sizes of its client's older jobs + one turn) / (C / 20).
//! - A job that could be served is never silent for longer than `silence_ns_max` (10 s): until then
//!   it has had its trickle, or it gets what is missing, or its client and the NATs on the way
//!   would give it up. A trickle is what its client notices ([`Arrival::trickle`]); where that is a
//!   whole of many bytes, a record, it is given in half the time, because it need not begin where a
//!   record does. Trickles too take at most one part in 20, so the silence is at most 10 s, or
//!   where more wait, N x (the trickles of its client's jobs) / (C / 20), twice that for records.
//!
//! Where a job must not take many turns however large it is ([`GuardLimits::turns_max`]), those of
//! a large one are longer, but none is longer than what the job still lacks. So what others get
//! before a turn is 19 times something that is in the bound already: longer turns do not move it.
//!
//! A job without a client shares its turn with all others without one: where a caller names no
//! client, N is 1. What the inner policy gives a job on its own counts: where it serves the oldest
//! anyway the guard takes nothing.
//!
//! Where service is what jobs are expected to need, and some need more, those who were passed by
//! them are owed for that as well ([`Guard::owe`]): the share is then one of what others had in
//! truth.
//!
//! Where a job that has begun goes on to its end, [`WholeGuard`] gives whole jobs.

mod clients;
mod credit;
mod whole;

use crate::{Arrival, Grant, JobId, Path, Scheduler, Time};
use alloc::collections::{BTreeMap, BTreeSet};
use clients::{Client, Clients};
use credit::Credit;
pub use whole::WholeGuard;

/// What a [`Guard`] promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardLimits {
    /// The oldest job gets one part in this many of the service; 20 is 5 %.
    pub oldest_share: u64,
    /// The service in one turn of the oldest job.
    pub turn: u64,
    /// In how many turns a job of known size is done at most, while no more than one client has
    /// jobs: its turns are so much longer. `None`: all turns are alike.
    pub turns_max: Option<u64>,
    /// The longest time in which a job gets less than its trickle.
    pub silence_ns_max: u64,
    /// The service that ends a silence, of jobs that do not need more.
    pub trickle: u64,
}

impl GuardLimits {
    /// 5 % to the oldest in turns of `turn`, no silence beyond 10 s.
    pub fn with_turn(turn: u64) -> Self {
        Self {
            oldest_share: 20,
            turn: turn.max(1),
            turns_max: None,
            silence_ns_max: 10_000_000_000,
            trickle: turn.clamp(1, 512),
        }
    }

    /// The service in one turn of a job that lacks `left`.
    fn turn_of(&self, left: Option<u64>) -> u64 {
        let least = self.turns_max.zip(left);
        let least = least.map_or(0, |(turns_max, left)| left.div_ceil(turns_max.max(1)));
        self.turn.max(least)
    }
}

/// Keeps the inner scheduler from starving a job.
#[derive(Clone, Debug)]
pub struct Guard<S> {
    inner: S,
    limits: GuardLimits,
    jobs: BTreeMap<JobId, Watched>,
    clients: Clients,
    /// All jobs by arrival, whether they can be served or not.
    by_age: BTreeSet<(u64, JobId)>,
    oldest_credit: Credit,
    trickle_credit: Credit,
    /// Who came later has not been passed by those that had more than was said.
    wronged_until: Time,
    arrivals: u64,
}

#[derive(Clone, Copy, Debug)]
struct Watched {
    arrived_at: Time,
    client: Client,
    sequence: u64,
    /// When it last had all of a trickle.
    heard_at: Time,
    /// The service it had since.
    unheard: u64,
    trickle: u64,
    /// The service it lacks, where that is known.
    left: Option<u64>,
    /// The service in one of its turns.
    turn: u64,
    /// In which time it gets that.
    within_ns: u64,
    ready: bool,
}

impl Watched {
    /// When it must have had its trickle.
    fn due_at(&self) -> Time {
        self.heard_at.after(self.within_ns)
    }

    /// What it must still get for its client to notice.
    fn missing(&self) -> u64 {
        self.trickle - self.unheard
    }

    /// The service in its next turn.
    fn next_turn(&self) -> u64 {
        let left = self.left.filter(|&left| left > 0);
        left.map_or(self.turn, |left| left.min(self.turn))
    }

    fn serve(&mut self, amount: u64, now: Time) {
        assert!(self.unheard < self.trickle, "a trickle ends the silence");
        self.left = self.left.map(|left| left.saturating_sub(amount));
        if amount < self.missing() {
            self.unheard += amount;
        } else {
            self.unheard = 0;
            self.heard_at = now;
        }
    }
}

/// What a guard owes.
#[derive(Clone, Copy, Debug)]
pub struct GuardDebts {
    oldest: Credit,
    trickle: Credit,
    wronged_until: Time,
}

impl<S: Scheduler> Guard<S> {
    /// What it owes, for the guard of the same limits that takes its place.
    pub fn debts(&self) -> GuardDebts {
        GuardDebts {
            oldest: self.oldest_credit,
            trickle: self.trickle_credit,
            wronged_until: self.wronged_until,
        }
    }

    /// Owes that too from now on; to be called before any job comes.
    pub fn take_debts(&mut self, debts: GuardDebts) {
        assert!(self.jobs.is_empty(), "nothing was earned here yet");
        self.oldest_credit.take_over(debts.oldest);
        self.trickle_credit.take_over(debts.trickle);
        self.wronged_until = debts.wronged_until;
    }

    /// The oldest job that can be served, of the client that has the turn.
    pub fn oldest(&self) -> Option<JobId> {
        self.clients.oldest()
    }

    /// A job that was served out of the order of arrival until `served_at`, and has departed, had
    /// `more` than was said then. Those who waited then are owed for it, if they are there yet. For
    /// callers that name no clients: the debt is that of all.
    pub fn owe(&mut self, more: u64, served_at: Time) {
        if self
            .first_arrival()
            .is_some_and(|arrived_at| arrived_at <= served_at)
        {
            self.forget_what_is_owed_to_none();
            self.oldest_credit.owe(more);
            self.wronged_until = self.wronged_until.max(served_at);
        }
    }

    /// When all who were passed are gone, what they were owed is owed to none.
    fn forget_what_is_owed_to_none(&mut self) {
        if !self.oldest_credit.has_excess() {
            return;
        }
        let first = self.first_arrival();
        if first.is_none_or(|arrived_at| arrived_at > self.wronged_until) {
            self.oldest_credit.forget_excess();
        }
    }

    /// When the oldest of all came, whether it can be served now or not: one that cannot was passed
    /// all the same.
    fn first_arrival(&self) -> Option<Time> {
        let (_, job) = self.by_age.first()?;
        self.jobs.get(job).map(|watched| watched.arrived_at)
    }

    /// Guards `inner` within `limits`.
    pub fn new(inner: S, limits: GuardLimits) -> Self {
        let credit = |turn: u64| Credit::new(limits.oldest_share, turn.saturating_mul(2));
        Self {
            inner,
            limits,
            jobs: BTreeMap::new(),
            clients: Clients::default(),
            by_age: BTreeSet::new(),
            oldest_credit: credit(limits.turn),
            trickle_credit: credit(limits.trickle),
            wronged_until: Time::ZERO,
            arrivals: 0,
        }
    }

    /// What decides while no job starves; jobs come and go through the guard.
    pub fn inner_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// What decided, without its guard.
    pub fn into_inner(self) -> S {
        self.inner
    }

    /// A job is watched that cannot be served yet; gives whether it was not before.
    fn enter(&mut self, arrival: &Arrival, now: Time) -> bool {
        if self.jobs.contains_key(&arrival.id) {
            return false;
        }
        let trickle = self.limits.trickle.max(arrival.trickle).max(1);
        self.trickle_credit.hold(trickle);
        let turn = self.limits.turn_of(arrival.size);
        self.oldest_credit.hold(turn);
        let watched = Watched {
            arrived_at: now,
            client: arrival.client,
            sequence: self.arrivals,
            heard_at: now,
            unheard: 0,
            trickle,
            left: arrival.size,
            turn,
            // Records need not begin where a trickle does: in two of them is always the end of one,
            // and with it something to notice.
            within_ns: if trickle > self.limits.trickle {
                self.limits.silence_ns_max / 2
            } else {
                self.limits.silence_ns_max
            },
            ready: false,
        };
        self.arrivals += 1;
        self.by_age.insert((watched.sequence, arrival.id));
        self.jobs.insert(arrival.id, watched);
        self.clients.enter(arrival.client);
        true
    }

    fn set_ready(&mut self, id: JobId, ready: bool) {
        let Some(watched) = self.jobs.get_mut(&id) else {
            return;
        };
        if watched.ready == ready {
            return;
        }
        watched.ready = ready;
        let (client, age) = (watched.client, (watched.sequence, id));
        let silence = (watched.due_at(), id);
        if ready {
            self.clients.insert(client, age, silence);
        } else {
            self.clients.remove(client, age, silence);
        }
    }

    /// The service in the next turn of the oldest job.
    fn next_turn(&self, oldest: Option<JobId>) -> u64 {
        // Clients have equal turns, whatever the sizes of their jobs.
        if self.limits.turns_max.is_none() || self.clients.has_several() {
            return self.limits.turn;
        }
        let watched = oldest.and_then(|job| self.jobs.get(&job));
        watched.map_or(self.limits.turn, Watched::next_turn)
    }

    /// The job with a silence that must end now, if any, and what is missing.
    fn silent_too_long(&mut self, now: Time) -> Option<Grant> {
        let job = self.clients.silent_too_long(now)?;
        let max_amount = self.jobs.get(&job)?.missing();
        let covered = self.trickle_credit.covers(max_amount);
        covered.then_some(Grant {
            job,
            max_amount,
            is_owed: true,
        })
    }
}

impl<S: Scheduler> Scheduler for Guard<S> {
    fn arrive(&mut self, arrival: Arrival, now: Time) {
        if self.enter(&arrival, now) {
            self.set_ready(arrival.id, true);
            self.inner.arrive(arrival, now);
        }
    }

    fn arrive_blocked(&mut self, arrival: Arrival, now: Time) {
        if self.enter(&arrival, now) {
            self.inner.arrive_blocked(arrival, now);
        }
    }

    fn progress(&mut self, id: JobId, amount: u64, now: Time) {
        self.inner.progress(id, amount, now);
        let oldest = self.clients.oldest();
        let turn = self.next_turn(oldest);
        let is_next = self.clients.silent_too_long(now) == Some(id);
        let Some(watched) = self.jobs.get_mut(&id) else {
            return;
        };
        self.trickle_credit.earn(amount);
        let (client, before) = (watched.client, watched.due_at());
        // What the policy gives to another job that is due is not paid for: else it would end its
        // client's turn, and put off those of all clients.
        if is_next {
            self.trickle_credit.pay(amount.min(watched.missing()));
        }
        watched.serve(amount, now);
        let after = watched.due_at();
        if watched.ready && after != before {
            self.clients.postpone(client, (before, id), (after, id));
        }
        if is_next && after != before {
            self.clients.had_trickle(client);
        }
        match oldest {
            Some(oldest) if oldest == id => {
                // What the policy gave by itself is a turn too; where others wait it earns them
                // theirs.
                let is_given = self.oldest_credit.covers(turn);
                if is_given || !self.clients.has_several() {
                    self.oldest_credit.pay(amount);
                } else {
                    self.oldest_credit.earn(amount);
                }
                self.clients.had_of_turn(client, amount, turn);
            }
            Some(_) => self.oldest_credit.earn(amount),
            None => {}
        }
    }

    fn depart(&mut self, id: JobId, now: Time) {
        self.set_ready(id, false);
        if let Some(watched) = self.jobs.remove(&id) {
            self.clients.leave(watched.client);
            self.by_age.remove(&(watched.sequence, id));
        }
        self.inner.depart(id, now);
    }

    fn block(&mut self, id: JobId, now: Time) {
        self.set_ready(id, false);
        self.inner.block(id, now);
    }

    fn unblock(&mut self, id: JobId, now: Time) {
        self.set_ready(id, true);
        self.inner.unblock(id, now);
    }

    fn enlarge(&mut self, id: JobId, additional: u64, now: Time) {
        if let Some(watched) = self.jobs.get_mut(&id)
            && let Some(left) = watched.left
        {
            watched.left = Some(left.saturating_add(additional));
            watched.turn = self.limits.turn_of(watched.left);
            self.oldest_credit.hold(watched.turn);
        }
        self.inner.enlarge(id, additional, now);
    }

    fn reclassify(&mut self, id: JobId, class: u8, now: Time) {
        self.inner.reclassify(id, class, now);
    }

    fn observe(&mut self, id: JobId, path: Path, now: Time) {
        self.inner.observe(id, path, now);
    }

    fn settle(&mut self, job: &Arrival, actual: u64, now: Time) {
        self.inner.settle(job, actual, now);
    }

    fn next(&mut self, now: Time) -> Option<Grant> {
        if let Some(grant) = self.silent_too_long(now) {
            return Some(grant);
        }
        self.forget_what_is_owed_to_none();
        let oldest = self.clients.oldest();
        let turn = self.next_turn(oldest);
        if self.oldest_credit.covers(turn)
            && let Some(job) = oldest
        {
            return Some(Grant {
                job,
                max_amount: turn,
                is_owed: true,
            });
        }
        let grant = self.inner.next(now)?;
        let max_amount = if oldest == Some(grant.job) {
            self.clients.turn_left(turn)
        } else {
            self.oldest_credit.short_of(turn)
        };
        Some(Grant {
            max_amount: grant.max_amount.min(max_amount),
            ..grant
        })
    }

    fn wake_at(&self) -> Option<Time> {
        let silence = self.clients.first_silence();
        [silence, self.inner.wake_at()].into_iter().flatten().min()
    }

    fn rank(&self, job: JobId) -> Option<u64> {
        self.inner.rank(job)
    }
}
