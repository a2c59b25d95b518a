//! Which of a connection's streams may go: the order that its client wants among them.
//!
//! Urgencies come first: while a stream of a lower number waits, none of a higher number may go.
//! What a client says of urgency orders its own streams and nothing else, so it is decided here and
//! not by the policy, which orders the streams of all connections.
//!
//! The streams of one urgency fall into three groups (RFC 9218, section 10). Those without a signal
//! from the client all may go. Of those the client can use only whole (not incremental) the first
//! one requested may; of those it can use piecemeal (incremental) the one that has had the least,
//! so that they share. Between the groups and between connections nothing is decided here.
//!
//! Only streams that wait take part: one with nothing to send, or with a shut window, holds up none
//! of its siblings. One that has just handed over and is about to ask again still holds its
//! urgency, so that less urgent ones do not come and go with each of its turns. Every call costs
//! O(log n) in the number of streams, and O(n) where another urgency comes to be the first.

use crate::scheduler::FlowId;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// A stream's place among the streams of the same urgency on the same connection.
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

/// How the streams of one HTTP/2 connection are ordered among themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamRule {
    /// As RFC 9218, section 10 recommends where the client sent a priority: whole responses in the
    /// order of their requests, incremental ones in turns. Without a priority the policy decides.
    #[default]
    Standard,
    /// The policy alone decides, as it does between connections.
    Size,
}

/// A name that is no [`StreamRule`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown order of streams; use standard or size")]
pub struct UnknownStreamRule;

impl StreamRule {
    /// The name as it is typed and reported.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Size => "size",
        }
    }
}

impl FromStr for StreamRule {
    type Err = UnknownStreamRule;

    fn from_str(text: &str) -> Result<Self, UnknownStreamRule> {
        [Self::Standard, Self::Size]
            .into_iter()
            .find(|rule| rule.as_str() == text)
            .ok_or(UnknownStreamRule)
    }
}

/// One stream among its siblings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sibling {
    /// 0 goes first.
    pub(crate) urgency: u8,
    pub(crate) order: StreamOrder,
    pub(crate) attained_bytes: u64,
    pub(crate) waits: bool,
    /// It handed over and is expected to ask again.
    pub(crate) returns: bool,
}

/// The urgency of a stream without a signal from the client (RFC 9218, section 4.1).
const DEFAULT_URGENCY: u8 = 3;

/// A stream's rank within its group.
type GroupRank = (u64, FlowId);

/// The streams of one connection that wait or are about to ask again.
#[derive(Debug, Default)]
pub(crate) struct Siblings {
    /// By urgency; none of them is empty.
    levels: BTreeMap<u8, Level>,
}

/// The streams of one urgency.
#[derive(Debug, Default)]
struct Level {
    /// Those that wait, by the policy, in sequence, in turns.
    groups: [BTreeSet<GroupRank>; 3],
    returning: usize,
}

impl Default for Sibling {
    fn default() -> Self {
        Self {
            urgency: DEFAULT_URGENCY,
            order: StreamOrder::default(),
            attained_bytes: 0,
            waits: false,
            returns: false,
        }
    }
}

impl Sibling {
    /// It waits for its turn.
    pub(crate) fn wait(&mut self) {
        self.waits = true;
        self.returns = false;
    }

    /// It wants nothing until it waits again.
    pub(crate) fn leave(&mut self) {
        self.waits = false;
        self.returns = false;
    }

    /// It handed over `written_bytes`; `returns`: it is expected to ask again.
    pub(crate) fn settle(&mut self, written_bytes: u64, returns: bool) {
        self.attained_bytes = self.attained_bytes.saturating_add(written_bytes);
        self.waits = false;
        self.returns = returns;
    }

    /// Streams are named in the order in which they were requested.
    fn rank(&self, stream: FlowId) -> GroupRank {
        match self.order {
            StreamOrder::Shared => (self.attained_bytes, stream),
            StreamOrder::BySize | StreamOrder::InSequence => (0, stream),
        }
    }
}

impl Level {
    fn is_empty(&self) -> bool {
        self.returning == 0 && !self.has_waiting()
    }

    fn has_waiting(&self) -> bool {
        self.groups.iter().any(|group| !group.is_empty())
    }

