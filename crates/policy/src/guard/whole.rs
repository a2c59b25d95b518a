//! The guard where a job that has begun goes on to its end: behind a backend that cannot be
//! interrupted.
//!
//! A turn is a whole job there. A piece of one would be no piece: the job has begun with it, and
//! goes on, so that a guard that gives pieces makes any order first come, first served. So what the
//! oldest is owed is saved until it covers the size that the job is thought to have, and pays for
//! it. At most one part in `oldest_share` of the service is taken from the order by that.
//!
//! Clients take turns with it, by size: the one goes next that has had the least. With capacity C,
//! N clients and jobs of at most L a job is done no later than N x (its own size + the sizes of its
//! client's older jobs + L) / (C / 20), L being what one turn is elsewhere. Sizes are those that
//! jobs are thought to have, where these are more; of a job that is larger than it seemed what it
//! takes beyond counts once, and not 20 times. Jobs without a client share one turn. That holds
//! among clients that stay: one that leaves and comes back begins where the least was when it came.
//!
//! There are no trickles: a job that has not begun cannot be given any.

use super::clients::Client;
use super::{Credit, GuardLimits};
use crate::{Arrival, Grant, JobId, Path, Scheduler, Time};
use alloc::collections::{BTreeMap, BTreeSet};

/// Keeps the inner scheduler from starving a job, without interrupting one.
#[derive(Clone, Debug)]
pub struct WholeGuard<S> {
    inner: S,
    /// What a job of unknown size is owed before it goes.
    turn: u64,
    jobs: BTreeMap<JobId, Watched>,
    clients: BTreeMap<Client, Present>,
    /// Clients with a ready job, by what they have had of turns, then by when they came to it.
    by_turn: BTreeSet<(u64, u64, Client)>,
    credit: Credit,
    /// What the client of the last turn had: clients that come anew begin there.
    floor: u64,
    begun: Option<JobId>,
    arrivals: u64,
    places: u64,
}

#[derive(Clone, Copy, Debug)]
struct Watched {
    client: Client,
    sequence: u64,
    size: u64,
    is_ready: bool,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It has had nothing yet.
    Waiting,
    /// It was the oldest when it began, and is paid for.
    Paid,
    /// What it takes is taken from the oldest.
    Begun,
}

/// A client with a job.
#[derive(Clone, Debug, Default)]
struct Present {
    jobs: usize,
    /// Its ready jobs that have not begun, by arrival.
    by_age: BTreeSet<(u64, JobId)>,
    had: u64,
    place: u64,
}

impl<S: Scheduler> WholeGuard<S> {
    /// Guards `inner`; of `limits` the share of the oldest counts, and the turn where a size is not
    /// known.
    pub fn new(inner: S, limits: GuardLimits) -> Self {
        let turn = limits.turn.max(1);
        Self {
            inner,
            turn,
            jobs: BTreeMap::new(),
            clients: BTreeMap::new(),
            by_turn: BTreeSet::new(),
            credit: Credit::new(limits.oldest_share, turn.saturating_mul(2)),
            floor: 0,
            begun: None,
            arrivals: 0,
            places: 0,
        }
    }

    /// What decides while no job starves; jobs come and go through the guard.
    pub fn inner_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Changes a client, and puts it where it then belongs.
    fn change(&mut self, client: Client, change: impl FnOnce(&mut Present)) {
        let Some(present) = self.clients.get_mut(&client) else {
            return;
        };
        self.by_turn.remove(&(present.had, present.place, client));
        change(present);
        if !present.by_age.is_empty() {
            self.by_turn.insert((present.had, present.place, client));
        }
    }

    /// Puts a job among those that wait for a turn, or takes it out.
    fn settle(&mut self, id: JobId) {
        let Some(&Watched {
            client,
            sequence,
            is_ready,
            stage,
            ..
        }) = self.jobs.get(&id)
        else {
            return;
        };
        self.change(client, |present| {
            if is_ready && stage == Stage::Waiting {
                present.by_age.insert((sequence, id));
            } else {
                present.by_age.remove(&(sequence, id));
            }
        });
    }

