//! The leases of one database: how many server connections are in use, and which of them are closed
//! when they are given back.
//!
//! It outlives the entry of the configuration: where a database is moved, what runs at the old
//! place is still waited for.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use tokio::sync::Notify;

/// The server connections of one database. Clones are the same.
#[derive(Clone, Default)]
pub struct Leases(Rc<State>);

#[derive(Default)]
struct State {
    /// Connections of earlier generations are closed when they come back.
    generation: Cell<u64>,
    /// In use, by the generation in which they were lent.
    open: RefCell<BTreeMap<u64, usize>>,
    /// Told when one comes back, and when something else changes.
    changed: Notify,
}

/// A server connection in use; it has come back when this is dropped.
pub struct LeaseGuard {
    leases: Leases,
    generation: u64,
}

impl Leases {
    /// One more is lent.
    pub fn begin(&self) -> LeaseGuard {
        let generation = self.generation();
        *self.0.open.borrow_mut().entry(generation).or_default() += 1;
        LeaseGuard {
            leases: self.clone(),
            generation,
        }
    }

    /// Which connections are good.
    pub fn generation(&self) -> u64 {
        self.0.generation.get()
    }

    /// Those that were opened so far are good no more.
    pub fn retire(&self) {
        self.0.generation.set(self.generation() + 1);
    }

    /// How many are in use.
    pub fn count(&self) -> usize {
        self.0.open.borrow().values().sum()
    }

    /// Waits until none is in use.
    pub async fn all_returned(&self) {
        self.wait_until(|| self.count() == 0).await;
    }

    /// Waits until none is in use that has to be closed.
    pub async fn old_returned(&self) {
        let generation = self.generation();
        let are_back = || {
            let open = self.0.open.borrow();
            open.keys().next().is_none_or(|first| *first >= generation)
        };
        self.wait_until(are_back).await;
    }

    /// Waits until it is so; looks again at each [`Self::notify`] and when a lease comes back.
    pub async fn wait_until(&self, is_so: impl Fn() -> bool) {
        loop {
            // Before the look: what happens between the two is not missed.
            let change = self.0.changed.notified();
            if is_so() {
                return;
            }
            change.await;
        }
    }

    /// Something has changed that a task may wait for.
    pub fn notify(&self) {
        self.0.changed.notify_waiters();
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let mut open = self.leases.0.open.borrow_mut();
        let count = open.get_mut(&self.generation);
        assert!(count.is_some(), "a lease ends twice");
        if let Some(count) = count {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.generation);
            }
        }
        drop(open);
        self.leases.notify();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Poll, Waker};

    fn is_ready(waiting: impl Future<Output = ()>) -> bool {
        let waiting = std::pin::pin!(waiting);
        waiting.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    #[test]
    fn old_ones_are_waited_for_and_new_ones_are_not() {
        let leases = Leases::default();
        assert!(is_ready(leases.all_returned()) && is_ready(leases.old_returned()));
        let old = leases.begin();
        assert!(is_ready(leases.old_returned()));
        leases.retire();
        let new = leases.begin();
        assert_eq!(leases.count(), 2);
        assert!(!is_ready(leases.old_returned()));
        drop(old);
        assert!(is_ready(leases.old_returned()) && !is_ready(leases.all_returned()));
        drop(new);
        assert!(is_ready(leases.all_returned()));
    }
}
