//! `[[user]]` and `[auth_query]`: what is known of single users, and where secrets of others are looked up.

use serde::Deserialize;
use sooner_config::Spanned;
use std::num::NonZeroUsize;

use super::Mode;

/// One user.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserTable {
    /// The name.
    pub name: Spanned<String>,
    /// A password, an md5 hash or a SCRAM verifier; default: what `users` has.
    #[serde(default)]
    pub password: Option<Spanned<String>>,
    /// Transactions at a time, in all databases; default: no bound of its own.
    #[serde(default)]
    pub transactions: Option<NonZeroUsize>,
    /// Clients at a time; default: no bound of its own.
    #[serde(default)]
    pub clients: Option<NonZeroUsize>,
    /// How long its clients keep a server connection; default: the database's.
    #[serde(default)]
    pub mode: Option<Mode>,
}

/// A question to the database itself, for users that stand in no file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthQueryTable {
    /// The database, by one of the names that clients use, that is asked; default: the client's own.
    #[serde(default)]
    pub database: Option<Spanned<String>>,
    /// Who asks; its secret is known as any other user's.
    pub user: Spanned<String>,
    /// The question: `$1` is the user's name; the answer's first row has the name and the secret.
    #[serde(default = "query")]
    pub query: Spanned<String>,
}

fn query() -> Spanned<String> {
    // With the schema of everything that it names: who owns a database may have others searched first.
    let all = "SELECT rolname, CASE WHEN rolvaliduntil OPERATOR(pg_catalog.<) pg_catalog.now() THEN NULL ELSE rolpassword END FROM pg_catalog.pg_authid WHERE rolname OPERATOR(pg_catalog.=) $1::pg_catalog.name AND rolcanlogin";
    Spanned::new(0..0, all.into())
}
