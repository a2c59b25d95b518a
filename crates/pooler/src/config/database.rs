//! `[[database]]`: what a client's database name stands for.

use super::{OWN_DATABASES, ServerAddress};
use serde::Deserialize;
use sooner_config::{Misconfigured, Spanned, parsed};
use sooner_postgres::wire::truncate_name;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// One name, or `*` for all that have no entry of their own above it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseTable {
    /// What clients call it.
    pub name: Spanned<String>,
    /// Where it is: `postgresql://HOST:PORT`, with `sslmode` and its like as parameters.
    #[serde(deserialize_with = "address")]
    pub server: Spanned<ServerAddress>,
    /// What it is called there; default: the same.
    #[serde(default)]
    pub name_there: Option<String>,
    /// Whom the gate logs in as there; default: the client's own user.
    #[serde(default)]
    pub user: Option<String>,
    /// That user's password or verifier; default: what is known of the user.
    #[serde(default)]
    pub password: Option<Spanned<String>>,
    /// Transactions in it at a time; default: as many as its server may have.
    #[serde(default)]
    pub transactions: Option<NonZeroUsize>,
    /// Clients of it; default: as many as there may be.
    #[serde(default)]
    pub clients: Option<NonZeroUsize>,
    /// How long its clients keep a server connection; default: the file's `mode`.
    #[serde(default)]
    pub mode: Option<Mode>,
    /// The file in which the server's extension `sooner_locks` is told who goes first in lock
    /// queues; default: none.
    #[serde(default)]
    pub lock_map: Option<PathBuf>,
    /// The socket file of a `sooner attach postgres` beside its server; default: the file's
    /// `priorities`, where there is one server.
    #[serde(default)]
    pub priorities: Option<Spanned<PathBuf>>,
}

/// How long a client keeps a server connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// For a transaction.
    #[default]
    Transaction,
    /// From its first command until it leaves.
    Session,
}

impl Mode {
    /// As the file has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transaction => "transaction",
            Self::Session => "session",
        }
    }
}

fn address<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Spanned<ServerAddress>, D::Error> {
    Spanned::<Address>::deserialize(d).map(|spanned| {
        let span = spanned.span();
        Spanned::new(span, spanned.into_inner().0)
    })
}

/// An address as text.
#[derive(Deserialize)]
struct Address(#[serde(deserialize_with = "parsed")] ServerAddress);

impl DatabaseTable {
    /// Everything at one server.
    pub fn all_at(server: Spanned<ServerAddress>) -> Self {
        Self {
            name: Spanned::new(0..0, "*".into()),
            server,
            name_there: None,
            user: None,
            password: None,
            transactions: None,
            clients: None,
            mode: None,
            lock_map: None,
            priorities: None,
        }
    }

    /// Whether it says the same as another, wherever the two stand.
    pub fn is_same(&self, other: &Self) -> bool {
        // A password is kept by the name of its entry.
        let password = |table: &Self| {
            let password = table.password.as_ref();
            password.map(|text| (table.name.get_ref().clone(), text.get_ref().clone()))
        };
        self.server.get_ref() == other.server.get_ref()
            && self.name_there == other.name_there
            && self.user == other.user
            && password(self) == password(other)
            && self.transactions == other.transactions
            && self.clients == other.clients
            && self.mode == other.mode
            && self.lock_map == other.lock_map
    }

    /// Whether a client that asks for `name` means it.
    pub fn is_for(&self, name: &str) -> bool {
        let own = self.name.get_ref();
        own == "*" || truncate_name(own) == name
    }

    pub(super) fn check(&self) -> Result<(), Misconfigured> {
        let name = self.name.get_ref().as_str();
        if name.is_empty() || OWN_DATABASES.contains(&name) {
            let words = "a name of the gate's own, or none; choose another";
            return Err(Misconfigured::at(&self.name, "database.name", words));
        }
        if let (Some(password), None) = (&self.password, &self.user) {
            let words = "it belongs to no user; add user = \"...\" beside it";
            return Err(Misconfigured::at(password, "database.password", words));
        }
        Ok(())
    }
}
