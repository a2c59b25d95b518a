//! The end of the grace of a server that stops: requests that still wait are told, and what goes on
//! is cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// The most time to tell those that wait, whatever the grace.
const TELLING_MAX: Duration = Duration::from_secs(1);

/// Clones are about the same server.
#[derive(Clone, Debug, Default)]
pub struct GraceEnd(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_over: AtomicBool,
    told: Notify,
}

impl GraceEnd {
    /// Those that still wait for a response get one from now on.
    pub fn declare(&self) {
        self.0.is_over.store(true, Ordering::Release);
        self.0.told.notify_waiters();
    }

    /// Whether it has come.
    pub fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::Acquire)
    }

    /// Waits until it comes.
    pub async fn wait(&self) {
        let told = self.0.told.notified();
        if !self.is_over() {
            told.await;
        }
    }
}

/// Declared when dropped: a server that is dropped while it serves has stopped, too.
pub struct StopGuard(pub GraceEnd);

impl Drop for StopGuard {
    fn drop(&mut self) {
        self.0.declare();
    }
}

/// How much of a `grace` is left for those that wait, to be told that the server stops.
pub fn telling_time(grace: Duration) -> Duration {
    (grace / 10).min(TELLING_MAX)
}
