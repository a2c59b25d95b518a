//! Requests that run for longer than their class may: each gives its place up, so that another one
//! may go in while it goes on, or is cancelled. How long that is, is what is said of its class now:
//! a reload holds for those in flight as well.

use super::server::Server;
use super::upstream::Upstream;
use sooner_config::classes::{Longest, LongestAction};
use sooner_limiter::JobClass;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep_until};

/// When it runs too long, and its number.
type Due = (Instant, u64);

/// The requests in flight at an upstream that may not run for longer than so, or that a reload may
/// say that of. One task looks after all: a task and a timer for each cost more than the decision
/// who goes in.
#[derive(Default)]
pub struct Overtimes {
    /// All, by number.
    watches: RefCell<BTreeMap<u64, Rc<Watch>>>,
    /// Those of them that will have run for too long.
    due: RefCell<BTreeSet<Due>>,
    numbers: Cell<u64>,
    /// Until when the task sleeps, if there is one.
    sleeps_until: Cell<Option<Instant>>,
    is_earlier: Notify,
}

/// How long a request in flight may keep its place; forgotten when dropped.
pub struct Overtime {
    overtimes: Rc<Overtimes>,
    watch: Rc<Watch>,
}

struct Watch {
    number: u64,
    server: Arc<Server>,
    upstream: Weak<Upstream>,
    class: JobClass,
    admitted_at: Instant,
    /// When it is looked at next, if it is.
    due_at: Cell<Option<Instant>>,
    /// Whether it was counted that the request ran too long, here or on a try before this one.
    is_counted: Rc<Cell<bool>>,
    has_yielded: Cell<bool>,
    /// For how long it would have been allowed to run.
    cancelled_for: Cell<Option<Longest>>,
    cancelled: Notify,
}

impl Overtimes {
    /// A request has run for too long by what is said now, or will have later, or may run.
    fn look_at(self: &Rc<Self>, watch: &Watch) {
        self.unschedule(watch);
        let Some(upstream) = watch.upstream.upgrade() else {
            return;
        };
        let class = watch.class.number();
        let Some(longest) = upstream.longest(class) else {
            return;
        };
        let at = watch.admitted_at + longest.time;
        if at > Instant::now() {
            self.schedule(watch, at);
        } else {
            watch.is_over(&upstream, class, longest);
        }
    }

    fn schedule(self: &Rc<Self>, watch: &Watch, at: Instant) {
        watch.due_at.set(Some(at));
        self.due.borrow_mut().insert((at, watch.number));
        match self.sleeps_until.get() {
            None => {
                self.sleeps_until.set(Some(at));
                spawn_local(self.clone().look_after_all());
            }
            Some(until) if at < until => self.is_earlier.notify_one(),
            Some(_) => {}
        }
    }

    fn unschedule(&self, watch: &Watch) {
        if let Some(at) = watch.due_at.take() {
            self.due.borrow_mut().remove(&(at, watch.number));
        }
    }

    /// Ends when none is left at the time at which one would have run for too long.
    async fn look_after_all(self: Rc<Self>) {
        while let Some(until) = self.first_at() {
            self.sleeps_until.set(Some(until));
            tokio::select! {
                () = sleep_until(until) => {}
                () = self.is_earlier.notified() => {}
            }
            while let Some(watch) = self.next_due(Instant::now()) {
                self.look_at(&watch);
            }
        }
        self.sleeps_until.set(None);
    }

    fn first_at(&self) -> Option<Instant> {
        self.due.borrow().first().map(|&(at, _)| at)
    }

    fn next_due(&self, now: Instant) -> Option<Rc<Watch>> {
        let first = self.due.borrow().first().copied();
        let (_, number) = first.filter(|&(at, _)| at <= now)?;
        self.watches.borrow().get(&number).cloned()
    }

    /// Something else may be said of classes, or something may come of it that did not before: also
    /// for those that have run too long by now. Needs a `LocalSet` around it.
    pub fn renew(self: &Rc<Self>) {
        let all: Vec<Rc<Watch>> = self.watches.borrow().values().cloned().collect();
        all.iter().for_each(|watch| self.look_at(watch));
    }
}

impl Overtime {
    /// A request that went in at `admitted_at` is at `server`; its class, and whether it has
    /// counted as one that ran too long, are said of the job.
    pub fn watch(
        upstream: &Rc<Upstream>,
        server: &Arc<Server>,
        (class, is_counted): (JobClass, Rc<Cell<bool>>),
        admitted_at: Instant,
    ) -> Self {
        let overtimes = upstream.overtimes.clone();
        let number = overtimes.numbers.get();
        overtimes.numbers.set(number + 1);
        let watch = Rc::new(Watch {
            number,
            server: server.clone(),
            upstream: Rc::downgrade(upstream),
            class,
            admitted_at,
            due_at: Cell::new(None),
            is_counted,
            has_yielded: Cell::new(false),
            cancelled_for: Cell::new(None),
            cancelled: Notify::new(),
        });
        let watches = &overtimes.watches;
        watches.borrow_mut().insert(number, watch.clone());
        overtimes.look_at(&watch);
        Self { overtimes, watch }
    }

    /// Ready when the request is to be cancelled.
    pub async fn cancelled(&self) -> Longest {
        let watch = &self.watch;
        loop {
            let cancelled = watch.cancelled.notified();
            if let Some(longest) = watch.cancelled_for.get() {
                return longest;
            }
            cancelled.await;
        }
    }
}

impl Watch {
    /// It has run for too long.
    fn is_over(&self, upstream: &Upstream, class: u8, longest: Longest) {
        if !self.is_counted.replace(true) {
            upstream.note_overlong(class);
        }
        if upstream.is_observed() {
            return;
        }
        if longest.action == LongestAction::Cancel {
            if self.cancelled_for.replace(Some(longest)).is_none() {
                upstream.note_cancelled(class);
                self.cancelled.notify_waiters();
            }
        } else if !self.has_yielded.replace(true) {
            self.server.yielded();
            upstream.update_capacity();
        }
    }
}

impl Drop for Overtime {
    fn drop(&mut self) {
        let watch = &self.watch;
        self.overtimes.unschedule(watch);
        self.overtimes.watches.borrow_mut().remove(&watch.number);
        if watch.has_yielded.get() {
            watch.server.yielder_left();
        }
    }
}
