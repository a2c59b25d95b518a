//! A client's turn on a server connection, as messages: what of each side goes to the other, and
//! what is put in or left out.
//!
//! Statements prepared by name are the only thing that is changed on the way (`prepared`,
//! `by_sql`). On the server connection they have names of ours, because clients choose the same
//! names for different statements. Every Parse goes to the server. Where a statement is used that
//! the connection does not know, the exchange prepares it first, leaves out the answers and takes
//! no more from the client until it has seen that the statement is still what the client was told.
//! Every mistake, like a statement that does not exist, is left to the server to say; names of ours
//! in what it says become the client's (`errors`).

mod commits;
mod contexts;
mod errors;
mod expected;
mod from_client;
mod from_server;
mod pending;
mod positions;
mod prepared;
mod session_changes;
mod sql_commands;

use crate::cycle;
use crate::hints::{Hints, hints_of};
use crate::pipeline::{OutOfStep, Pipeline, Sent};
use crate::session::{ClientState, ServerState};
use crate::sql::Tie;
use crate::statements::{Statement, StatementCounts, Statements};
use crate::wire::{Malformed, write_flush};
use bytes::BytesMut;
use commits::Effects;
pub use errors::{CANCELLED, PREEMPTED};
use expected::{Described, Expected};
use positions::Texts;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

/// Closed where something has to be answered and nothing is to be done: numbers begin at 1.
const NO_STATEMENT: &[u8] = b"sooner_0";

/// What became of a message of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// It was taken.
    Yes,
    /// The server's answer to what was written decides what becomes of it: it is to be shown again.
    NotYet,
}

/// Why a turn cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// The client has sent what is no message.
    #[error("a message is malformed: {0}")]
    Client(Malformed),
    /// The server has.
    #[error("the server's message is malformed: {0}")]
    Server(Malformed),
    /// The server has answered a question that was not asked.
    #[error(transparent)]
    OutOfStep(#[from] OutOfStep),
}

/// What names on server connections begin with.
const OURS: &[u8] = b"sooner_";

/// Whether a name may be one of those that statements have on server connections: no client has one
/// of these.
fn is_ours(name: &[u8]) -> bool {
    name.starts_with(OURS)
}

/// There is no such statement, or one of this name already: the client is wrong, or what is believed
/// here.
const STATEMENT_ERRORS: [&[u8]; 2] = [b"26000", b"42P05"];

/// A turn.
pub struct Rewriter<'a> {
    client: &'a mut ClientState,
    server: &'a mut ServerState,
    all: &'a RefCell<Statements>,
    pipeline: Pipeline,
    expected: VecDeque<Expected>,
    /// Answered.
    cycles: u64,
    /// Whether the client said that it leaves.
    is_left: bool,
    /// Whether the rest of a message of the client is left out.
    drops: bool,
    /// Whether the rest of a message of the server is left out.
    skips: bool,
    /// Whether a probe is to be sent.
    wants_probe: bool,
    /// What the client's commands since the server was last ready may do.
    effects: Effects,
    /// Whether a portal of this turn may be a COPY.
    may_bind_copy: bool,
    /// Whether the server's last error was that it ends the session (57P01 and its like).
    has_said_goodbye: bool,
    /// Whether something failed because it was in the way of others (SQLSTATE class 40).
    has_conflicted: bool,
    /// Whether the gate has the server cancel what runs, because another transaction matters more.
    is_preempted: bool,
    /// Whether SET LOCAL was said.
    has_local_settings: bool,
    /// Whether what decides what a statement means when it is prepared may be other than the server
    /// has reported, which from PostgreSQL 14 on it does when it is ready: a command since then
    /// names such a setting, or ends a transaction that may have set some.
    is_context_open: bool,
    /// Whether a command that is not answered may make the server forget every statement.
    forgets: bool,
    /// A word for its transactions that the client has said, or that it takes back; it counts when
    /// the turn is over.
    says_class: Option<Option<String>>,
    /// What the client has just prepared, to be described before anything else if it does not do
    /// that itself.
    undescribed: Option<Arc<Statement>>,
    /// The number of the statement that is being prepared for a message that waits.
    awaited: Option<u64>,
    /// The number of one that came out otherwise than the client was told.
    changed: Option<u64>,
    /// Whether the next error is about that.
    says_changed: bool,
    /// What is being described, and its parameters.
    describing: Option<(Described, Option<Vec<u8>>)>,
    /// Whether a query waits for the answer to a message of ours.
    holds_query: bool,
    /// Whether a query is being taken.
    is_in_query: bool,
    /// The cycles in which the server was made to answer earlier than the client made it.
    hurried: VecDeque<u64>,
    /// How many messages the client had sent when it said Flush last.
    flushed_count: u64,
    /// Whether the server has sent all it had with what it said last, or the client's Flush has
    /// come since.
    is_flushed: bool,
    /// The texts with names of ours, for the positions of errors.
    texts: Texts,
}

