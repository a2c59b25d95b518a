//! Requests that run for longer than their class may: each gives its place up, so that another one
//! may go in while it goes on, or is cancelled.

use super::server::Server;
use super::upstream::Upstream;
use sooner_config::classes::{Longest, LongestAction};
use sooner_limiter::JobClass;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep_until};

/// When it runs too long, and its number.
type Due = (Instant, u64);

/// The requests in flight at an upstream that may not run for longer than so. One task looks after
/// all: a task and a timer for each cost more than the decision who goes in.
#[derive(Default)]
pub struct Overtimes {
    watched: RefCell<BTreeMap<Due, Rc<Watch>>>,
    /// Those that run too long while nothing comes of it.
    observed: RefCell<BTreeMap<Due, Rc<Watch>>>,
    numbers: Cell<u64>,
    /// Until when the task sleeps, if there is one.
    sleeps_until: Cell<Option<Instant>>,
    is_earlier: Notify,
}

/// How long a request in flight may keep its place; forgotten when dropped.
pub struct Overtime {
    overtimes: Rc<Overtimes>,
    due: Due,
    watch: Rc<Watch>,
}

struct Watch {
    server: Rc<Server>,
    upstream: Weak<Upstream>,
    class: JobClass,
    longest: Longest,
    /// Whether it was counted that the request ran too long, here or on a try before this one.
    is_counted: Rc<Cell<bool>>,
    has_yielded: Cell<bool>,
    is_cancelled: Cell<bool>,
    cancelled: Notify,
}

impl Overtimes {
    fn add(self: &Rc<Self>, at: Instant, watch: &Rc<Watch>) -> Due {
        let due = (at, self.numbers.get());
        self.numbers.set(due.1 + 1);
        self.watched.borrow_mut().insert(due, watch.clone());
        match self.sleeps_until.get() {
            None => {
                self.sleeps_until.set(Some(at));
                spawn_local(self.clone().look_after_all());
            }
            Some(until) if at < until => self.is_earlier.notify_one(),
            Some(_) => {}
        }
        due
    }

    /// Ends when none is left at the time at which one would have run for too long.
    async fn look_after_all(self: Rc<Self>) {
        while let Some(until) = self.first_at() {
            self.sleeps_until.set(Some(until));
            tokio::select! {
                () = sleep_until(until) => {}
                () = self.is_earlier.notified() => {}
            }
            while let Some((due, watch)) = self.next_due(Instant::now()) {
                if !watch.is_over() {
                    self.observed.borrow_mut().insert(due, watch);
                }
            }
        }
        self.sleeps_until.set(None);
    }

    fn first_at(&self) -> Option<Instant> {
        let watched = self.watched.borrow();
        watched.first_key_value().map(|(&(at, _), _)| at)
    }

    fn next_due(&self, now: Instant) -> Option<(Due, Rc<Watch>)> {
        let mut watched = self.watched.borrow_mut();
        let first = watched.first_entry().filter(|entry| entry.key().0 <= now);
        first.map(|entry| entry.remove_entry())
    }

    /// From now on something comes of it: also for those that have run too long by now.
    pub fn end_observation(&self) {
        for watch in self.observed.take().into_values() {
            watch.is_over();
        }
    }
}

impl Overtime {
    /// A request that went in at `admitted_at` is at `server`; its class, and whether it has
    /// counted as one that ran too long, are said of the job.
    pub fn watch(
        upstream: &Rc<Upstream>,
        server: &Rc<Server>,
        (class, is_counted): (JobClass, Rc<Cell<bool>>),
        longest: Longest,
        admitted_at: Instant,
    ) -> Self {
        let watch = Rc::new(Watch {
            server: server.clone(),
            upstream: Rc::downgrade(upstream),
            class,
            longest,
            is_counted,
            has_yielded: Cell::new(false),
            is_cancelled: Cell::new(false),
            cancelled: Notify::new(),
        });
        let overtimes = upstream.overtimes.clone();
        let due = overtimes.add(admitted_at + longest.time, &watch);
        Self {
            overtimes,
            due,
            watch,
        }
    }

    /// Ready when the request is to be cancelled.
    pub async fn cancelled(&self) -> Longest {
        let watch = &self.watch;
        loop {
            let cancelled = watch.cancelled.notified();
            if watch.is_cancelled.get() {
                return watch.longest;
            }
            cancelled.await;
        }
    }
}

impl Watch {
    /// Gives whether anything came of it.
    fn is_over(&self) -> bool {
        let Some(upstream) = self.upstream.upgrade() else {
            return true;
        };
        let class = self.class.number();
        if !self.is_counted.replace(true) {
            upstream.note_overlong(class);
        }
        if upstream.is_observed() {
            return false;
        }
        if self.longest.action == LongestAction::Cancel {
            upstream.note_cancelled(class);
            self.is_cancelled.set(true);
            self.cancelled.notify_waiters();
        } else {
            self.has_yielded.set(true);
            self.server.yielded();
            upstream.update_capacity();
        }
        true
    }
}

impl Drop for Overtime {
    fn drop(&mut self) {
        for watches in [&self.overtimes.watched, &self.overtimes.observed] {
            watches.borrow_mut().remove(&self.due);
        }
        if self.watch.has_yielded.get() {
            self.watch.server.yielder_left();
        }
    }
}
