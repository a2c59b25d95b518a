//! Prepared statements of clients on server connections that change from transaction to
//! transaction.
//!
//! Each Parse of a client goes to its server, because only the server knows what a text means now:
//! tables, types and functions change. What it said of the statement then, its parameters and
//! columns, is the statement's [`Description`]. A server connection that the statement was not
//! prepared on may have an equal one: of the same [`Text`], of the same shape, and prepared no
//! earlier than the client's own. Everything else is prepared there first, with the parameter types
//! that the client was told, as PostgreSQL does when it plans a statement anew.

mod client;
mod description;
mod server;

use crate::hints::Hints;
use crate::parameters::ParseContext;
use crate::sql;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

pub use client::{ClientStatements, Refused};
pub use description::Description;
pub use server::{ServerStatement, ServerStatements};

/// A text with the types that clients declare, as it stands in a Parse, under settings that decide
/// what it means.
#[derive(Debug)]
pub struct Text {
    id: u64,
    /// The settings under which it is understood and a zero, where other clients may share it, and
    /// what stands behind the name in a Parse.
    key: Arc<[u8]>,
    /// Where the latter begins.
    rest_at: usize,
    /// Read when it is needed first.
    hints: OnceLock<Hints>,
    /// Noted at its first Parse.
    effects: OnceLock<TextEffects>,
    /// What is read of it, where that is not what the client sent.
    read: OnceLock<Vec<u8>>,
    /// Of each of its commands; read when they are needed first.
    first_words: OnceLock<Vec<Vec<u8>>>,
}

impl Text {
    /// Whether a Parse under these settings gives what other clients may share.
    pub fn is_shared_under(&self, settings: &[u8]) -> bool {
        let settings_end = self.rest_at.checked_sub(1);
        settings_end.is_some_and(|end| self.key[..end] == *settings)
    }

    /// What stands behind the name in a Parse.
    fn parse_rest(&self) -> &[u8] {
        &self.key[self.rest_at..]
    }

    /// What is kept of it, with all that may be read off it.
    fn kept_bytes(&self) -> usize {
        let read_bytes = self.read.get().map_or(0, Vec::len);
        self.key.len() + read_bytes + self.key.len().min(READ_OFF_BYTES_MAX)
    }
}

/// What executing a text may do besides its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextEffects {
    /// It leaves something behind in the session.
    pub changes_session: bool,
    /// It names prepared statements (EXECUTE, DEALLOCATE, PREPARE).
    pub names_statements: bool,
}

/// What was done with prepared statements that have a name, how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatementCounts {
    /// Clients have prepared one.
    pub by_clients: u64,
    /// The gate has prepared one on a server connection.
    pub at_servers: u64,
    /// One was bound.
    pub bound: u64,
}

impl StatementCounts {
    /// The sum of both.
    pub fn with(&self, other: &Self) -> Self {
        Self {
            by_clients: self.by_clients + other.by_clients,
            at_servers: self.at_servers + other.at_servers,
            bound: self.bound + other.bound,
        }
    }

    /// What has come since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            by_clients: self.by_clients - before.by_clients,
            at_servers: self.at_servers - before.at_servers,
            bound: self.bound - before.bound,
        }
    }
}

/// A statement as one client prepared it.
#[derive(Debug)]
pub struct Statement {
    /// Later statements have higher numbers.
    number: u64,
    text: Arc<Text>,
    description: OnceLock<Description>,
    /// Under which its constants were read, where they depend on that and it is known.
    context: OnceLock<Arc<ParseContext>>,
}

impl PartialEq for Statement {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Statement {}

impl Statement {
    /// Its name on server connections.
    pub fn server_name(&self) -> Vec<u8> {
        server_name(self.number)
    }

    /// What its text says of the transactions that begin with it.
    pub fn hints(&self) -> &Hints {
        self.text.hints.get_or_init(|| Hints::of(self.sql()))
    }

    /// Its text with what belongs to it.
    pub fn text(&self) -> &Arc<Text> {
        &self.text
    }

    /// Its text alone.
    pub fn sql(&self) -> &[u8] {
        let text = self.text.parse_rest().split(|byte| *byte == 0).next();
        text.unwrap_or_default()
    }

    /// Its text as it reads with standard_conforming_strings on.
    pub fn read(&self) -> &[u8] {
        self.text.read.get().map_or(self.sql(), Vec::as_slice)
    }

    /// Notes that its text reads otherwise than the client wrote it.
    pub fn note_read(&self, text: Vec<u8>) {
        // The text and the settings are the same, and so is the answer.
        let _ = self.text.read.set(text);
    }

    /// The first words of its commands.
    pub fn first_words(&self) -> &[Vec<u8>] {
        let words = || sql::first_words(self.read());
        let words = || words().map(<[u8]>::to_vec).collect();
        self.text.first_words.get_or_init(words)
    }