impl<'a> Rewriter<'a> {
    /// At its beginning.
    pub fn new(
        client: &'a mut ClientState,
        server: &'a mut ServerState,
        all: &'a RefCell<Statements>,
    ) -> Self {
        if client.has_temporary_path {
            client.note_tie(Tie::Temporary);
            server.has_used_temporary = true;
        }
        server.is_used = true;
        Self {
            client,
            server,
            all,
            pipeline: Pipeline::default(),
            expected: VecDeque::new(),
            cycles: 0,
            is_left: false,
            drops: false,
            skips: false,
            wants_probe: false,
            effects: Effects::default(),
            may_bind_copy: false,
            has_said_goodbye: false,
            has_conflicted: false,
            is_preempted: false,
            has_local_settings: false,
            is_context_open: false,
            forgets: false,
            says_class: None,
            undescribed: None,
            awaited: None,
            changed: None,
            says_changed: false,
            describing: None,
            holds_query: false,
            is_in_query: false,
            hurried: VecDeque::new(),
            flushed_count: 0,
            is_flushed: false,
            texts: Texts::default(),
        }
    }

    /// Whether the server connection is free, as far as the protocol goes.
    pub fn is_over(&self) -> bool {
        self.pipeline.is_over()
    }

    /// Whether the server has answered everything.
    pub fn is_answered(&self) -> bool {
        self.pipeline.is_answered()
    }

    /// Whether a transaction is open and nothing is asked of it. PostgreSQL has one open from the
    /// first message of a batch to its Sync.
    pub fn is_idle_in_transaction(&self) -> bool {
        let is_open = !self.pipeline.is_idle() || self.pipeline.is_unsynced();
        is_open && self.pipeline.is_answered()
    }

    /// Whether the server says what comes next because of a Flush of the gate's own: that stays
    /// here until the server would send it, because clients take CommandComplete for what has been
    /// committed.
    pub fn is_hurried(&self) -> bool {
        self.hurried.front() == Some(&self.cycles)
            && self.pipeline.answered_count() >= self.flushed_count
    }

    /// Whether all that was said so far is the client's, by its own Flush or because the server
    /// sends it unasked.
    pub fn is_flushed(&self) -> bool {
        self.is_flushed
    }

    /// Notes that what the client's own Flush requested has come with the message that came last.
    fn note_flushed(&mut self, answered_before: u64) {
        let wanted = self.flushed_count;
        self.is_flushed |= answered_before < wanted && self.pipeline.answered_count() >= wanted;
    }

    /// The server is to answer now.
    fn hurry(&mut self, out: &mut BytesMut) {
        write_flush(out);
        self.pipeline.flushed();
        let cycle = self.cycle();
        if self.hurried.back() != Some(&cycle) {
            self.hurried.push_back(cycle);
        }
    }

    /// The number of the cycle that is being sent.
    fn cycle(&self) -> u64 {
        self.cycles + self.pipeline.unanswered_cycles() as u64
    }

    /// Whether the client has been told by the server that its session ends.
    pub fn has_said_goodbye(&self) -> bool {
        self.has_said_goodbye
    }

    /// Whether the transaction failed because it was in the way of others: its client will try it
    /// again.
    pub fn has_conflicted(&self) -> bool {
        self.has_conflicted
    }

    /// The gate has the server cancel what runs: the client is to hear why.
    pub fn preempt(&mut self) {
        self.is_preempted = true;
    }

    /// Whether this, with which a turn begins, can be sent again as if it had not been.
    pub fn is_repeatable(&self, input: &[u8]) -> bool {
        // Such texts are not looked at closely.
        let is_plain = !(self.has_escapes() && input.contains(&b'\\'));
        let encoding = self.encoding();
        is_plain
            && self.pipeline.is_over()
            && cycle::is_repeatable(input, &self.client.statements, encoding)
    }

    /// The server connection is in a transaction that has failed, which is the client's.
    pub fn begin_failed(&mut self) {
        self.pipeline.begin_failed();
        self.effects = Effects::none(true);
    }

    /// How many commands and their like were answered.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// What the client says of its transaction in what it has sent.
    pub fn hints(&self, input: &[u8]) -> Hints {
        hints_of(input, &self.client.statements)
    }

    /// Whether what came last from the client is left out.
    pub fn passes_over(&self) -> bool {
        self.drops && !self.is_left
    }

    /// Whether the client said that it leaves.
    pub fn is_left(&self) -> bool {
        self.is_left
    }

    /// Believes in what a message that was sent will do, and keeps what is to become of it.
    fn push(&mut self, expected: Expected) {
        let sent = match &expected {
            Expected::Parsed { .. } => Sent::Parse,
            Expected::Described(_) => Sent::Describe,
            _ => Sent::Close,
        };
        self.pipeline.sent(sent, expected.kept_bytes());
        self.expected.push_back(expected);
    }

    /// What holds between two messages: the ends of cycles that are expected are those that the
    /// server has yet to answer, and behind the last answer nothing is expected.
    fn check(&self) {
        if self.pipeline.is_lost() {
            return;
        }
        debug_assert_eq!(
            self.expected
                .iter()
                .filter(|expected| **expected == Expected::Cycle)
                .count(),
            self.pipeline.unanswered_cycles()
        );
        debug_assert!(!self.pipeline.is_over() || self.expected.is_empty());
        debug_assert!(!self.pipeline.is_over() || self.awaited.is_none());
    }

    fn push_cycle(&mut self, sent: Sent) {
        if self.pipeline.sent(sent, 0) {
            self.expected.push_back(Expected::Cycle);
        }
    }

    fn count(&self, note: impl FnOnce(&mut StatementCounts)) {
        let mut named = self.client.statement_counts.take();
        note(&mut named);
        self.client.statement_counts.set(named);
    }
}

#[cfg(test)]
mod tests;
