//! What the driver and the requests under way share: who has been sent, who has ended, and whom
//! another request follows.

use super::{LEAD_NS, PlayOptions, Progress, Record};
use crate::patience::{End, Patience};
use crate::pool::Pool;
use crate::script::Turn;
use crate::target::Target;
use sooner_kernel::clock::monotonic_ns;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tokio::sync::Notify;

/// What the driver and the requests under way share.
pub struct PlayState {
    /// The target of all requests.
    pub target: Target,
    /// How long users wait.
    pub patience: Option<Patience>,
    /// Start of the run, CLOCK_MONOTONIC ns.
    pub start_ns: u64,
    planned: Option<u64>,
    /// What was sent, in that order.
    pub records: RefCell<Vec<Record>>,
    ended: Cell<u64>,
    failed: Cell<u64>,
    /// Requests that have ended and are followed by another one.
    pub followed: RefCell<Vec<Ended>>,
    /// Tells the driver.
    pub request_ended: Notify,
}

/// Which arrival or user asked, and on which connections.
pub struct Follow {
    /// Which arrival or user had its turn.
    pub turn: Turn,
    /// The connections.
    pub pool: Rc<Pool>,
    /// Whether the visitor asks again.
    pub is_followed: bool,
    /// Whether the visitor goes and leaves the connection.
    pub ends_visit: bool,
}

/// A request that has ended and is followed by another one.
pub struct Ended {
    /// Which arrival or user had its turn.
    pub turn: Turn,
    /// The connections.
    pub pool: Rc<Pool>,
    /// When it ended, CLOCK_MONOTONIC ns.
    pub at_ns: u64,
    /// Whether it failed.
    pub failed: bool,
}

impl PlayState {
    /// Nothing sent yet; the run starts in a moment.
    pub fn new(scene: &PlayOptions<'_>) -> PlayState {
        let capacity = scene.planned.unwrap_or(0) as usize;
        PlayState {
            target: scene.target.clone(),
            patience: scene.patience,
            start_ns: monotonic_ns() + LEAD_NS,
            planned: scene.planned,
            records: RefCell::new(Vec::with_capacity(capacity)),
            ended: Cell::new(0),
            failed: Cell::new(0),
            followed: RefCell::default(),
            request_ended: Notify::new(),
        }
    }

    /// Adds what was sent; gives its index.
    pub fn note_sent(&self, record: Record) -> usize {
        let mut records = self.records.borrow_mut();
        records.push(record);
        records.len() - 1
    }

    /// One more attempt was aborted.
    pub fn note_abort(&self, index: usize) {
        self.records.borrow_mut()[index].aborts += 1;
    }

    /// It has ended, and its connection is free again: whom another request follows may go on.
    pub fn note_end(&self, index: usize, end: End, follow: Follow) {
        let failure = matches!(end, End::Failed(_));
        let now_ns = monotonic_ns();
        let at_ns = match end {
            End::Served(served) => served.answer.last_byte_ns,
            End::Failed(_) | End::GivenUp => now_ns,
        };
        self.ended.set(self.ended.get() + 1);
        self.failed.set(self.failed.get() + u64::from(failure));
        let record = &mut self.records.borrow_mut()[index];
        record.failed_ns = failure.then_some(now_ns);
        record.end = Some(end);
        if follow.is_followed {
            self.followed.borrow_mut().push(Ended {
                turn: follow.turn,
                pool: follow.pool,
                at_ns,
                failed: failure,
            });
        }
        self.request_ended.notify_one();
    }

    fn sent(&self) -> u64 {
        self.records.borrow().len() as u64
    }

    /// Whether something has not ended, or is about to follow.
    pub fn is_under_way(&self) -> bool {
        self.ended.get() < self.sent() || !self.followed.borrow().is_empty()
    }

    /// How the run stands.
    pub fn progress(&self) -> Progress {
        Progress {
            elapsed_ns: monotonic_ns().saturating_sub(self.start_ns),
            planned: self.planned.unwrap_or_else(|| self.sent()),
            sent: self.sent(),
            ended: self.ended.get(),
            failed: self.failed.get(),
        }
    }
}
