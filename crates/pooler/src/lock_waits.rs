//! Transactions that wait for a lock longer than their class allows: the server is asked who is in
//! their way, and those of them that matter less make room.
//!
//! Nothing is asked while no transaction of such a class has been busy for that long. Who makes
//! room is decided in `sooner_postgres::preemption`; the gate does it on server connections of its
//! own, by cancel requests and by rolling back what a client has open and does nothing with.

mod cancelling;
mod look;

use crate::client::handle::ClientHandle;
use crate::client::preemption::RunningTransaction;
use crate::log::Seldom;
use crate::pool::admission::ClientClass;
use crate::pool::upstream::Upstream;
use crate::pooler::Pooler;
use sooner_postgres::preemption::Taken;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Between two looks: a part of the shortest target, within these bounds.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(20);
const PARTS_OF_TARGET: u32 = 4;

/// What came of the waits of one class, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockWaitCounts {
    /// Its transactions that waited longer than they may.
    pub late: u64,
    /// Statements that were to be sent again behind it.
    pub again: u64,
    /// Transactions that were to be cancelled.
    pub cancelled: u64,
    /// Those that were to be rolled back while their clients did nothing.
    pub rolled_back: u64,
}

impl LockWaitCounts {
    fn add(&mut self, taken: Taken) {
        match taken {
            Taken::Again => self.again += 1,
            Taken::Cancelled => self.cancelled += 1,
            Taken::RolledBack => self.rolled_back += 1,
        }
    }

    /// How many made room in which way.
    pub fn by_way(&self) -> [(&'static str, u64); 3] {
        [
            ("again", self.again),
            ("cancelled", self.cancelled),
            ("rolled-back", self.rolled_back),
        ]
    }
}

/// All of it.
#[derive(Default)]
pub struct LockWaits {
    /// Clients with a transaction inside that may wait for so long only.
    watched: RefCell<BTreeMap<u64, Rc<ClientHandle>>>,
    begun: Notify,
    last_number: Cell<u64>,
    /// By class; there are few.
    counts: RefCell<BTreeMap<String, LockWaitCounts>>,
    /// How often servers were asked, and how long that took.
    pub looks: Cell<(u64, Duration)>,
    failures: Seldom,
}

impl LockWaits {
    /// A client's transaction of this class begins.
    pub fn begin(&self, handle: &Rc<ClientHandle>, class: &ClientClass) {
        if !class.are_locks_watched() {
            return;
        }
        self.last_number.set(self.last_number.get() + 1);
        let lock_wait = class.lock_wait();
        handle.preemption.begin(RunningTransaction {
            // Those in no class come last.
            priority: match class.priority() {
                0 => u8::MAX,
                priority => priority,
            },
            number: self.last_number.get(),
            lock_wait,
        });
        if lock_wait.is_some() {
            let mut watched = self.watched.borrow_mut();
            if watched.insert(handle.id, handle.clone()).is_none() {
                self.begun.notify_waiters();
            }
        }
    }

    /// It is over.
    pub fn end(&self, handle: &ClientHandle, has_made_room: bool) {
        handle.preemption.end(has_made_room);
        if !self.watched.borrow().is_empty() {
            self.watched.borrow_mut().remove(&handle.id);
        }
    }

    /// What came of the waits of a class.
    pub fn counts_of(&self, class: &str) -> LockWaitCounts {
        self.counts.borrow().get(class).copied().unwrap_or_default()
    }

    fn count(&self, class: &str, change: impl FnOnce(&mut LockWaitCounts)) {
        change(
            self.counts
                .borrow_mut()
                .entry(class.to_owned())
                .or_default(),
        );
    }

    /// Those that have been busy for longer than they may wait, by their servers, and how long to
    /// wait before the next look.
    fn overdue(&self, now: Instant) -> (Vec<Overdue>, Duration) {
        let mut overdue: Vec<Overdue> = Vec::new();
        let mut pause = PAUSE_MAX;
        for handle in self.watched.borrow().values() {
            let Some(target) = target(handle) else {
                continue;
            };
            pause = pause.min(target / PARTS_OF_TARGET).max(PAUSE_MIN);
            let since = handle.preemption.busy_since.get();
            if since.is_none_or(|since| now.saturating_duration_since(since) < target) {
                continue;
            }
            let running = handle.cancel_target.borrow();
            let Some(upstream) = running.as_ref().map(|running| running.upstream.clone()) else {
                continue;
            };
            let known = overdue.iter_mut();
            let mut known = known.filter(|known| Rc::ptr_eq(&known.upstream, &upstream));
            match known.next() {
                Some(known) => known.clients.push(handle.clone()),
                None => overdue.push(Overdue {
                    upstream,
                    clients: vec![handle.clone()],
                }),
            }
        }
        (overdue, pause)
    }
}

/// How long a client's transaction may wait for a lock.
fn target(handle: &ClientHandle) -> Option<Duration> {
    let running = handle.preemption.running.get()?;
    running.lock_wait.map(|wait| wait.target)
}

/// Clients of one server that have waited for too long, if what they wait for is a lock.
struct Overdue {
    upstream: Rc<Upstream>,
    clients: Vec<Rc<ClientHandle>>,
}

/// Looks at them; without end.
pub async fn watch(pooler: Rc<Pooler>) {
    let own = &pooler.lock_waits;
    loop {
        let begun = own.begun.notified();
        if own.watched.borrow().is_empty() {
            begun.await;
        }
        let (overdue, pause) = own.overdue(Instant::now());
        for Overdue { upstream, clients } in overdue {
            if !upstream.watches_locks.replace(true) {
                tokio::task::spawn_local(look::look(pooler.clone(), upstream, clients));
            }
        }
        tokio::time::sleep(pause).await;
    }
}
