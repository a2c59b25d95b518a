//! What a message depends on that is not answered yet.
//!
//! What is believed of a statement while its Parse or Close is on its way is right for what follows
//! in the same cycle: where the one fails the others are skipped. What follows in a later cycle is
//! not, so it has to wait for the answer.

use super::expected::Expected;
use super::from_client::ends_cycle;
use super::{NO_STATEMENT, Rewriter};
use crate::pipeline::Verdict;
use crate::statements::Statement;
use crate::wire::{FrontendMessage, Part, Piece, Target, write_close_statement, write_sync};
use bytes::BytesMut;
use std::sync::Arc;

impl Rewriter<'_> {
    /// Whether a piece from the client cannot be taken yet, because an answer decides what it
    /// means. What makes the server give that is written to `out`.
    pub fn must_wait(&mut self, piece: &Piece<'_>, out: &mut BytesMut) -> bool {
        if piece.part == Part::More {
            return false;
        }
        match self.pipeline.verdict(piece.tag) {
            Verdict::Wait { flush } => {
                if flush {
                    self.flush(out);
                }
                true
            }
            // What it knows afterwards is known when it has answered.
            Verdict::Pass if self.must_learn() => true,
            Verdict::Pass if self.may_be_forgotten(piece.tag) => {
                self.flush(out);
                true
            }
            // A query behind a Describe of ours that fails would be skipped, and never answered.
            Verdict::Pass if self.undescribed.is_some() && ends_cycle(piece.tag) => {
                self.describe_what_was_prepared(None, out);
                self.flush(out);
                self.holds_query = true;
                true
            }
            Verdict::Pass if self.depends_on_failure(piece) => {
                self.flush(out);
                true
            }
            Verdict::Pass if self.pipeline.is_answered() || !self.is_undecided(piece) => false,
            // While a COPY reads rows no answer comes that could decide it.
            Verdict::Pass if !self.pipeline.is_copying() => true,
            Verdict::Drop => false,
            Verdict::Pass | Verdict::Probe => {
                self.pipeline.probed();
                self.wants_probe = true;
                self.follow_up(out);
                true
            }
        }
    }

    /// Sends what the server is to be asked now that it has answered: how many of the Syncs between
    /// the rows of a COPY it did not read as such.
    pub fn follow_up(&mut self, out: &mut BytesMut) {
        if std::mem::take(&mut self.wants_probe) {
            write_sync(out);
            write_close_statement(out, NO_STATEMENT);
            write_sync(out);
        }
    }

    /// Whether the server may forget every statement by what it has not answered yet.
    fn must_learn(&self) -> bool {
        self.forgets && self.pipeline.unanswered_cycles() > 0 && !self.pipeline.is_copying()
    }

    /// Whether what was executed in this cycle may make the server forget every statement, so that
    /// what follows means something else behind it.
    fn may_be_forgotten(&self, tag: u8) -> bool {
        self.forgets
            && tag != b'S'
            && !self.pipeline.is_copying()
            && self.pipeline.has_unanswered_execute()
    }

    /// Whether it describes what the server connection lacks, and how depends on whether the
    /// transaction will have failed.
    fn depends_on_failure(&self, piece: &Piece<'_>) -> bool {
        // While a COPY reads rows nothing tells, and what is no row ends the session.
        if piece.tag != b'D' || self.pipeline.is_copying() || self.pipeline.has_failed().is_some() {
            return false;
        }
        match FrontendMessage::read(piece.tag, piece.body(), piece.is_last) {
            Ok(FrontendMessage::Describe(Target::Statement, name)) => {
                self.absent_without_rows(name).is_some()
            }
            _ => false,
        }
    }

    /// Whether an earlier cycle that is not answered decides what a message means.
    fn is_undecided(&self, piece: &Piece<'_>) -> bool {
        let is_cycle = |expected: &Expected| *expected == Expected::Cycle;
        let Some(end) = self.expected.iter().rposition(is_cycle) else {
            return false;
        };
        let message = FrontendMessage::read(piece.tag, piece.body(), piece.is_last);
        match message {
            // How it is prepared depends on whether the transaction has failed, and whether another
            // of this text was.
            Ok(FrontendMessage::Parse { name, .. }) => !name.is_empty(),
            Ok(
                FrontendMessage::Bind {
                    statement: name, ..
                }
                | FrontendMessage::Describe(Target::Statement, name),
            ) => {
                self.is_pending(end, name)
                    || self.would_let_go(end, name)
                    || (self.names_others(name)
                        && self.expected.range(..end).any(Expected::is_about_a_name))
            }
            Ok(FrontendMessage::Close(Target::Statement, name)) => self.is_pending(end, name),
            // It takes the place of the statement without a name, unless that is given back, and
            // may name others.
            Ok(FrontendMessage::Query(_)) => {
                self.is_pending(end, b"")
                    || self.expected.range(..end).any(Expected::is_about_a_name)
            }
            _ => false,
        }
    }

    /// Whether the statement of this name names others.
    fn names_others(&self, name: &[u8]) -> bool {
        let statement = self.client.statements.named(name);
        statement.is_ok_and(|statement| statement.effects().names_statements)
    }

    /// Whether the statement of this name would be prepared, for which another one may have to go:
    /// which, depends on what the first `end` fates are about.
    fn would_let_go(&self, end: usize, name: &[u8]) -> bool {
        let statement = self.client.statements.named(name).ok();
        let is_new = |statement| self.server.statements.find(statement).is_none();
        statement.is_some_and(|statement| is_new(statement))
            && self
                .expected
                .range(..end)
                .any(|expected| expected.number().is_some())
    }

    /// Whether a name of the client's, or what it stands for, is in what the first `end` fates are
    /// about, and the name in none behind them.
    fn is_pending(&self, end: usize, name: &[u8]) -> bool {
        let statement = self.client.statements.named(name).ok();
        let known = statement.and_then(|statement| self.server.statements.find(statement));
        let numbers = [statement, known].map(|one| one.map(|statement| statement.number()));
        let is_renewed = || {
            self.expected
                .range(end..)
                .any(|expected| expected.is_about(name))
        };
        let names = |expected: &Expected| expected.is_about(name);
        let mut earlier = self.expected.range(..end);
        let is_number = |expected: &Expected| {
            expected.number().is_some() && numbers.contains(&expected.number())
        };
        earlier.clone().any(is_number) || (earlier.any(names) && !is_renewed())
    }
}

