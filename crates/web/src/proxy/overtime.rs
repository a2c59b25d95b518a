//! Requests that run for longer than their class may: each gives its place up, so that another one
//! may go in while it goes on, or is cancelled.

use super::server::Server;
use super::upstream::Upstream;
use sooner_config::classes::{Longest, LongestAction};
use std::cell::Cell;
use std::rc::{Rc, Weak};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::{Instant, sleep_until};

/// How long a request in flight may keep its place; forgotten when dropped.
pub struct Overtime {
    watch: Rc<Watch>,
    task: AbortHandle,
}

struct Watch {
    server: Rc<Server>,
    upstream: Weak<Upstream>,
    class: u8,
    longest: Longest,
    has_yielded: Cell<bool>,
    is_cancelled: Cell<bool>,
    cancelled: Notify,
}

impl Overtime {
    /// A request of `class` that went in at `admitted_at` is at `server`.
    pub fn watch(
        upstream: &Rc<Upstream>,
        server: &Rc<Server>,
        class: u8,
        longest: Longest,
        admitted_at: Instant,
    ) -> Self {
        let watch = Rc::new(Watch {
            server: server.clone(),
            upstream: Rc::downgrade(upstream),
            class,
            longest,
            has_yielded: Cell::new(false),
            is_cancelled: Cell::new(false),
            cancelled: Notify::new(),
        });
        let watching = watch.clone();
        let task = spawn_local(async move {
            sleep_until(admitted_at + longest.time).await;
            watching.is_over();
        });
        Self {
            watch,
            task: task.abort_handle(),
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
    fn is_over(&self) {
        let Some(upstream) = self.upstream.upgrade() else {
            return;
        };
        let cancels = self.longest.action == LongestAction::Cancel;
        upstream.note_overlong(self.class, cancels);
        if upstream.is_observed() {
            return;
        }
        if cancels {
            self.is_cancelled.set(true);
            self.cancelled.notify_waiters();
        } else {
            self.has_yielded.set(true);
            self.server.yielded();
            upstream.update_capacity();
        }
    }
}

impl Drop for Overtime {
    fn drop(&mut self) {
        self.task.abort();
        if self.watch.has_yielded.get() {
            self.watch.server.yielder_left();
        }
    }
}