    /// The oldest of the client that has the turn.
    fn oldest(&self) -> Option<JobId> {
        let (_, _, client) = self.by_turn.first()?;
        let &(_, job) = self.clients.get(client)?.by_age.first()?;
        Some(job)
    }

    /// A job has its first service: the oldest is paid for, whether the policy or the guard chose it.
    fn begin(&mut self, id: JobId) {
        let is_oldest = self.oldest() == Some(id);
        let Some(watched) = self.jobs.get_mut(&id) else {
            return;
        };
        watched.stage = if is_oldest { Stage::Paid } else { Stage::Begun };
        let (client, size) = (watched.client, watched.size);
        self.settle(id);
        if is_oldest {
            self.credit.pay(size);
            self.places += 1;
            let place = self.places;
            let mut had_before = 0;
            self.change(client, |present| {
                had_before = present.had;
                present.had = present.had.saturating_add(size);
                present.place = place;
            });
            self.floor = self.floor.max(had_before);
        }
    }

    fn set_ready(&mut self, id: JobId, is_ready: bool) {
        if let Some(watched) = self.jobs.get_mut(&id) {
            watched.is_ready = is_ready;
            self.settle(id);
        }
    }
}

impl<S: Scheduler> Scheduler for WholeGuard<S> {
    fn arrive(&mut self, arrival: Arrival, now: Time) {
        if self.jobs.contains_key(&arrival.id) {
            return;
        }
        let size = arrival.size.unwrap_or(self.turn).max(1);
        self.credit.hold(size);
        let watched = Watched {
            client: arrival.client,
            sequence: self.arrivals,
            size,
            is_ready: true,
            stage: Stage::Waiting,
        };
        self.arrivals += 1;
        self.places += 1;
        self.jobs.insert(arrival.id, watched);
        let anew = Present {
            had: self.floor,
            place: self.places,
            ..Present::default()
        };
        self.clients.entry(arrival.client).or_insert(anew).jobs += 1;
        self.settle(arrival.id);
        self.inner.arrive(arrival, now);
    }

    fn progress(&mut self, id: JobId, amount: u64, now: Time) {
        self.inner.progress(id, amount, now);
        if amount == 0 || !self.jobs.contains_key(&id) {
            return;
        }
        if self.jobs[&id].stage == Stage::Waiting {
            self.begin(id);
        }
        self.begun = Some(id);
        if self.jobs[&id].stage == Stage::Begun && !self.by_turn.is_empty() {
            self.credit.earn(amount);
        }
    }

    fn depart(&mut self, id: JobId, now: Time) {
        self.set_ready(id, false);
        if let Some(watched) = self.jobs.remove(&id)
            && let Some(present) = self.clients.get_mut(&watched.client)
        {
            present.jobs -= 1;
            if present.jobs == 0 {
                assert!(present.by_age.is_empty(), "a job that leaves is not ready");
                self.clients.remove(&watched.client);
            }
        }
        self.begun = self.begun.filter(|begun| *begun != id);
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
        if let Some(watched) = self.jobs.get_mut(&id) {
            watched.size = watched.size.saturating_add(additional);
            self.credit.hold(watched.size);
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
        let grant = |job, is_owed| Grant {
            job,
            max_amount: u64::MAX,
            is_owed,
        };
        let is_ready = |id: &JobId| self.jobs.get(id).is_some_and(|job| job.is_ready);
        if let Some(begun) = self.begun.filter(is_ready) {
            return Some(grant(begun, false));
        }
        if let Some(oldest) = self.oldest()
            && self.credit.covers(self.jobs[&oldest].size)
        {
            return Some(grant(oldest, true));
        }
        let inner = self.inner.next(now)?;
        Some(grant(inner.job, inner.is_owed))
    }

    fn wake_at(&self) -> Option<Time> {
        self.inner.wake_at()
    }

    fn rank(&self, job: JobId) -> Option<u64> {
        self.inner.rank(job)
    }
}
