//! What the server is expected to answer, and what is kept until it has: what the client had before,
//! so that it can be taken back.

use super::Rewriter;
use crate::statements::{ServerStatement, Statement};
use std::sync::Arc;

/// What is kept of a message besides the names in it.
const EXPECTED_BYTES: usize = 64;

/// An answer that is expected, where its meaning depends on what was sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// The end of a cycle stands here.
    Cycle,
    /// To Parse: the statement is known from then on.
    Parsed {
        number: Option<u64>,
        /// What the client calls it: not its own if it fails.
        name: Option<Vec<u8>>,
        /// Without a name: the one that it replaces, and that the client keeps where this is
        /// skipped.
        before: Option<Arc<Statement>>,
        /// Whether the server connection has that one.
        is_before_there: bool,
        is_shown: bool,
    },
    /// To Describe of a statement.
    Described(Described),
    /// To Close, which the client has sent.
    Closed {
        /// What it had under that name.
        had: Option<(Vec<u8>, Arc<Statement>)>,
        /// What the server connection knew by it, where that is closed too.
        known: Option<ServerStatement>,
    },
    /// To Close of this statement, or of no statement, which was put in.
    ClosedHidden(Option<ServerStatement>),
    /// To DEALLOCATE: the client's statement is gone when it is done.
    Deallocated(Vec<u8>, Arc<Statement>),
    /// None of its own: the stand-in of this number has the place of the client's statement of this
    /// name, which errors name.
    StandsFor(usize, Vec<u8>),
}

/// A Describe that is on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Described {
    /// `None`: one that the gate does not know.
    pub(super) statement: Option<Arc<Statement>>,
    /// Whether the answer goes to the client.
    pub(super) is_shown: bool,
    /// Whether the client waits for what comes out.
    pub(super) is_check: bool,
}

/// What may stand before an answer that is taken: a batch that never ends is not remembered.
const LEFT_MAX: usize = 64;

impl Rewriter<'_> {
    /// Takes away what a message is the answer to. What only the end of a command or of the cycle
    /// decides stays.
    pub(super) fn take_answered(&mut self) -> Option<Expected> {
        let at = self.left_count();
        if at > LEFT_MAX {
            self.expected.drain(..at - LEFT_MAX);
        }
        self.expected.remove(at.min(LEFT_MAX))
    }

    /// How many before the next answer have none of their own.
    pub(super) fn left_count(&self) -> usize {
        let left = self.expected.iter();
        left.take_while(|expected| expected.is_left()).count()
    }
}

impl Expected {
    /// Whether no message of its own answers it.
    pub(super) fn is_left(&self) -> bool {
        matches!(self, Self::Deallocated(..) | Self::StandsFor(..))
    }

    /// What is kept until it is known.
    pub(super) fn kept_bytes(&self) -> usize {
        let name = match self {
            Self::Parsed { name, .. } => name.as_deref().unwrap_or_default(),
            Self::Closed {
                had: Some((name, _)),
                ..
            }
            | Self::Deallocated(name, _)
            | Self::StandsFor(_, name) => name,
            _ => b"",
        };
        EXPECTED_BYTES + name.len()
    }
}
