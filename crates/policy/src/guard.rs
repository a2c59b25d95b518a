//! No job waits for ever, whatever policy is inside.
//!
//! Two promises, each paid from a share of the service that others get:
//! - The oldest job that could be served gets at least one part in `oldest_share` (20: 5 %). With capacity C it is therefore done no
//!   later than (its own size + the sizes of the jobs older than it) / (C / 20), plus one turn.
//! - A job that could be served is never silent for longer than `silence_ns_max` (10 s): until then it has had its trickle, or it gets
//!   what is missing, or its client and the NATs on the way would give it up. A trickle is what its client notices
//!   ([`Arrival::trickle`]); where that is a whole of many bytes, a record, it is given in half the time, because it need not begin where
//!   a record does. Trickles too take at most one part in 20, so the silence is at most 10 s, or where more wait, the trickles of
//!   all of them / (C / 20), twice that for records.
//!
//! What the inner policy gives a job on its own counts: where it serves the oldest anyway the guard takes nothing.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::{Arrival, Grant, JobId, Path, Scheduler, Time};

/// What a [`Guard`] promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardLimits {
    /// The oldest job gets one part in this many of the service; 20 is 5 %.
    pub oldest_share: u64,
    /// The service in one turn of the oldest job.
    pub turn: u64,
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
            silence_ns_max: 10_000_000_000,
            trickle: turn.clamp(1, 512),
        }
    }
}

/// Keeps the inner scheduler from starving a job.
#[derive(Clone, Debug)]
pub struct Guard<S> {
    inner: S,
    limits: GuardLimits,
    jobs: BTreeMap<JobId, Watched>,
    /// Ready jobs by arrival.
    by_age: BTreeSet<(u64, JobId)>,
    /// Ready jobs by the time at which their silence must end.
    by_silence: BTreeSet<(Time, JobId)>,
    oldest_credit: Credit,
    trickle_credit: Credit,
    arrivals: u64,
}

#[derive(Clone, Copy, Debug)]
struct Watched {
    sequence: u64,
    /// When it last had all of a trickle.
    heard_at: Time,
    /// The service it had since.
    unheard: u64,
    trickle: u64,
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

    fn serve(&mut self, amount: u64, now: Time) {
        if amount < self.missing() {
            self.unheard += amount;
        } else {
            self.unheard = 0;
            self.heard_at = now;
        }
    }
}

/// Service owed: one unit for every `others` units that others get, up to `most`.
#[derive(Clone, Copy, Debug)]
struct Credit {
    /// In units of 1/others.
    parts: u64,
    others: u64,
    most: u64,
}

impl Credit {
    /// One part in `share` of the whole is one unit to every `share - 1` of the others.
    fn new(share: u64, most: u64) -> Self {
        Self {
            parts: 0,
            others: share.saturating_sub(1),
            most,
        }
    }

    /// From now on `amount` can be owed, and as much again.
    fn hold(&mut self, amount: u64) {
        self.most = self.most.max(amount.saturating_mul(2));
    }

    fn earn(&mut self, amount: u64) {
        self.parts = self
            .parts
            .saturating_add(amount)
            .min(self.most.saturating_mul(self.others));
    }

    fn pay(&mut self, amount: u64) {
        self.parts = self
            .parts
            .saturating_sub(amount.saturating_mul(self.others));
    }

    fn covers(&self, amount: u64) -> bool {
        self.short_of(amount) == 0
    }

    /// What must still be earned to cover `amount`.
    fn short_of(&self, amount: u64) -> u64 {
        amount
            .saturating_mul(self.others)
            .saturating_sub(self.parts)
    }
}

impl<S: Scheduler> Guard<S> {
    /// Guards `inner` within `limits`.
    pub fn new(inner: S, limits: GuardLimits) -> Self {
        let credit = |turn: u64| Credit::new(limits.oldest_share, turn.saturating_mul(2));
        Self {
            inner,
            limits,
            jobs: BTreeMap::new(),
            by_age: BTreeSet::new(),
            by_silence: BTreeSet::new(),
            oldest_credit: credit(limits.turn),
            trickle_credit: credit(limits.trickle),
            arrivals: 0,
        }
    }

