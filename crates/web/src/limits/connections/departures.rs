//! Clients that leave while a request of theirs waits for what a backend answers.
//!
//! HTTP/1 reads no further than to the request that waits, or to the part of its body that is
//! taken: that its client has left stands behind what is not read. So the sockets of those that
//! wait are asked a few times a second, all of them with one call.

use super::{CloseReason, ConnectionHandle, Connections};
use sooner_kernel::socket::peers_gone;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::sleep;

/// How often sockets are asked: a backend works for so long at most for a client that has left.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// A request of a connection waits for what a backend answers, until this is dropped.
pub struct AwaitedAnswer(Rc<ConnectionHandle>);

impl AwaitedAnswer {
    /// From now on, on this connection.
    pub fn begin(connection: Rc<ConnectionHandle>) -> Self {
        connection.activity.set_awaiting(true);
        let inner = &connection.inner;
        if inner.awaiting.fetch_add(1, Ordering::Relaxed) == 0 {
            inner.awaits.notify_one();
        }
        Self(connection)
    }
}

impl Drop for AwaitedAnswer {
    fn drop(&mut self) {
        self.0.activity.set_awaiting(false);
        self.0.inner.awaiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connections {
    /// Closes connections of clients that have left while an answer is awaited; never returns.
    pub async fn watch_departures(self) {
        loop {
            if self.0.awaiting.load(Ordering::Relaxed) == 0 {
                self.0.awaits.notified().await;
            }
            sleep(LOOK_INTERVAL).await;
            self.close_departed();
        }
    }

    fn close_departed(&self) {
        let state = self.0.lock();
        let awaiting = state.connections.values();
        let awaiting: Vec<_> = awaiting
            .filter(|entry| entry.activity.is_awaiting())
            .collect();
        let sockets: Vec<_> = awaiting.iter().map(|entry| entry.socket).collect();
        // A look that fails, for want of memory, is made again.
        let gone = peers_gone(&sockets).unwrap_or_default();
        for (entry, _) in awaiting.iter().zip(gone).filter(|(_, is_gone)| *is_gone) {
            entry.closing.close(CloseReason::Left);
        }
    }
}

impl ConnectionHandle {
    /// Waits until its client has left while an answer is awaited.
    pub async fn left(&self) {
        while self.closing.reason() != Some(CloseReason::Left) {
            self.closing.notified.notified().await;
        }
    }
}
