//! Transactions that run for longer than their class may: each gives its place up, so that another
//! one may go in while it goes on, and its statement is cancelled where the configuration says so.

use crate::client::cancel;
use crate::client::handle::ClientHandle;
use crate::config::ClassTable;
use crate::log::Seldom;
use crate::pool::upstream::Upstream;
use crate::pooler::Pooler;
use sooner_admission::WouldWait;
use sooner_config::classes::{Longest, LongestAction};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::spawn_local;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// From a cancel request that did not reach the server to the next one.
const CANCEL_PAUSE: Duration = Duration::from_secs(1);

/// Transactions of one server that take no place from others although they are inside.
#[derive(Default)]
pub struct SparePlaces {
    /// Clients that keep a connection and do not use it.
    kept: Cell<usize>,
    /// Transactions that have given their places up.
    yielded: Cell<usize>,
    /// How many of these places others may have: each needs a connection.
    yielded_max: Cell<usize>,
    /// That a transaction runs too long.
    log: Seldom,
}

impl SparePlaces {
    /// How many more may be inside.
    pub fn spare(&self) -> usize {
        self.kept.get() + self.yielded.get().min(self.yielded_max.get())
    }

    /// How many transactions have given their places up.
    pub fn yielded(&self) -> usize {
        self.yielded.get()
    }

    /// How many of these places others may have.
    pub fn yielded_max(&self) -> usize {
        self.yielded_max.get()
    }

    /// So many are kept from now on, and so many may be given up.
    pub fn set(&self, kept: usize, yielded_max: usize) {
        self.kept.set(kept);
        self.yielded_max.set(yielded_max);
    }

    /// None is kept.
    pub fn forget_kept(&self) {
        self.kept.set(0);
    }
}

/// A place that a transaction inside has given up; it is none of its any more when dropped.
pub struct YieldedPlace(Rc<Upstream>);

impl YieldedPlace {
    fn new(upstream: &Rc<Upstream>) -> Self {
        change(upstream, |yielded| yielded + 1);
        Self(upstream.clone())
    }
}

impl Drop for YieldedPlace {
    fn drop(&mut self) {
        change(&self.0, |yielded| yielded - 1);
    }
}

fn change(upstream: &Upstream, change: impl FnOnce(usize) -> usize) {
    let places = &upstream.places;
    places.yielded.set(change(places.yielded.get()));
    upstream.limiter.set_kept(places.spare());
}

/// Looks at every transaction inside, without end.
pub async fn run(pooler: Rc<Pooler>) {
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        looks.tick().await;
        look(&pooler, Instant::now());
    }
}

fn look(pooler: &Pooler, now: Instant) {
    let configuration = pooler.configuration();
    let config = &configuration.config;
    let times = config
        .class
        .iter()
        .filter_map(|class| class.bounds().longest());
    let Some(shortest) = times.map(|longest| longest.time).min() else {
        return;
    };
    for upstream in pooler.upstreams() {
        // What a place is without those that are spare; each transaction needs a connection.
        let limit = upstream.limiter.status().limit - upstream.limiter.kept();
        let kept = upstream.places.kept.get();
        let connections = upstream.connections(&config.limits);
        let left = connections.saturating_sub(limit.saturating_add(kept));
        upstream.set_spare_places(kept, limit.min(left));
    }
    for handle in pooler.clients.borrow().values() {
        let Some(since) = handle.inside_since.get() else {
            continue;
        };
        let inside = now.saturating_duration_since(since);
        if inside >= shortest {
            look_at(handle, &config.class, inside, now);
        }
    }
}

/// How many transactions of each class ran for longer than they may, and how many were cancelled
/// for that, by number, at all servers.
pub fn counts(pooler: &Pooler) -> Vec<[u64; 2]> {
    let mut sums: Vec<[u64; 2]> = Vec::new();
    for upstream in pooler.upstreams() {
        for (number, class) in upstream.limiter.class_statuses().into_iter().enumerate() {
            if sums.len() <= number {
                sums.push([0, 0]);
            }
            sums[number][0] += class.overlong;
            sums[number][1] += class.cancelled;
        }
    }
    sums
}

/// What would become of each class, by number, at all servers, where nothing is held; empty where
/// that is not observed.
pub fn would_wait(pooler: &Pooler) -> BTreeMap<u8, WouldWait> {
    let mut sums: BTreeMap<u8, WouldWait> = BTreeMap::new();
    for upstream in pooler.upstreams() {
        let rehearsed = upstream.limiter.rehearsed();
        for (number, would) in rehearsed.into_iter().flat_map(|(_, all)| all) {
            let sum = sums.entry(number).or_default();
            *sum = sum.with(would);
        }
    }
    sums
}

/// At the transaction of a client that is inside for so long.
fn look_at(handle: &Rc<ClientHandle>, classes: &[ClassTable], inside: Duration, now: Instant) {
    let number = handle.class(classes);
    let class = classes.get(number);
    let Some((class, longest)) = class.and_then(|class| Some((class, class.bounds().longest()?)))
    else {
        return;
    };
    let target = handle.cancel_target.borrow();
    let Some(target) = target.as_ref().filter(|_| inside >= longest.time) else {
        return;
    };
    let upstream = &target.upstream;
    // There are fewer classes than that.
    let number = u8::try_from(number).unwrap_or(u8::MAX);
    if handle.yielded_place.borrow().is_none() {
        handle
            .yielded_place
            .replace(Some(YieldedPlace::new(upstream)));
        upstream.limiter.note_overlong(number);
        let (address, name, time) = (&upstream.address, class.name.get_ref(), longest.time);
        let times = usize::from(!upstream.limiter.rehearses());
        upstream.places.log.log(times, |times| {
            format!("{address}: a transaction of class {name:?} ran for longer than {time:?} (class.longest) and gave its place up; {times} since the last line")
        });
    }
    if let Some(statement) = overlong_statement(handle, longest, now)
        && !upstream.limiter.rehearses()
    {
        handle.cancelled_statement.set(Some(statement));
        let (handle, limiter) = (handle.clone(), upstream.limiter.clone());
        spawn_local(async move {
            let is_due = || {
                let preemption = &handle.preemption;
                preemption.busy_since.get() == Some(statement) && !preemption.may_commit.get()
            };
            while is_due() {
                if cancel::interrupt(&handle, &is_due).await {
                    limiter.note_cancelled(number);
                    return;
                }
                sleep(CANCEL_PAUSE).await;
            }
        });
    }
}

/// The statement that is to be cancelled, by when it began: one that has run for so long by itself
/// and commits nothing. A commit that is cancelled while it waits for a standby counts as done.
fn overlong_statement(handle: &ClientHandle, longest: Longest, now: Instant) -> Option<Instant> {
    if longest.action != LongestAction::Cancel {
        return None;
    }
    let preemption = &handle.preemption;
    let since = (preemption.busy_since.get()).filter(|_| !preemption.may_commit.get())?;
    let is_overlong = now.saturating_duration_since(since) >= longest.time;
    let is_told = handle.cancelled_statement.get() == Some(since);
    (is_overlong && !is_told).then_some(since)
}
