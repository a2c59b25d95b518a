//! What a client and a server connection have from one turn to the next.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::asks::{Asks, Ties};
use crate::measured::Named;
use crate::sql::Tie;
use crate::statements::{ClientStatements, ServerStatements, Statement};

/// What a client has between its turns.
#[derive(Debug, Default)]
pub struct ClientState {
    /// Its prepared statements.
    pub statements: ClientStatements,
    /// Settings that were reported to it last, by name.
    pub settings: Settings,
    /// Settings that are not reported, as the server has them for it, by name in lower case.
    pub own: Settings,
    /// Why it keeps its server connection until it leaves or discards everything; `None` if it
    /// does not.
    pub pinned_by: Option<&'static str>,
    /// What else ties it to its server connection.
    pub ties: Ties,
    /// What the server is to be asked when the turn is over.
    pub asks: Asks,
    /// Its word for its transactions, as it said it last.
    pub session_class: Option<String>,
    /// What was done with its statements that have a name, and has not been counted.
    pub named: Cell<Named>,
    /// Whether it has thrown away its settings: those of its first packet count again.
    pub has_discarded: bool,
}

impl ClientState {
    /// Why it keeps its server connection, if it does.
    pub fn tied_by(&self) -> Option<&'static str> {
        self.pinned_by.or_else(|| self.ties.first().map(Tie::words))
    }

    /// Whether its session may differ from all others in what is not known: a statement means
    /// there what it may not mean elsewhere.
    pub fn is_apart(&self) -> bool {
        self.tied_by().is_some() || !self.asks.settings.is_empty()
    }
}

/// Settings that a server reports, by name, as bytes of the client's encoding.
pub type Settings = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a server connection has between turns.
#[derive(Debug)]
pub struct ServerState {
    /// The statements that it knows by our names.
    pub statements: ServerStatements,
    /// The one that it knows without a name.
    pub unnamed: Unnamed,
    /// Whether what it knows may not be what is believed here: it is closed instead of lent again.
    pub is_spoilt: bool,
    /// Settings as it reported them last.
    pub settings: Settings,
    /// Settings that it does not report, and that the last client had it set.
    pub extras: Settings,
    /// Who logged in, as it reported that first.
    pub login: Login,
}

/// What a server reports of a new session's role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// Its name.
    pub user: Vec<u8>,
    /// Whether it may set everything.
    pub is_superuser: bool,
}

impl Login {
    fn of(settings: &Settings) -> Self {
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
    /// None, or one of nobody who is here.
    #[default]
    Nobodys,
    /// This one.
    Known(Arc<Statement>),
    /// One that the client of this turn has sent past us.
    PassedOn,
}

impl ServerState {
    /// Of a new connection that keeps at most so many statements.
    pub fn new(statements_max: usize, settings: Settings) -> Self {
        Self {
            statements: ServerStatements::new(statements_max),
            unnamed: Unnamed::Nobodys,
            is_spoilt: false,
            login: Login::of(&settings),
            settings,
            extras: Settings::new(),
        }
    }
}