    /// What decides while nobody starves; jobs come and go through the guard.
    pub fn inner_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    fn oldest(&self) -> Option<JobId> {
        self.by_age.first().map(|&(_, id)| id)
    }

    fn set_ready(&mut self, id: JobId, ready: bool) {
        let Some(watched) = self.jobs.get_mut(&id) else {
            return;
        };
        if watched.ready == ready {
            return;
        }
        watched.ready = ready;
        let (age, silence) = ((watched.sequence, id), (watched.due_at(), id));
        if ready {
            self.by_age.insert(age);
            self.by_silence.insert(silence);
        } else {
            self.by_age.remove(&age);
            self.by_silence.remove(&silence);
        }
    }

    /// The job whose silence must end now, if any, and what is missing.
    fn silent_too_long(&self, now: Time) -> Option<Grant> {
        let &(due_at, job) = self.by_silence.first()?;
        if now < due_at {
            return None;
        }
        let max_amount = self.jobs.get(&job)?.missing();
        let covered = self.trickle_credit.covers(max_amount);
        covered.then_some(Grant { job, max_amount })
    }
}

impl<S: Scheduler> Scheduler for Guard<S> {
    fn arrive(&mut self, arrival: Arrival, now: Time) {
        if self.jobs.contains_key(&arrival.id) {
            return;
        }
        let trickle = self.limits.trickle.max(arrival.trickle).max(1);
        self.trickle_credit.hold(trickle);
        let watched = Watched {
            sequence: self.arrivals,
            heard_at: now,
            unheard: 0,
            trickle,
            // Records need not begin where a trickle does: in two of them is always the end of one, and with it something to notice.
            within_ns: match trickle > self.limits.trickle {
                true => self.limits.silence_ns_max / 2,
                false => self.limits.silence_ns_max,
            },
            ready: false,
        };
        self.arrivals += 1;
        self.jobs.insert(arrival.id, watched);
        self.set_ready(arrival.id, true);
        self.inner.arrive(arrival, now);
    }

    fn progress(&mut self, id: JobId, amount: u64, now: Time) {
        self.inner.progress(id, amount, now);
        let oldest = self.oldest();
        let Some(watched) = self.jobs.get_mut(&id) else {
            return;
        };
        self.trickle_credit.earn(amount);
        if now >= watched.due_at() {
            self.trickle_credit.pay(amount.min(watched.missing()));
        }
        let before = watched.due_at();
        watched.serve(amount, now);
        if watched.ready {
            self.by_silence.remove(&(before, id));
            self.by_silence.insert((watched.due_at(), id));
        }
        match oldest {
            Some(oldest) if oldest == id => self.oldest_credit.pay(amount),
            Some(_) => self.oldest_credit.earn(amount),
            None => {}
        }
    }

    fn depart(&mut self, id: JobId, now: Time) {
        self.set_ready(id, false);
        self.jobs.remove(&id);
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
        self.inner.enlarge(id, additional, now);
    }

    fn reclassify(&mut self, id: JobId, class: u8, now: Time) {
        self.inner.reclassify(id, class, now);
    }

    fn observe(&mut self, id: JobId, path: Path, now: Time) {
        self.inner.observe(id, path, now);
    }

    fn next(&mut self, now: Time) -> Option<Grant> {
        if let Some(grant) = self.silent_too_long(now) {
            return Some(grant);
        }
        if self.oldest_credit.covers(self.limits.turn)
            && let Some(job) = self.oldest()
        {
            return Some(Grant {
                job,
                max_amount: self.limits.turn,
            });
        }
        let grant = self.inner.next(now)?;
        if self.oldest() == Some(grant.job) {
            return Some(grant);
        }
        Some(Grant {
            max_amount: grant
                .max_amount
                .min(self.oldest_credit.short_of(self.limits.turn)),
            ..grant
        })
    }

    fn wake_at(&self) -> Option<Time> {
        let silence = self.by_silence.first().map(|&(due_at, _)| due_at);
        [silence, self.inner.wake_at()].into_iter().flatten().min()
    }

    fn rank(&self, job: JobId) -> Option<u64> {
        self.inner.rank(job)
    }
}
