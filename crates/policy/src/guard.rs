//! No job waits for ever, whatever policy is inside.
//!
//! Two promises, each paid from a share of the service that others get:
//! - The oldest job that could be served gets at least one part in `oldest_share` (20: 5 %). With capacity C it is therefore done no
//!   later than (its own size + the sizes of the jobs older than it) / (C / 20), plus one turn.
//! - A job that could be served is never silent for longer than `silence_ns_max` (10 s): it gets a trickle, or its client and the NATs
//!   on the way would give it up. Trickles too take at most one part in 20, so with n jobs waiting the silence is at most the larger of
//!   10 s and n x `trickle` / (C / 20).
//!
//! What the inner policy gives a job on its own counts: where it serves the oldest anyway the guard takes nothing.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::{Arrival, Grant, JobId, Scheduler, Time};

/// What a [`Guard`] promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardLimits {
    /// The oldest job gets one part in this many of the service; 20 is 5 %.
    pub oldest_share: u64,
    /// The service in one turn of the oldest job.
    pub turn: u64,
    /// The longest time without service.
    pub silence_ns_max: u64,
    /// The service that ends a silence.
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
    /// Ready jobs by the time they were last served.
    by_silence: BTreeSet<(Time, JobId)>,
    oldest_credit: Credit,
    trickle_credit: Credit,
    arrivals: u64,
}

#[derive(Clone, Copy, Debug)]
struct Watched {
    sequence: u64,
    served_at: Time,
    ready: bool,
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
        let (age, silence) = ((watched.sequence, id), (watched.served_at, id));
        if ready {
            self.by_age.insert(age);
            self.by_silence.insert(silence);
        } else {
            self.by_age.remove(&age);
            self.by_silence.remove(&silence);
        }
    }

    /// The job whose silence must end now, if any.
    fn silent_too_long(&self, now: Time) -> Option<JobId> {
        let &(served_at, id) = self.by_silence.first()?;
        let due = now >= served_at.after(self.limits.silence_ns_max);
        (due && self.trickle_credit.covers(self.limits.trickle)).then_some(id)
    }
}

impl<S: Scheduler> Scheduler for Guard<S> {
    fn arrive(&mut self, arrival: Arrival, now: Time) {
        if self.jobs.contains_key(&arrival.id) {
            return;
        }
        let watched = Watched {
            sequence: self.arrivals,
            served_at: now,
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
        let was_silent = now >= watched.served_at.after(self.limits.silence_ns_max);
        if watched.ready {
            self.by_silence.remove(&(watched.served_at, id));
            self.by_silence.insert((now, id));
        }
        watched.served_at = now;
        self.trickle_credit.earn(amount);
        if was_silent {
            self.trickle_credit.pay(amount.min(self.limits.trickle));
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

    fn next(&mut self, now: Time) -> Option<Grant> {
        if let Some(job) = self.silent_too_long(now) {
            return Some(Grant {
                job,
                max_amount: self.limits.trickle,
            });
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
        let silence = self
            .by_silence
            .first()
            .map(|&(served_at, _)| served_at.after(self.limits.silence_ns_max));
        [silence, self.inner.wake_at()].into_iter().flatten().min()
    }

    fn rank(&self, job: JobId) -> Option<u64> {
        self.inner.rank(job)
    }
}
