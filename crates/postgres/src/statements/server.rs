//! The statements that one server connection knows.

use super::Statement;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A statement that a server connection knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatement {
    /// The one that it is named after there.
    pub statement: Arc<Statement>,
    /// How many statements there were when the server was told to prepare it.
    pub parsed_at: u64,
    /// Whether it was understood as its text says, so that it may stand for others.
    pub is_shared: bool,
}

impl ServerStatement {
    /// Whether a fresh Parse for the client of `wanted` could have given it.
    fn serves(&self, wanted: &Statement) -> bool {
        let is_same = self.statement.number == wanted.number;
        let is_equal = || {
            self.is_shared
                && self.parsed_at >= wanted.number
                && self.statement.description().is_some()
                && self.statement.description() == wanted.description()
        };
        is_same || is_equal()
    }
}

/// The statements that one server connection knows.
#[derive(Debug)]
pub struct ServerStatements {
    by_number: HashMap<u64, (u64, ServerStatement)>,
    /// Numbers by when they were used last.
    by_use: BTreeMap<u64, u64>,
    /// Numbers by their text, those prepared last at the end.
    by_text: HashMap<u64, Vec<u64>>,
    /// Those that newer ones serve for as well; they are closed at the next opportunity.
    superseded: BTreeSet<u64>,
    uses: u64,
    max: usize,
}

impl ServerStatements {
    /// Knows none, and at most `max` (at least one).
    pub fn new(max: usize) -> Self {
        Self {
            by_number: HashMap::new(),
            by_use: BTreeMap::new(),
            by_text: HashMap::new(),
            superseded: BTreeSet::new(),
            // Room for those that come back before the first.
            uses: u64::from(u32::MAX),
            max: max.max(1),
        }
    }

    /// The one that serves for a client's statement, the last prepared first.
    pub fn find(&self, wanted: &Statement) -> Option<&Arc<Statement>> {
        let numbers = self.by_text.get(&wanted.text.id)?;
        let mut known = numbers
            .iter()
            .rev()
            .filter_map(|number| self.by_number.get(number));
        let found = known.find(|(_, known)| known.serves(wanted));
        found.map(|(_, known)| &known.statement)
    }

    /// One is used: those that are not used for longest are closed first.
    pub fn touch(&mut self, number: u64) {
        if let Some((used_at, _)) = self.by_number.get_mut(&number) {
            self.uses += 1;
            self.by_use.remove(used_at);
            *used_at = self.uses;
            self.by_use.insert(self.uses, number);
        }
    }

    /// One is to be prepared; those that are to be closed before.
    pub fn insert(&mut self, known: ServerStatement) -> Vec<ServerStatement> {
        let number = known.statement.number;
        let superseded = std::mem::take(&mut self.superseded);
        let superseded = superseded.into_iter().filter(|old| *old != number);
        let mut closed: Vec<ServerStatement> =
            superseded.filter_map(|old| self.forget(old)).collect();
        self.forget(number);
        if self.by_number.len() >= self.max
            && let Some(oldest) = self.by_use.first_key_value().map(|(_, number)| *number)
        {
            closed.extend(self.forget(oldest));
        }
        self.uses += 1;
        self.put(self.uses, known);
        closed
    }

    /// It was not closed after all: the next that is new lets it go before any other.
    pub fn still_knows(&mut self, known: ServerStatement) {
        let oldest = self.by_use.first_key_value();
        let before = oldest.map_or(self.uses, |(used_at, _)| *used_at);
        self.put(before.saturating_sub(1), known);
    }

    fn put(&mut self, used_at: u64, known: ServerStatement) {
        let number = known.statement.number;
        self.by_use.insert(used_at, number);
        let numbers = self.by_text.entry(known.statement.text.id).or_default();
        let is_older = |other: &&u64| {
            let other = self.by_number.get(other);
            other.is_some_and(|(_, other)| other.parsed_at <= known.parsed_at)
        };
        let at = numbers.iter().take_while(is_older).count();
        numbers.insert(at, number);
        self.by_number.insert(number, (used_at, known));
        self.check();
    }

    /// Each statement has a number, one time at which it was used and a place under its text.
    fn check(&self) {
        assert_eq!(self.by_number.len(), self.by_use.len());
        debug_assert_eq!(
            self.by_number.len(),
            self.by_text.values().map(Vec::len).sum::<usize>()
        );
    }

    /// The server described it: older ones of the same text and shape are of no more use.
    pub fn described(&mut self, statement: &Statement) {
        let Some((_, new)) = self.by_number.get(&statement.number) else {
            return;
        };
        let numbers = self.by_text.get(&statement.text.id);
        let old = numbers.into_iter().flatten().filter(|number| {
            let old = self.by_number.get(number);
            old.is_some_and(|(_, old)| {
                **number != statement.number
                    && old.parsed_at <= new.parsed_at
                    && new.is_shared
                    && old.statement.description() == new.statement.description()
            })
        });
        let old: Vec<u64> = old.copied().collect();
        self.superseded.extend(old);
    }

    /// It does not know it after all, or any more; what it was.
    pub fn forget(&mut self, number: u64) -> Option<ServerStatement> {
        let (used_at, known) = self.by_number.remove(&number)?;
        self.by_use.remove(&used_at);
        if let Some(numbers) = self.by_text.get_mut(&known.statement.text.id) {
            numbers.retain(|other| *other != number);
            if numbers.is_empty() {
                self.by_text.remove(&known.statement.text.id);
            }
        }
        self.check();
        Some(known)
    }

    /// As [`Self::forget`], of one that serves for no other client.
    pub fn forget_own(&mut self, number: u64) -> Option<ServerStatement> {
        let known = self.by_number.get(&number);
        let is_own = known.is_some_and(|(_, known)| !known.is_shared);
        if is_own { self.forget(number) } else { None }
    }

    /// The server has forgotten all (`DEALLOCATE ALL`, `DISCARD ALL`).
    pub fn forget_all(&mut self) {
        *self = Self::new(self.max);
    }

    /// The statement of this number, if it knows it.
    pub fn numbered(&self, number: u64) -> Option<&Arc<Statement>> {
        let known = self.by_number.get(&number);
        known.map(|(_, known)| &known.statement)
    }

    /// How many it knows.
    pub fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Whether it knows none.
    pub fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statements::{Description, Statements};

    #[test]
    fn what_is_described_again_and_again_takes_no_more_room() {
        let (mut all, mut known) = (Statements::default(), ServerStatements::new(10));
        let statements: Vec<Arc<Statement>> = (0..3).map(|_| all.share(b"", b"SELECT 1")).collect();
        for statement in &statements {
            let closed = known.insert(ServerStatement {
                statement: statement.clone(),
                parsed_at: all.made(),
                is_shared: true,
            });
            assert!(closed.is_empty());
            statement.note_description(Description::new(b"\0\0", None));
        }
        for _ in 0..100 {
            known.described(&statements[2]);
        }
        assert_eq!(known.superseded.len(), 2);
        let other = all.share(b"", b"SELECT 2");
        let closed = known.insert(ServerStatement {
            statement: other,
            parsed_at: all.made(),
            is_shared: true,
        });
        assert_eq!(closed.len(), 2);
        assert!(known.superseded.is_empty());
    }
}
