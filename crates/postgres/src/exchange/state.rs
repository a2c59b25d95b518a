//! What a client and a server connection have from one turn to the next.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, btree_map};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::asks::{Asks, Ties};
use crate::sql::Tie;
use crate::statements::{ClientStatements, ServerStatements, Statement, StatementCounts};

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
    pub named: Cell<StatementCounts>,
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

/// Settings by name, as bytes of the client's encoding. Copies are one until either changes, and
/// those are compared at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings(Arc<BTreeMap<Vec<u8>, Vec<u8>>>);

impl Settings {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes two that are equal one. The lower address stays, so that many become one whichever
    /// meet.
    pub fn unite(&mut self, other: &mut Self) {
        if self != other {
            return;
        }
        match Arc::as_ptr(&self.0).cmp(&Arc::as_ptr(&other.0)) {
            Ordering::Less => other.0 = self.0.clone(),
            Ordering::Greater => self.0 = other.0.clone(),
            Ordering::Equal => {}
        }
    }
}

impl FromIterator<(Vec<u8>, Vec<u8>)> for Settings {
    fn from_iter<I: IntoIterator<Item = (Vec<u8>, Vec<u8>)>>(settings: I) -> Self {
        Self(Arc::new(settings.into_iter().collect()))
    }
}

impl<'a> IntoIterator for &'a Settings {
    type Item = (&'a Vec<u8>, &'a Vec<u8>);
    type IntoIter = btree_map::Iter<'a, Vec<u8>, Vec<u8>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl Deref for Settings {
    type Target = BTreeMap<Vec<u8>, Vec<u8>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Settings {
    fn deref_mut(&mut self) -> &mut Self::Target {
        Arc::make_mut(&mut self.0)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(value: &[u8]) -> Settings {
        Settings::from_iter([(b"DateStyle".to_vec(), value.to_vec())])
    }

    #[test]
    fn settings_that_are_equal_become_one_until_either_changes() {
        let mut copies = [settings(b"ISO"), settings(b"ISO"), settings(b"ISO")];
        for (one, other) in [(0, 1), (1, 2), (0, 2)] {
            let [one, other] = copies.get_disjoint_mut([one, other]).unwrap();
            one.unite(other);
            assert!(Arc::ptr_eq(&one.0, &other.0));
        }
        copies[0].insert(b"DateStyle".to_vec(), b"German".to_vec());
        assert_eq!(
            copies,
            [settings(b"German"), settings(b"ISO"), settings(b"ISO")]
        );
    }

    #[test]
    fn settings_that_differ_stay_apart() {
        let (mut one, mut other) = (settings(b"ISO"), settings(b"German"));
        one.unite(&mut other);
        assert_eq!((one, other), (settings(b"ISO"), settings(b"German")));
    }
}
