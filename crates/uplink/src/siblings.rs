//! Which of a connection's streams may go: the order RFC 9218, section 10 asks for.
//!
//! The streams of one connection and one class fall into three groups. Those without a signal from the client all may go. Of those the
//! client can use only whole (not incremental) the first one requested may; of those it can use piecemeal (incremental) the one that has
//! had the least, so that they share. Between the groups, classes and connections nothing is decided here.
//!
//! Only streams that wait take part: one that has nothing to send, or whose window is shut, holds up none of its siblings. Every call costs
//! O(log n) in the number of streams.

use std::collections::{BTreeMap, BTreeSet};

use crate::gate::FlowId;

/// A stream's place among the streams of the same class on the same connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamOrder {
    /// The client said nothing: the policy's rank alone decides.
    #[default]
    BySize,
    /// Not incremental: after those that were requested before it.
    InSequence,
    /// Incremental: in turns with the others.
    Shared,
}

/// One stream among its siblings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sibling {
    pub(crate) class: u8,
    pub(crate) order: StreamOrder,
    pub(crate) attained_bytes: u64,
    pub(crate) waits: bool,
}

/// A group is the streams of one class and one order.
type Group = (u8, StreamOrder);
/// A stream's place within its group.
type Place = (u64, FlowId);

/// The streams of one connection.
#[derive(Debug, Default)]
pub(crate) struct Siblings {
    streams: BTreeMap<FlowId, Sibling>,
    /// Those that wait, of the groups of which only the first may go; no group is empty.
    groups: BTreeMap<Group, BTreeSet<Place>>,
}

/// The streams whose turn may have come or gone with a change: the changed one first.
pub(crate) type Touched = [Option<FlowId>; 3];

impl Sibling {
    /// Its group, if it stands in one now.
    fn group(&self) -> Option<Group> {
        (self.waits && self.order != StreamOrder::BySize).then_some((self.class, self.order))
    }

    /// Streams are named in the order in which they were requested.
    fn place(&self, stream: FlowId) -> Place {
        match self.order {
            StreamOrder::Shared => (self.attained_bytes, stream),
            StreamOrder::BySize | StreamOrder::InSequence => (0, stream),
        }
    }
}

impl Siblings {
    /// A stream is opened; it does not wait yet.
    pub(crate) fn open(&mut self, stream: FlowId) {
        self.streams.entry(stream).or_default();
    }

    /// A stream is gone.
    pub(crate) fn close(&mut self, stream: FlowId) -> Touched {
        let touched = self.change(stream, |sibling| sibling.waits = false);
        self.streams.remove(&stream);
        touched
    }

    /// Changes a stream and puts it where it then belongs.
    pub(crate) fn change(&mut self, stream: FlowId, change: impl FnOnce(&mut Sibling)) -> Touched {
        let Some(&before) = self.streams.get(&stream) else {
            return Touched::default();
        };
        let mut after = before;
        change(&mut after);
        self.streams.insert(stream, after);
        if before.group() == after.group() && before.place(stream) == after.place(stream) {
            return [Some(stream), None, None];
        }
        let successor = before.group().and_then(|group| {
            self.leave(group, before.place(stream));
            self.head(group)
        });
        let predecessor = after.group().and_then(|group| {
            let head = self.head(group);
            self.groups
                .entry(group)
                .or_default()
                .insert(after.place(stream));
            head
        });
        [Some(stream), successor, predecessor]
    }

    /// Whether a stream waits and no sibling goes before it.
    pub(crate) fn may_go(&self, stream: FlowId) -> bool {
        self.streams.get(&stream).is_some_and(|sibling| {
            sibling.waits
                && sibling
                    .group()
                    .is_none_or(|group| self.head(group) == Some(stream))
        })
    }

