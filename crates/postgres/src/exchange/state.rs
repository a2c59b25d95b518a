//! What a client and a server connection have from one turn to the next.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::measured::Named;
use crate::statements::{ClientStatements, ServerStatements, Statement};

/// What a client has between its turns.
#[derive(Debug, Default)]
pub struct ClientState {
    /// Its prepared statements.
    pub statements: ClientStatements,
    /// Settings that were reported to it last, by name.
    pub settings: Settings,
    /// Why it keeps its server connection until it leaves; `None` if it does not.
    pub pinned_by: Option<&'static str>,
    /// Its word for its transactions, as it said it last.
    pub session_class: Option<String>,
    /// What was done with its statements that have a name, and has not been counted.
    pub named: Cell<Named>,
    /// Whether it has thrown away its settings: those of its first packet count again.
    pub has_discarded: bool,
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
            settings,
            extras: Settings::new(),
        }
    }
}
