//! What a client's commands may do that outlasts it: where it leaves, they are not cancelled.

use super::Rewriter;
use crate::sql;
use crate::statements::Statement;
use std::sync::Arc;

/// What commands may do that were sent since all was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effects {
    /// Whether a transaction is open behind them, so that what follows commits nothing by itself.
    is_open: bool,
    /// They may commit something.
    commits: bool,
}

impl Effects {
    /// None so far, in a transaction or in none.
    pub fn none(is_open: bool) -> Self {
        Self {
            is_open,
            commits: false,
        }
    }

    /// Adds those of a query, of which this may be the beginning only. Whether it may be a COPY.
    pub fn add_query(&mut self, sql: &[u8], is_whole: bool) -> bool {
        let mut may_copy = !is_whole;
        for word in sql::first_words(sql) {
            may_copy |= self.add(word);
            self.is_open |= sql::begins_transaction(word);
        }
        if !is_whole {
            *self = Self::UNKNOWN;
        }
        may_copy
    }

    const UNKNOWN: Self = Self {
        is_open: false,
        commits: true,
    };

    fn add(&mut self, first: &[u8]) -> bool {
        self.commits |= sql::commits(first) || !(self.is_open || sql::only_reads(first));
        // ROLLBACK TO leaves it open; to believe otherwise costs nothing but time.
        self.is_open &= !sql::ends_transaction(first);
        first.eq_ignore_ascii_case(b"copy")
    }
}

impl Rewriter<'_> {
    /// Notes what a prepared statement may do that is bound.
    pub(super) fn note_commits(&mut self, statement: Option<&Arc<Statement>>) {
        match statement {
            Some(statement) => {
                for word in statement.first_words() {
                    // Settings may be again what they were before it.
                    self.is_context_open |= sql::ends_transaction(word);
                    self.may_bind_copy |= self.effects.add(word);
                    self.effects.is_open |= sql::begins_transaction(word);
                }
            }
            None => {
                self.is_context_open = true;
                self.effects = Effects::UNKNOWN;
                self.may_bind_copy = true;
            }
        }
    }

    /// Whether a commit may be lost where what runs is cancelled.
    pub fn may_commit(&self) -> bool {
        !self.pipeline.is_answered() && self.effects.commits
    }

    /// Whether the server has nothing to do before more comes.
    pub fn is_settled(&self) -> bool {
        self.pipeline.is_settled()
    }

    /// Whether the server reads rows of a COPY.
    pub fn is_copying(&self) -> bool {
        self.pipeline.is_copying()
    }

    /// Whether what was sent so far leaves its last cycle open.
    pub fn is_unsynced(&self) -> bool {
        self.pipeline.is_unsynced()
    }

    /// Nothing more comes: the server is to answer what it has.
    pub fn flush(&mut self, out: &mut bytes::BytesMut) {
        if self.pipeline.wants_flush() {
            self.hurry(out);
        }
    }
}