    /// All streams that wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = FlowId> {
        self.streams
            .iter()
            .filter(|(_, sibling)| sibling.waits)
            .map(|(&stream, _)| stream)
    }

    /// All streams.
    pub(crate) fn all(&self) -> impl Iterator<Item = FlowId> {
        self.streams.keys().copied()
    }

    fn head(&self, group: Group) -> Option<FlowId> {
        let &(_, stream) = self.groups.get(&group)?.first()?;
        Some(stream)
    }

    fn leave(&mut self, group: Group, place: Place) {
        if let Some(places) = self.groups.get_mut(&group) {
            places.remove(&place);
            if places.is_empty() {
                self.groups.remove(&group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn waiting(streams: &[(u8, StreamOrder)]) -> Siblings {
        let mut siblings = Siblings::default();
        for (&(class, order), stream) in streams.iter().zip(0..) {
            siblings.open(stream);
            siblings.change(stream, |sibling| {
                *sibling = Sibling {
                    class,
                    order,
                    waits: true,
                    attained_bytes: 0,
                }
            });
        }
        siblings
    }

    fn who_may_go(siblings: &Siblings) -> Vec<FlowId> {
        siblings
            .all()
            .filter(|&stream| siblings.may_go(stream))
            .collect()
    }

    use StreamOrder::{BySize, InSequence, Shared};

    #[test]
    fn without_a_signal_all_may_go_and_of_a_group_only_the_first() {
        let siblings = waiting(&[
            (3, InSequence),
            (3, BySize),
            (3, InSequence),
            (3, Shared),
            (3, Shared),
            (1, InSequence),
            (3, BySize),
        ]);
        assert_eq!(who_may_go(&siblings), [0, 1, 3, 5, 6]);
    }

    #[test]
    fn who_does_not_wait_holds_up_nobody() {
        let mut siblings = waiting(&[(3, InSequence), (3, InSequence)]);
        let touched = siblings.change(0, |sibling| sibling.waits = false);
        assert_eq!(touched, [Some(0), Some(1), None]);
        assert_eq!(who_may_go(&siblings), [1]);
        let touched = siblings.change(0, |sibling| sibling.waits = true);
        assert_eq!(touched, [Some(0), None, Some(1)]);
        assert_eq!(who_may_go(&siblings), [0]);
        siblings.close(0);
        assert_eq!(who_may_go(&siblings), [1]);
    }

    #[test]
    fn those_who_share_take_turns() {
        let mut siblings = waiting(&[(3, Shared), (3, Shared)]);
        let mut turns = Vec::new();
        for _ in 0..4 {
            let stream = who_may_go(&siblings)[0];
            siblings.change(stream, |sibling| sibling.attained_bytes += 10);
            turns.push(stream);
        }
        assert_eq!(turns, [0, 1, 0, 1]);
    }

    #[test]
    fn another_class_is_another_group() {
        let mut siblings = waiting(&[(3, InSequence), (3, InSequence), (1, InSequence)]);
        siblings.change(0, |sibling| sibling.class = 1);
        assert_eq!(who_may_go(&siblings), [0, 1]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Whose turn comes or goes with a change is named, and somebody may go whenever somebody waits.
        #[test]
        fn whose_turn_changes_is_touched(
            changes in proptest::collection::vec((0..6_u64, 0..3_u8, 0..3_usize, any::<bool>(), 0..3_u64, any::<bool>()), 1..60),
        ) {
            let mut siblings = Siblings::default();
            for (stream, class, order, waits, attained_bytes, close) in changes {
                siblings.open(stream);
                let before = who_may_go(&siblings);
                let touched = if close {
                    siblings.close(stream)
                } else {
                    let order = [BySize, InSequence, Shared][order];
                    siblings.change(stream, |sibling| {
                        *sibling = Sibling { class, order, waits, attained_bytes };
                    })
                };
                let after = who_may_go(&siblings);
                for stream in 0..6 {
                    prop_assert!(
                        before.contains(&stream) == after.contains(&stream) || touched.contains(&Some(stream)),
                        "{stream} is not in {touched:?}"
                    );
                }
                prop_assert_eq!(siblings.waiting().next().is_some(), !after.is_empty());
                prop_assert!(siblings.groups.values().all(|group| !group.is_empty()));
            }
        }
    }
}
