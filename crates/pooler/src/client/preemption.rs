//! A client's transaction as others see it that wait for its locks: what it runs, and what it has
//! been told to do about that.

use crate::config::LockWait;
use sooner_postgres::preemption::Taken;
use sooner_postgres::waited::Waited;
use std::cell::Cell;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A client that had to make room so often one after the other is spared the next time, and a
/// statement is sent again so often: what matters less is late, and never shut out.
pub const IN_A_ROW_MAX: u32 = 5;
/// For so long a server that has been told to cancel may do so.
const ORDER_HOLDS: Duration = Duration::from_secs(10);
/// Not told twice within this time, and twice as long after each time.
const ORDER_PAUSE: Duration = Duration::from_millis(50);
const ORDER_PAUSE_MAX: Duration = Duration::from_secs(5);

/// What is known of the transaction that a client has inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningTransaction {
    /// 1 goes before 2; 255 where it is in no class.
    pub priority: u8,
    /// Its number: the next one has a higher one.
    pub number: u64,
    /// What becomes of its own waits for locks.
    pub lock_wait: Option<LockWait>,
}

/// The state of one client.
#[derive(Default)]
pub struct Preemption {
    /// There while it has a transaction inside, and only where any class has a `wait_target`.
    pub running: Cell<Option<RunningTransaction>>,
    /// Since when the server has something to do for it.
    pub busy_since: Cell<Option<Instant>>,
    /// Whether what it runs can be sent again.
    pub is_repeatable: Cell<bool>,
    /// Whether what it runs may commit.
    pub may_commit: Cell<bool>,
    /// The transaction of which it was last counted that it waited too long.
    pub counted_late: Cell<u64>,
    /// That of which it was last counted that it would make room.
    pub counted_taken: Cell<u64>,
    /// How long the statement has waited for locks that runs since then.
    waited: Cell<(Option<Instant>, Waited)>,
    ordered: Cell<Option<(Taken, Instant)>>,
    /// When it was told last, and how often within its transaction.
    told: Cell<Option<(Instant, u32)>>,
    /// How often it made room within its transaction.
    hits: Cell<u32>,
    in_a_row: Cell<u32>,
    is_cancelled: Cell<bool>,
    /// Whether a cancel request for that is on its way: a second one would hit what comes behind.
    is_on_its_way: Cell<bool>,
    arrives: Notify,
    rolls_back: Notify,
}

impl Preemption {
    /// A transaction begins.
    pub fn begin(&self, running: RunningTransaction) {
        self.running.set(Some(running));
        self.is_cancelled.set(false);
    }

    /// It is over.
    pub fn end(&self, made_room: bool) {
        if !made_room && self.running.get().is_some() {
            self.in_a_row.set(0);
        }
        self.running.set(None);
        self.ordered.set(None);
        self.told.set(None);
        self.hits.set(0);
        self.busy_since.set(None);
        self.is_repeatable.set(false);
    }

    /// It is seen to wait since then, by the server's clock, us: how long its statement has waited for
    /// locks in all.
    pub fn waited(&self, since_us: i64, now_us: i64) -> Duration {
        let statement = self.busy_since.get();
        let (known, mut waited) = self.waited.get();
        if known != statement {
            waited = Waited::default();
        }
        let in_all = waited.see(since_us, now_us);
        self.waited.set((statement, waited));
        in_all
    }

    /// It has made room once more. It may be hit again for a while: a second cancel request may have
    /// been sent before the first took effect.
    pub fn made_room(&self) {
        self.hits.set(self.hits.get().saturating_add(1));
        self.in_a_row.set(self.in_a_row.get().saturating_add(1));
    }

    /// Whether it has made room often enough.
    pub fn is_spared(&self) -> bool {
        self.in_a_row.get() >= IN_A_ROW_MAX
    }