    /// What stands behind the name in a Parse: with the types that the client was told, else those
    /// that it declared.
    pub fn parse_rest(&self) -> Vec<u8> {
        match self.description.get() {
            Some(description) => [self.sql(), b"\0", description.parameters()].concat(),
            None => self.text.parse_rest().to_vec(),
        }
    }

    /// Notes what executing it may do.
    pub fn note_effects(&self, effects: TextEffects) {
        // The text is the same, and so is the answer.
        let _ = self.text.effects.set(effects);
    }

    /// What executing it may do each time, as far as was noted.
    pub fn effects(&self) -> TextEffects {
        self.text.effects.get().copied().unwrap_or_default()
    }

    /// Notes under which settings its constants were read.
    pub fn note_context(&self, context: Arc<ParseContext>) {
        let _ = self.context.set(context);
    }

    /// The settings under which its constants were read, where they depend on that and it is known.
    pub fn context(&self) -> Option<&ParseContext> {
        self.context.get().map(|context| &**context)
    }

    /// What stands behind its text in a Parse, as the client sent it.
    pub fn types(&self) -> &[u8] {
        &self.text.parse_rest()[self.sql().len()..]
    }

    /// Whether a client that has either may be given the other.
    pub fn is_equal(&self, other: &Statement) -> bool {
        self.text.id == other.text.id && self.description.get() == other.description.get()
    }

    /// Its number among all there have been.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What the client was told of it; `None` until the server has said so.
    pub fn description(&self) -> Option<&Description> {
        self.description.get()
    }

    /// The server described it; what was noted first stays.
    pub fn note_description(&self, description: Description) {
        let _ = self.description.set(description);
    }
}

/// A statement's name on server connections; numbers begin at 1.
pub fn server_name(number: u64) -> Vec<u8> {
    format!("sooner_{number}").into_bytes()
}

/// The texts of all clients; equal ones are the same. Those that no client has any more are
/// forgotten.
#[derive(Debug, Default)]
pub struct Statements {
    by_text: HashMap<Arc<[u8]>, Weak<Text>>,
    texts: u64,
    made: u64,
    kept_bytes: usize,
    /// Bytes of texts that may be there before unused ones are looked for.
    sweep_at_bytes: usize,
}

/// Bytes of texts from which on it is worth looking for unused ones.
const SWEEP_MIN_BYTES: usize = 1 << 20;
/// Of a statement beside its text.
const ENTRY_BYTES: usize = 240;
/// The most that is read off a text besides: its shape, and the tags of its comments.
const READ_OFF_BYTES_MAX: usize = 4 << 10;

impl Statements {
    /// A statement of this text and these types, as it is understood under `settings`: a constant's
    /// meaning is settled by Parse.
    pub fn share(&mut self, settings: &[u8], parse_rest: &[u8]) -> Arc<Statement> {
        let key = [settings, b"\0", parse_rest].concat();
        if let Some(text) = self.by_text.get(key.as_slice()).and_then(Weak::upgrade) {
            return self.make(text);
        }
        self.kept_bytes += ENTRY_BYTES + key.len();
        self.sweep();
        // A map keeps the key that it has, and the text would not be the same bytes.
        self.by_text.remove(key.as_slice());
        let text = self.text(key.into(), settings.len() + 1);
        self.by_text.insert(text.key.clone(), Arc::downgrade(&text));
        self.make(text)
    }

    /// A statement of a text that no other client shares.
    pub fn own(&mut self, parse_rest: &[u8]) -> Arc<Statement> {
        let text = self.text(parse_rest.into(), 0);
        self.make(text)
    }

    /// The number of a statement that is not kept.
    pub fn next_number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// How many statements were made: a Parse sent now is no older than any of them.
    pub fn made(&self) -> u64 {
        self.made
    }

    fn text(&mut self, key: Arc<[u8]>, rest_at: usize) -> Arc<Text> {
        self.texts += 1;
        Arc::new(Text {
            id: self.texts,
            key,
            rest_at,
            hints: OnceLock::new(),
            effects: OnceLock::new(),
            read: OnceLock::new(),
            first_words: OnceLock::new(),
        })
    }

    fn make(&mut self, text: Arc<Text>) -> Arc<Statement> {
        Arc::new(Statement {
            number: self.next_number(),
            text,
            description: OnceLock::new(),
            context: OnceLock::new(),
        })
    }

    /// How many texts are known.
    pub fn len(&self) -> usize {
        self.by_text.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.by_text.is_empty()
    }

    /// Forgets unused texts when there is twice as much as the last time: a bounded share of the
    /// work of making them.
    fn sweep(&mut self) {
        if self.kept_bytes < self.sweep_at_bytes.max(SWEEP_MIN_BYTES) {
            return;
        }
        self.by_text.retain(|_, text| text.strong_count() > 0);
        let texts = self.by_text.keys();
        self.kept_bytes = texts.map(|key| ENTRY_BYTES + key.len()).sum();
        self.sweep_at_bytes = 2 * self.kept_bytes;
    }
}

#[cfg(test)]
mod tests;