    /// The streams that may go while this urgency is the first.
    fn candidates(&self) -> impl Iterator<Item = FlowId> {
        let [by_size, in_sequence, shared] = &self.groups;
        let heads = in_sequence.first().into_iter().chain(shared.first());
        by_size.iter().chain(heads).map(|&(_, stream)| stream)
    }

    fn head(&self, order: StreamOrder) -> Option<FlowId> {
        let &(_, stream) = self.groups[order as usize].first()?;
        Some(stream)
    }
}

impl Siblings {
    /// A stream that was `before` is `after` from now on; the others that gain or lose their turn
    /// with that.
    pub(crate) fn change(
        &mut self,
        stream: FlowId,
        before: &Sibling,
        after: &Sibling,
    ) -> Vec<FlowId> {
        let first_before = self.first_urgency();
        let heads_before = self.heads(before, after);
        self.take_out(stream, before);
        self.put_in(stream, after);
        let first_after = self.first_urgency();
        let mut affected = Vec::new();
        if first_before == first_after {
            let heads = heads_before.into_iter().chain(self.heads(before, after));
            affected.extend(heads.flatten());
        } else {
            let levels = [first_before, first_after].into_iter().flatten();
            let levels = levels.filter_map(|urgency| self.levels.get(&urgency));
            affected.extend(levels.flat_map(Level::candidates));
        }
        affected.retain(|&sibling| sibling != stream);
        affected.sort_unstable();
        affected.dedup();
        affected
    }

    /// Whether a stream waits and no sibling goes before it.
    pub(crate) fn may_go(&self, stream: FlowId, sibling: &Sibling) -> bool {
        sibling.waits
            && self.first_urgency() == Some(sibling.urgency)
            && (sibling.order == StreamOrder::BySize || self.head_of(sibling) == Some(stream))
    }

    /// Whether a stream waits that is less urgent than this one.
    pub(crate) fn has_behind(&self, sibling: &Sibling) -> bool {
        let mut behind = self.levels.range(sibling.urgency.saturating_add(1)..);
        behind.any(|(_, level)| level.has_waiting())
    }

    /// All streams that wait, in the order in which they were requested.
    pub(crate) fn waiting(&self) -> Vec<FlowId> {
        let groups = self.levels.values().flat_map(|level| &level.groups);
        let mut waiting: Vec<FlowId> = groups.flatten().map(|&(_, stream)| stream).collect();
        waiting.sort_unstable();
        waiting
    }

    fn first_urgency(&self) -> Option<u8> {
        let (&urgency, _) = self.levels.first_key_value()?;
        Some(urgency)
    }

    /// The first of the stream's group.
    fn head_of(&self, sibling: &Sibling) -> Option<FlowId> {
        self.levels.get(&sibling.urgency)?.head(sibling.order)
    }

    /// The first of both groups, where only the first may go.
    fn heads(&self, before: &Sibling, after: &Sibling) -> [Option<FlowId>; 2] {
        [before, after].map(|sibling| {
            let is_ordered = sibling.order != StreamOrder::BySize;
            is_ordered.then(|| self.head_of(sibling)).flatten()
        })
    }

    fn put_in(&mut self, stream: FlowId, sibling: &Sibling) {
        if !sibling.waits && !sibling.returns {
            return;
        }
        let level = self.levels.entry(sibling.urgency).or_default();
        if sibling.waits {
            let is_new = level.groups[sibling.order as usize].insert(sibling.rank(stream));
            assert!(is_new, "a stream waits in one group, once");
        }
        level.returning += usize::from(sibling.returns);
    }