    /// It is to make room; whether that is news.
    pub fn order(&self, taken: Taken, now: Instant) -> bool {
        let (told_at, times) = match self.told.get() {
            Some((at, times)) => (Some(at), times),
            None => (None, 0),
        };
        let pause = ORDER_PAUSE * 2_u32.saturating_pow(times.saturating_sub(1).min(10));
        let pause = pause.min(ORDER_PAUSE_MAX);
        let is_soon = told_at.is_some_and(|at| now.saturating_duration_since(at) < pause);
        if self.is_on_its_way.get() || is_soon || self.is_cancelled.get() {
            return false;
        }
        self.told.set(Some((now, times + 1)));
        self.is_on_its_way.set(taken != Taken::RolledBack);
        self.ordered.set(Some((taken, now)));
        if taken == Taken::RolledBack {
            self.rolls_back.notify_waiters();
        }
        true
    }

    /// The server has taken the cancel request, or did not get it.
    pub fn arrived(&self) {
        self.is_on_its_way.set(false);
        self.arrives.notify_waiters();
    }

    /// Whether a cancel request is on its way: for one the server's process may be signalled twice,
    /// a while apart.
    pub fn is_on_its_way(&self) -> bool {
        self.is_on_its_way.get()
    }

    /// Ready when the next one has arrived.
    pub async fn next_arrival(&self) {
        self.arrives.notified().await;
    }

    /// How it is to make room, if what the server cancels now is cancelled for that.
    pub fn ordered(&self, now: Instant) -> Option<Taken> {
        let (taken, at) = self.ordered.get()?;
        // What it was told has happened.
        if self
            .told
            .get()
            .is_none_or(|(_, times)| times <= self.hits.get())
        {
            return None;
        }
        let holds = self.is_on_its_way.get() || now.saturating_duration_since(at) < ORDER_HOLDS;
        holds.then_some(taken)
    }

    /// It cannot any more: what it was told is forgotten.
    pub fn withdraw(&self) {
        self.ordered.set(None);
    }

    /// Its client cancels what it runs: that is what counts.
    pub fn cancelled_by_client(&self) {
        self.ordered.set(None);
        self.is_cancelled.set(true);
    }

    /// Whether its client has cancelled the transaction.
    pub fn is_cancelled_by_client(&self) -> bool {
        self.is_cancelled.get()
    }

    /// Ready when it is to roll back what it has open.
    pub async fn rolls_back(&self) {
        loop {
            let told = self.rolls_back.notified();
            if self.ordered(Instant::now()) == Some(Taken::RolledBack) {
                return;
            }
            told.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_made_room_often_is_spared_until_a_transaction_is_through() {
        let client = Preemption::default();
        let running = RunningTransaction {
            priority: 100,
            number: 1,
            lock_wait: None,
        };
        for _ in 0..IN_A_ROW_MAX {
            assert!(!client.is_spared());
            client.begin(running);
            assert!(client.order(Taken::Cancelled, Instant::now()));
            assert_eq!(client.ordered(Instant::now()), Some(Taken::Cancelled));
            client.arrived();
            client.made_room();
            client.end(true);
        }
        assert!(client.is_spared());
        client.end(false);
        assert!(client.is_spared(), "nothing ran");
        client.begin(running);
        client.end(false);
        assert!(!client.is_spared());
    }

    #[test]
    fn waits_are_those_of_one_statement() {
        let client = Preemption::default();
        let begin = Instant::now();
        client.busy_since.set(Some(begin));
        assert_eq!(client.waited(10, 40).as_micros(), 30);
        assert_eq!(client.waited(50, 60).as_micros(), 40);
        client.busy_since.set(Some(begin + ORDER_PAUSE));
        assert_eq!(client.waited(70, 80).as_micros(), 10);
    }

    #[test]
    fn it_is_told_once_and_its_own_client_counts_more() {
        let client = Preemption::default();
        let now = Instant::now();
        assert!(client.order(Taken::Again, now));
        assert!(!client.order(Taken::Again, now));
        assert!(
            !client.order(Taken::Again, now + ORDER_PAUSE),
            "one is on its way"
        );
        client.arrived();
        assert!(client.order(Taken::Again, now + ORDER_PAUSE));
        client.arrived();
        assert_eq!(client.ordered(now + ORDER_HOLDS / 2), Some(Taken::Again));
        assert_eq!(client.ordered(now + 2 * ORDER_HOLDS), None, "it is over");
        client.cancelled_by_client();
        assert_eq!(client.ordered(now), None);
        assert!(client.is_cancelled_by_client());
    }
}
