//! Prepared statements of clients on server connections that change from transaction to transaction.
//!
//! A client prepares a statement once, under a name of its own, and means it for as long as it is connected. Here equal statements of all clients
//! are one [`Statement`], prepared on a server connection when it is first needed there and under a name that cannot meet another. What a
//! server connection knows is bounded: the statement that was not used for longest is closed there.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock, Weak};

use crate::said::Said;

/// A statement as it was prepared: text, zero and types, as they stand in a Parse.
#[derive(Debug, PartialEq, Eq)]
pub struct Statement {
    number: u64,
    /// Found out when it is asked for.
    said: OnceLock<Said>,
    /// Noted when it is prepared.
    leaves_something: OnceLock<bool>,
    /// Under which it is understood; empty if nobody else has it.
    settings: Vec<u8>,
    /// What stands behind the name in a Parse.
    pub parse_rest: Vec<u8>,
}

impl Statement {
    /// Its name on server connections.
    pub fn server_name(&self) -> Vec<u8> {
        format!("sooner_{}", self.number).into_bytes()
    }

    /// What its text says of the transactions that begin with it.
    pub fn said(&self) -> &Said {
        self.said.get_or_init(|| Said::of(self.text()))
    }

    /// Its text alone.
    pub fn text(&self) -> &[u8] {
        let text = self.parse_rest.split(|byte| *byte == 0).next();
        text.unwrap_or_default()
    }

    /// What its text leaves behind was looked for: whether there is something.
    pub fn note_leaves(&self, leaves_something: bool) {
        // The text is the same, and so is the answer.
        let _ = self.leaves_something.set(leaves_something);
    }

    /// Whether it leaves something behind each time that it is executed, as far as was noted.
    pub fn leaves_something(&self) -> bool {
        self.leaves_something.get().is_some_and(|leaves| *leaves)
    }

    /// Its number among all there have been.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// The statements of all clients; equal ones are the same. Those that no client has any more are forgotten.
#[derive(Debug, Default)]
pub struct Statements {
    by_text: HashMap<Vec<u8>, Weak<Statement>>,
    made: u64,
    kept_bytes: usize,
    /// Bytes of texts that may be there before those that nobody knows are looked for.
    sweep_at_bytes: usize,
}

/// Bytes of texts from which on it is worth looking for forgotten ones.
const SWEEP_MIN_BYTES: usize = 1 << 20;

impl Statements {
    /// The statement of this text and these types, as it is understood under `settings`: what a constant means is settled when it is prepared.
    pub fn share(&mut self, settings: &[u8], parse_rest: &[u8]) -> Arc<Statement> {
        let key = key(settings, parse_rest);
        if let Some(statement) = self.by_text.get(&key).and_then(Weak::upgrade) {
            return statement;
        }
        self.kept_bytes += ENTRY_BYTES + key.len();
        self.sweep();
        let statement = self.make(settings, parse_rest);
        self.by_text.insert(key, Arc::downgrade(&statement));
        statement
    }

    /// A statement that nobody else has.
    pub fn own(&mut self, parse_rest: &[u8]) -> Arc<Statement> {
        self.make(b"", parse_rest)
    }

    /// Whoever prepares it from now on gets another one. Those who have it keep it.
    pub fn retire(&mut self, statement: &Statement) {
        let key = key(&statement.settings, &statement.parse_rest);
        let is_it = |known: &Weak<Statement>| std::ptr::eq(known.as_ptr(), statement);
        if self.by_text.get(&key).is_some_and(is_it) {
            self.by_text.remove(&key);
            self.kept_bytes -= ENTRY_BYTES + key.len();
        }
    }

    fn make(&mut self, settings: &[u8], parse_rest: &[u8]) -> Arc<Statement> {
        self.made += 1;
        Arc::new(Statement {
            number: self.made,
            said: OnceLock::new(),
            leaves_something: OnceLock::new(),
            settings: settings.to_vec(),
            parse_rest: parse_rest.to_vec(),
        })
    }

    /// How many are known.
    pub fn len(&self) -> usize {
        self.by_text.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.by_text.is_empty()
    }

    /// Forgets those that nobody knows when there is twice as much as the last time: a bounded share of the work of making them.
    fn sweep(&mut self) {
        if self.kept_bytes < self.sweep_at_bytes.max(SWEEP_MIN_BYTES) {
            return;
        }
        self.by_text
            .retain(|_, statement| statement.strong_count() > 0);
        let texts = self.by_text.keys();
        self.kept_bytes = texts.map(|key| ENTRY_BYTES + key.len()).sum();
        self.sweep_at_bytes = 2 * self.kept_bytes;
    }
}

fn key(settings: &[u8], parse_rest: &[u8]) -> Vec<u8> {
    [settings, b"\0", parse_rest].concat()
}

/// The statements of one client, by its own names.
#[derive(Debug, Default)]
pub struct ClientStatements {
    by_name: HashMap<Vec<u8>, Arc<Statement>>,
    /// Of names and texts, as if nobody else had the same.
    kept_bytes: usize,
}

/// What a client's statements may have together: what the gate keeps for it is bounded.
const KEPT_BYTES_MAX: usize = 4 << 20;
/// Of a statement beside its text.
const ENTRY_BYTES: usize = 160;

fn entry_bytes(name: &[u8], statement: &Statement) -> usize {
    ENTRY_BYTES + name.len() + statement.parse_rest.len()
}

/// Why a client's statement is refused, as PostgreSQL would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The name is taken (42P05).
    Exists,
    /// There is none of this name (26000).
    Unknown,
}