    fn take_out(&mut self, stream: FlowId, sibling: &Sibling) {
        let Some(level) = self.levels.get_mut(&sibling.urgency) else {
            return;
        };
        if sibling.waits {
            let was_there = level.groups[sibling.order as usize].remove(&sibling.rank(stream));
            assert!(was_there, "a stream waits where it was put");
        }
        level.returning -= usize::from(sibling.returns);
        if level.is_empty() {
            self.levels.remove(&sibling.urgency);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The streams of a connection, each with its record.
    #[derive(Default)]
    struct Connection {
        streams: BTreeMap<FlowId, Sibling>,
        siblings: Siblings,
    }

    impl Connection {
        fn open(&mut self, stream: FlowId) {
            self.streams.entry(stream).or_default();
        }

        fn change(&mut self, stream: FlowId, change: impl FnOnce(&mut Sibling)) -> Vec<FlowId> {
            let sibling = self.streams.get_mut(&stream).expect("an open stream");
            let before = *sibling;
            change(sibling);
            self.siblings.change(stream, &before, sibling)
        }

        fn close(&mut self, stream: FlowId) -> Vec<FlowId> {
            let affected = self.change(stream, Sibling::leave);
            self.streams.remove(&stream);
            affected
        }

        fn has_behind(&self, stream: FlowId) -> bool {
            self.siblings.has_behind(&self.streams[&stream])
        }
    }

    fn waiting(streams: &[(u8, StreamOrder)]) -> Connection {
        let mut siblings = Connection::default();
        for (&(urgency, order), stream) in streams.iter().zip(0..) {
            siblings.open(stream);
            siblings.change(stream, |sibling| {
                *sibling = Sibling {
                    urgency,
                    order,
                    waits: true,
                    ..Sibling::default()
                }
            });
        }
        siblings
    }

    fn who_may_go(connection: &Connection) -> Vec<FlowId> {
        let streams = connection.streams.iter();
        streams
            .filter(|&(&stream, sibling)| connection.siblings.may_go(stream, sibling))
            .map(|(&stream, _)| stream)
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
            (5, InSequence),
            (3, BySize),
        ]);
        assert_eq!(who_may_go(&siblings), [0, 1, 3, 6]);
    }

    #[test]
    fn a_stream_that_does_not_wait_holds_up_no_other() {
        let mut siblings = waiting(&[(3, InSequence), (3, InSequence)]);
        let affected = siblings.change(0, |sibling| sibling.waits = false);
        assert_eq!(affected, [1]);
        assert_eq!(who_may_go(&siblings), [1]);
        let affected = siblings.change(0, |sibling| sibling.waits = true);
        assert_eq!(affected, [1]);
        assert_eq!(who_may_go(&siblings), [0]);
        assert_eq!(siblings.close(0), [1]);
        assert_eq!(who_may_go(&siblings), [1]);
    }

    #[test]
    fn the_most_urgent_go_first_and_hold_their_place_while_they_return() {
        let mut siblings = waiting(&[(3, BySize), (3, BySize), (0, BySize), (7, Shared)]);
        assert_eq!(who_may_go(&siblings), [2]);
        assert!(siblings.has_behind(2) && !siblings.has_behind(3));
        let affected = siblings.change(2, |sibling| {
            sibling.waits = false;
            sibling.returns = true;
        });
        assert_eq!((affected, who_may_go(&siblings)), (vec![], vec![]));
        let affected = siblings.change(2, |sibling| sibling.returns = false);
        assert_eq!((affected, who_may_go(&siblings)), (vec![0, 1], vec![0, 1]));
        let affected = siblings.change(3, |sibling| sibling.urgency = 1);
        assert_eq!((affected, who_may_go(&siblings)), (vec![0, 1], vec![3]));
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

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// Streams that gain or lose their turn are named, and one may go whenever one waits.
        #[test]
        fn streams_that_gain_or_lose_their_turn_are_affected(
            changes in proptest::collection::vec(
                (0..6_u64, 0..3_u8, 0..3_usize, any::<bool>(), 0..3_u64, any::<bool>()),
                1..60,
            ),
        ) {
            let mut siblings = Connection::default();
            for (stream, urgency, order, waits, attained_bytes, close) in changes {
                siblings.open(stream);
                let before = who_may_go(&siblings);
                let affected = if close {
                    siblings.close(stream)
                } else {
                    let order = [BySize, InSequence, Shared][order];
                    siblings.change(stream, |sibling| {
                        let returns = !waits && attained_bytes == 2;
                        *sibling = Sibling { urgency, order, waits, attained_bytes, returns };
                    })
                };
                let after = who_may_go(&siblings);
                let changed = stream;
                for stream in 0..6 {
                    prop_assert!(
                        before.contains(&stream) == after.contains(&stream)
                            || stream == changed
                            || affected.contains(&stream),
                        "{stream} is not in {affected:?}"
                    );
                }
                let returns = siblings.streams.values().any(|sibling| sibling.returns);
                prop_assert!(returns || siblings.siblings.waiting().is_empty() == after.is_empty());
                prop_assert!(siblings.siblings.levels.values().all(|level| !level.is_empty()));
            }
        }
    }
}
