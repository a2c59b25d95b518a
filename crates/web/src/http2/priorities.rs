//! Priorities from PRIORITY_UPDATE frames, until their streams take them.
//!
//! A frame may come while its stream runs, which is then woken, or before the stream is opened, for
//! which it is kept. It may also come in the very packet that opens the stream, before the driver
//! has accepted it: that looks as if it had come before.

use sooner_http::frames::{PriorityUpdate, Violation};
use sooner_http::priority::Priority;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::task::{Context, Waker};

/// The table of one connection.
#[derive(Debug)]
pub struct Priorities {
    open: BTreeMap<u32, Rc<PendingUpdate>>,
    idle: BTreeMap<u32, Priority>,
    last_opened: u32,
    streams_max: usize,
    violation: Option<Violation>,
}

/// What one stream has not heard yet.
#[derive(Debug, Default)]
struct PendingUpdate {
    priority: Cell<Option<Priority>>,
    waker: RefCell<Option<Waker>>,
}

/// Where one stream hears of its priority; the stream counts as open until this is dropped.
#[derive(Debug)]
pub struct Subscription {
    stream: u32,
    update: Rc<PendingUpdate>,
    table: Rc<RefCell<Priorities>>,
}

impl Priorities {
    /// The table of a connection that may have `streams_max` open streams.
    ///
    /// Clients may prioritise no more streams than they may open (RFC 9218, 7.1). Twice as many are
    /// tolerated, because a stream that the client has just reset still counts here.
    pub fn new(streams_max: usize) -> Self {
        Self {
            open: BTreeMap::new(),
            idle: BTreeMap::new(),
            last_opened: 0,
            streams_max: 2 * streams_max,
            violation: None,
        }
    }

    /// Takes in what the scanner found.
    pub fn note(&mut self, found: Result<PriorityUpdate, Violation>) {
        match found {
            Ok(PriorityUpdate {
                stream,
                priority: Some(priority),
            }) => self.update(stream, priority),
            Ok(_) => {}
            Err(violation) => self.violation = self.violation.or(Some(violation)),
        }
    }

    /// Why the connection must be ended, if it must.
    pub fn violation(&self) -> Option<Violation> {
        self.violation
    }

    fn update(&mut self, stream: u32, priority: Priority) {
        if let Some(update) = self.open.get(&stream) {
            update.priority.set(Some(priority));
            if let Some(waker) = update.waker.take() {
                waker.wake();
            }
        } else if stream > self.last_opened {
            self.idle.insert(stream, priority);
            if self.open.len() + self.idle.len() > self.streams_max {
                self.idle.remove(&stream);
                self.violation = self.violation.or(Some(Violation::TooManyIdle));
            }
        }
    }
}

impl Subscription {
    /// Opens `stream` in `table`. Streams below it that were not opened never will be (RFC 9113,
    /// 5.1.1).
    pub fn new(table: &Rc<RefCell<Priorities>>, stream: u32) -> Self {
        let mut priorities = table.borrow_mut();
        let later = priorities.idle.split_off(&stream.saturating_add(1));
        let mut not_later = std::mem::replace(&mut priorities.idle, later);
        let update = Rc::new(PendingUpdate::default());
        update.priority.set(not_later.remove(&stream));
        priorities.last_opened = priorities.last_opened.max(stream);
        priorities.open.insert(stream, update.clone());
        Self {
            stream,
            update,
            table: table.clone(),
        }
    }

    /// The update since the last call, if there was one; wakes the task of `cx` at the next.
    pub fn take(&self, cx: &mut Context<'_>) -> Option<Priority> {
        let mut waker = self.update.waker.borrow_mut();
        match &mut *waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        self.update.priority.take()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.table.borrow_mut().open.remove(&self.stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(table: &Rc<RefCell<Priorities>>, stream: u32, field: &str) {
        let priority = Priority::parse(field.as_bytes());
        table
            .borrow_mut()
            .note(Ok(PriorityUpdate { stream, priority }));
    }

    fn follow_priority(subscription: &Subscription) -> Option<u8> {
        let mut cx = Context::from_waker(Waker::noop());
        subscription.take(&mut cx)?.urgency
    }

    #[test]
    fn news_before_and_during_a_stream_are_heard_once() {
        let table = Rc::new(RefCell::new(Priorities::new(4)));
        update(&table, 3, "u=5");
        update(&table, 3, "u=1");
        let stream = Subscription::new(&table, 3);
        assert_eq!(
            (follow_priority(&stream), follow_priority(&stream)),
            (Some(1), None)
        );
        update(&table, 3, "u=6");
        update(&table, 3, "u=");
        assert_eq!(
            (follow_priority(&stream), follow_priority(&stream)),
            (Some(6), None)
        );
    }

    #[test]
    fn what_is_said_of_closed_streams_is_forgotten() {
        let table = Rc::new(RefCell::new(Priorities::new(1)));
        update(&table, 3, "u=5");
        drop(Subscription::new(&table, 5));
        for _ in 0..10 {
            update(&table, 3, "u=5");
            update(&table, 5, "u=5");
        }
        assert_eq!(table.borrow().violation(), None);
        assert!(table.borrow().idle.is_empty() && table.borrow().open.is_empty());
    }

    #[test]
    fn the_table_is_bounded() {
        let table = Rc::new(RefCell::new(Priorities::new(2)));
        let _open = Subscription::new(&table, 1);
        for stream in [3, 5, 7] {
            update(&table, stream, "u=5");
        }
        assert_eq!(table.borrow().violation(), None);
        for stream in (9..1000).step_by(2) {
            update(&table, stream, "u=5");
        }
        assert_eq!(table.borrow().violation(), Some(Violation::TooManyIdle));
        assert_eq!(table.borrow().idle.len(), 3);
    }
}
