//! What is to be done when, in order of time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Things with their times in ns; of those at the same time the first one added comes first.
pub struct Agenda<T> {
    entries: BinaryHeap<Entry<T>>,
    added: u64,
}

struct Entry<T> {
    at_ns: u64,
    number: u64,
    what: T,
}

impl<T> Default for Agenda<T> {
    fn default() -> Agenda<T> {
        Agenda {
            entries: BinaryHeap::new(),
            added: 0,
        }
    }
}

impl<T> Agenda<T> {
    /// Adds `what`, to be done at `at_ns`.
    pub fn add(&mut self, at_ns: u64, what: T) {
        self.entries.push(Entry {
            at_ns,
            number: self.added,
            what,
        });
        self.added += 1;
    }

    /// When the next thing is to be done.
    pub fn next_ns(&self) -> Option<u64> {
        self.entries.peek().map(|entry| entry.at_ns)
    }

    /// Takes the next thing with its time, if that is not after `now_ns`.
    pub fn take_due(&mut self, now_ns: u64) -> Option<(u64, T)> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.entries.pop().map(|entry| (entry.at_ns, entry.what))
    }

    /// Whether nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<T> Entry<T> {
    fn rank(&self) -> (u64, u64) {
        (self.at_ns, self.number)
    }
}

impl<T> Ord for Entry<T> {
    /// Reversed, because the heap gives its greatest first.
    fn cmp(&self, other: &Entry<T>) -> Ordering {
        other.rank().cmp(&self.rank())
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Entry<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Entry<T>) -> bool {
        self.rank() == other.rank()
    }
}

impl<T> Eq for Entry<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_come_in_order_of_time_and_not_before_it() {
        let mut agenda = Agenda::default();
        for (at_ns, what) in [(30, 'c'), (10, 'a'), (30, 'd'), (20, 'b')] {
            agenda.add(at_ns, what);
        }
        assert_eq!(agenda.take_due(9), None);
        assert_eq!(agenda.take_due(20), Some((10, 'a')));
        assert_eq!(agenda.take_due(20), Some((20, 'b')));
        assert_eq!((agenda.take_due(29), agenda.next_ns()), (None, Some(30)));
        assert_eq!(agenda.take_due(30), Some((30, 'c')));
        assert_eq!(agenda.take_due(99), Some((30, 'd')));
        assert!(agenda.is_empty() && agenda.next_ns().is_none());
    }
}