impl ClientStatements {
    /// It prepares a statement; the one without a name takes the place of the last.
    pub fn prepare(&mut self, name: &[u8], statement: Arc<Statement>) -> Result<(), Refused> {
        if !name.is_empty() && self.by_name.contains_key(name) {
            return Err(Refused::Exists);
        }
        self.close(name);
        self.kept_bytes += entry_bytes(name, &statement);
        self.by_name.insert(name.to_vec(), statement);
        Ok(())
    }

    /// Whether there is room for one more of this length.
    pub fn has_room(&self, parse_rest_bytes: usize) -> bool {
        self.kept_bytes + ENTRY_BYTES + parse_rest_bytes <= KEPT_BYTES_MAX
    }

    /// It means the statement of this name.
    pub fn named(&self, name: &[u8]) -> Result<&Arc<Statement>, Refused> {
        self.by_name.get(name).ok_or(Refused::Unknown)
    }

    /// It needs it no more; what it had. That there was none is no mistake.
    pub fn close(&mut self, name: &[u8]) -> Option<Arc<Statement>> {
        let had = self.by_name.remove(name)?;
        self.kept_bytes -= entry_bytes(name, &had);
        Some(had)
    }

    /// It needs none of them any more (`DEALLOCATE ALL`, `DISCARD ALL`).
    pub fn close_all(&mut self) {
        *self = Self::default();
    }

    /// All that it has.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Statement>> {
        self.by_name.values()
    }

    /// How many it has.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

/// The statements that one server connection knows.
#[derive(Debug)]
pub struct ServerStatements {
    used_at: HashMap<u64, u64>,
    /// What is known here stays shared, so that the next client with the same text finds it.
    by_use: BTreeMap<u64, Arc<Statement>>,
    uses: u64,
    max: usize,
}

/// What to do on a server connection before a statement can be used there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// A statement to close first.
    pub close: Option<Arc<Statement>>,
    /// Whether it is to be prepared.
    pub prepare: bool,
}

impl ServerStatements {
    /// Knows none, and at most `max` (at least one).
    pub fn new(max: usize) -> Self {
        Self {
            used_at: HashMap::new(),
            by_use: BTreeMap::new(),
            // Room for those that come back before the first.
            uses: u64::from(u32::MAX),
            max: max.max(1),
        }
    }

    /// A statement is to be used.
    pub fn use_statement(&mut self, statement: &Arc<Statement>) -> Before {
        self.uses += 1;
        let known = self.used_at.insert(statement.number, self.uses);
        if let Some(used_at) = known {
            self.by_use.remove(&used_at);
        }
        let close = match self.by_use.first_key_value() {
            Some((_, oldest)) if known.is_none() && self.by_use.len() >= self.max => {
                Some(oldest.clone())
            }
            _ => None,
        };
        if let Some(oldest) = &close {
            self.forget(oldest.number);
        }
        self.by_use.insert(self.uses, statement.clone());
        Before {
            close,
            prepare: known.is_none(),
        }
    }

    /// It was not closed after all: the next that is new lets it go before any other.
    pub fn still_knows(&mut self, statement: Arc<Statement>) {
        let oldest = self.by_use.first_key_value();
        let before = oldest
            .map_or(self.uses, |(used_at, _)| *used_at)
            .saturating_sub(1);
        self.used_at.insert(statement.number, before);
        self.by_use.insert(before, statement);
    }

    /// It does not know it after all, or any more.
    pub fn forget(&mut self, number: u64) {
        if let Some(used_at) = self.used_at.remove(&number) {
            self.by_use.remove(&used_at);
        }
    }

    /// The server has forgotten all (`DEALLOCATE ALL`, `DISCARD ALL`).
    pub fn forget_all(&mut self) {
        *self = Self::new(self.max);
    }

    /// Whether it knows the statement of this number.
    pub fn knows(&self, number: u64) -> bool {
        self.used_at.contains_key(&number)
    }

    /// How many it knows.
    pub fn len(&self) -> usize {
        self.used_at.len()
    }

