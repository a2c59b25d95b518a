//! What a client and a server connection have from one turn to the next.

use super::changes::{PossibleChanges, Ties};
use super::prepared_here::PreparedHere;
use crate::parameters::{Parameters, ParseContext, RequestedParameters};
use crate::sql::Tie;
use crate::statements::{ClientStatements, ServerStatements, Statement, StatementCounts};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Why a client keeps its server connection that has not said what was changed there.
const UNKNOWN_SETTINGS: &str = "settings that the server has not told";

/// What a client has between its turns.
#[derive(Debug, Default)]
pub struct ClientState {
    /// Its prepared statements.
    pub statements: ClientStatements,
    /// The settings when it last prepared one with constants that depend on them.
    pub context: Option<Arc<ParseContext>>,
    /// Settings that were reported to it last, by name.
    pub reported: Parameters,
    /// Settings that are not reported, as the server has them for it, by name in lower case.
    pub unreported: Parameters,
    /// Why it keeps its server connection until it leaves or discards everything; `None` if it
    /// does not.
    pub pinned_by: Option<&'static str>,
    /// What else ties it to its server connection.
    pub ties: Ties,
    /// Whether its search_path may have new tables made temporary ones.
    pub has_temporary_path: bool,
    /// Whether it may have used temporary tables itself.
    pub has_used_temporary: bool,
    /// What its statements leave behind that only its server connection knows.
    pub prepared_here: PreparedHere,
    /// What the server is to be asked when the turn is over.
    pub changes: PossibleChanges,
    /// Its word for its transactions, as it said it last.
    pub session_class: Option<String>,
    /// What was done with its statements that have a name, and has not been counted.
    pub statement_counts: Cell<StatementCounts>,
    /// Whether it has thrown away its settings: those of its first packet count again.
    pub has_discarded: bool,
    /// Whether a command of its own may have changed standard_conforming_strings.
    pub has_named_strings: bool,
    /// Whether a command of its own may have changed client_encoding.
    pub has_named_encoding: bool,
}

impl ClientState {
    /// Of a new client that asks for this.
    pub fn of(requested: &RequestedParameters) -> Self {
        Self {
            has_temporary_path: requested.has_temporary_path(),
            ..Self::default()
        }
    }

    /// Why it keeps its server connection, if it does.
    pub fn tied_by(&self) -> Option<&'static str> {
        let tie = || self.ties.first().map(Tie::words);
        // What only that connection knows is not to be lost: it is asked again after each turn.
        let unknown = || self.changes.is_unanswered.then_some(UNKNOWN_SETTINGS);
        let unbound = || self.statements.awaits_bind();
        let unbound = || unbound().then(|| Tie::PreparedUnkept.words());
        self.pinned_by
            .or_else(tie)
            .or_else(unknown)
            .or_else(unbound)
    }

    /// A command may tie it so: the server is asked, unless it does already.
    pub fn note_tie(&mut self, tie: Tie) {
        if self.ties.insert(tie) {
            self.changes.ties.insert(tie);
        }
        self.has_used_temporary |= tie == Tie::Temporary;
    }

    /// Whether its search_path may have new tables made temporary ones; if so, there may be some.
    pub fn note_path(&mut self, is_temporary: bool) {
        self.has_temporary_path = is_temporary;
        if is_temporary {
            self.note_tie(Tie::Temporary);
        }
    }

    /// Whether its session may differ from all others in what is not known: a statement means
    /// there what it may not mean elsewhere.
    pub fn is_apart(&self) -> bool {
        self.tied_by().is_some() || !self.changes.parameters.is_empty()
    }
}

/// What a server connection has between turns.
#[derive(Debug)]
pub struct ServerState {
    /// The statements that it knows by our names.
    pub statements: ServerStatements,
    /// The one that it knows without a name.
    pub unnamed: Unnamed,
    /// Whether what it knows may not be what is believed here: it is closed instead of lent again.
    pub is_tainted: bool,
    /// Whether a client's turn has begun on it.
    pub is_used: bool,
    /// Whether a client may have used temporary tables on it.
    pub has_used_temporary: bool,
    /// Settings as it reported them last.
    pub reported: Parameters,
    /// Settings that it does not report, and that the last client had it set.
    pub unreported: Parameters,
    /// Settings that it reports, by the names that it uses, and that were set for a client since
    /// one was last reset: the session has set them, whatever their values.
    pub set_for_clients: BTreeSet<Vec<u8>>,
    /// Who logged in, as it reported that first.
    pub role: SessionRole,
}

/// What a server reports of a new session's role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRole {
    /// Its name.
    pub user: Vec<u8>,
    /// Whether it may set everything.
    pub is_superuser: bool,
}

impl SessionRole {
    fn of(settings: &Parameters) -> Self {
        let value = |name: &str| settings.get(name.as_bytes());
        Self {
            user: value("session_authorization").cloned().unwrap_or_default(),
            is_superuser: value("is_superuser").is_some_and(|value| value == b"on"),
        }
    }
}

/// The statement without a name that a server connection knows.
#[derive(Debug, Default)]
pub enum Unnamed {
    /// None, or one that no client of now has prepared.
    #[default]
    Absent,
    /// This one.
    Known(Arc<Statement>),
    /// One that a client has sent past us: of this number.
    PassedOn(u64),
}

impl ServerState {
    /// Of a new connection that keeps at most so many statements.
    pub fn new(statements_max: usize, reported: Parameters) -> Self {
        Self {
            statements: ServerStatements::new(statements_max),
            unnamed: Unnamed::Absent,
            is_tainted: false,
            is_used: false,
            has_used_temporary: false,
            role: SessionRole::of(&reported),
            reported,
            unreported: Parameters::new(),
            set_for_clients: BTreeSet::new(),
        }
    }
}