impl Expected {
    /// Whether it decides what a client's name means.
    pub(super) fn is_about(&self, name: &[u8]) -> bool {
        match self {
            Self::Parsed { name: own, .. } => own.as_deref() == Some(name),
            Self::Closed {
                had: Some((own, _)),
                ..
            }
            | Self::Deallocated(own, _) => own == name,
            _ => false,
        }
    }

    /// Of one about the statement without a name: this one was there before it.
    pub(super) fn comes_after(&mut self, statement: &Option<Arc<Statement>>) {
        match self {
            Self::Parsed { before, .. } => before.clone_from(statement),
            Self::Closed { had, .. } => *had = statement.clone().map(|had| (Vec::new(), had)),
            _ => {}
        }
    }

    /// Whether it decides what any name but the empty one means.
    fn is_about_a_name(&self) -> bool {
        match self {
            Self::Parsed {
                name: Some(own), ..
            }
            | Self::Closed {
                had: Some((own, _)),
                ..
            }
            | Self::Deallocated(own, _) => !own.is_empty(),
            _ => false,
        }
    }

    /// The statement that a server connection will know, or will not.
    fn number(&self) -> Option<u64> {
        match self {
            Self::Parsed { number, .. } => *number,
            Self::ClosedHidden(Some(known))
            | Self::Closed {
                known: Some(known), ..
            } => Some(known.statement.number()),
            _ => None,
        }
    }
}