    /// Whether it knows none.
    pub fn is_empty(&self) -> bool {
        self.used_at.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn equal_statements_of_all_clients_are_one() {
        let mut all = Statements::default();
        let (one, same, other) = (
            all.share(b"", b"SELECT 1\0\0\0"),
            all.share(b"", b"SELECT 1\0\0\0"),
            all.share(b"", b"SELECT 2\0\0\0"),
        );
        assert!(Arc::ptr_eq(&one, &same));
        assert_ne!(one.server_name(), other.server_name());
        drop((one, same));
        // a name is never used again: a server connection may still know the old one
        assert_eq!(all.share(b"", b"SELECT 1\0\0\0").server_name(), b"sooner_3");
    }

    #[test]
    fn what_no_client_has_is_forgotten() {
        let mut all = Statements::default();
        for number in 0..100_000 {
            all.share(b"", format!("SELECT {number}").as_bytes());
        }
        assert!(all.len() * ENTRY_BYTES <= SWEEP_MIN_BYTES, "{}", all.len());
        // settings that change what a constant means make another statement of the same text
        let [utc, tokyo] = [b"UTC", b"JST"].map(|zone| all.share(zone, b"SELECT 1"));
        assert_ne!(utc.server_name(), tokyo.server_name());
    }

    #[test]
    fn a_client_has_names_of_its_own() {
        let (mut all, mut client) = (Statements::default(), ClientStatements::default());
        let [one, two] = [b"1", b"2"].map(|text| all.share(b"", text));
        assert_eq!(client.prepare(b"a", one.clone()), Ok(()));
        assert_eq!(client.prepare(b"a", two.clone()), Err(Refused::Exists));
        assert_eq!(client.named(b"a"), Ok(&one));
        assert_eq!(client.named(b"b"), Err(Refused::Unknown));
        // the one without a name gives way
        assert_eq!(client.prepare(b"", one), Ok(()));
        assert_eq!(client.prepare(b"", two.clone()), Ok(()));
        assert_eq!(client.named(b""), Ok(&two));
        client.close(b"a");
        client.close(b"a");
        assert_eq!(client.len(), 1);
    }

    #[test]
    fn what_is_kept_for_a_client_is_bounded() {
        let (mut all, mut client) = (Statements::default(), ClientStatements::default());
        let mut prepared = 0_u32;
        while client.has_room(1000) {
            let text = format!("{prepared:01000}");
            let statement = all.share(b"", text.as_bytes());
            assert_eq!(client.prepare(&prepared.to_be_bytes(), statement), Ok(()));
            prepared += 1;
        }
        assert!((3000..4500).contains(&prepared), "{prepared}");
        for number in 0..prepared {
            client.close(&number.to_be_bytes());
        }
        assert_eq!(client.kept_bytes, 0);
        // preparing the same again takes no more
        for _ in 0..3 {
            assert_eq!(client.prepare(b"", all.share(b"", b"text")), Ok(()));
        }
        assert_eq!(client.kept_bytes, ENTRY_BYTES + 4);
    }

    /// Plays uses of statements on one server connection: `+` prepared, `-N` closed before, `.` known.
    fn played(max: usize, uses: &[usize]) -> String {
        let mut all = Statements::default();
        let statements: Vec<_> = (0..10).map(|text| all.share(b"", &[text])).collect();
        let mut server = ServerStatements::new(max);
        let step = |index: &usize| {
            let before = server.use_statement(&statements[*index]);
            let closed = before.close.map(|closed| format!("-{}", closed.number - 1));
            closed.unwrap_or_default() + if before.prepare { "+" } else { "." }
        };
        uses.iter().map(step).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_statement_that_was_not_used_for_longest_gives_way() {
        assert_eq!(played(2, &[0, 1, 0, 2, 1, 0]), "+ + . -1+ -0+ -2+");
        assert_eq!(played(1, &[0, 0, 1]), "+ . -0+");
    }

    #[test]
    fn what_a_failed_cycle_did_not_do_is_not_believed() {
        let mut all = Statements::default();
        let [first, second] = [b"1", b"2"].map(|text| all.share(b"", text));
        let mut server = ServerStatements::new(1);
        server.use_statement(&first);
        let before = server.use_statement(&second);
        assert_eq!(before.close.as_ref(), Some(&first));
        // neither was the second prepared nor the first closed
        server.forget(second.number);
        server.still_knows(first.clone());
        assert_eq!(server.use_statement(&first), Before::default());
        assert_eq!(server.use_statement(&second).close, Some(first));
    }

    proptest! {
        #[test]
        fn a_server_connection_knows_what_was_prepared_and_not_closed(
            max in 1_usize..5,
            uses in prop::collection::vec(0_u8..8, 0..60),
        ) {
            let mut all = Statements::default();
            let statements: Vec<_> = (0..8).map(|text| all.share(b"", &[text])).collect();
            let mut server = ServerStatements::new(max);
            let mut model: HashSet<u64> = HashSet::new();
            for index in uses {
                let statement = &statements[usize::from(index)];
                let before = server.use_statement(statement);
                if let Some(closed) = before.close {
                    prop_assert!(model.remove(&closed.number));
                }
                prop_assert_eq!(before.prepare, model.insert(statement.number));
                prop_assert!(model.len() <= max);
                prop_assert_eq!(model.len(), server.len());
            }
        }
    }
}
