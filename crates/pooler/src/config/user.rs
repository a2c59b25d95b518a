//! `[[user]]` and `[auth_query]`: what is known of single users, and where secrets of others are
//! looked up.

use super::{Config, Mode, OWN_DATABASES};
use serde::Deserialize;
use sooner_config::{Misconfigured, Spanned};
use std::num::NonZeroUsize;

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
    /// The database, by one of the names that clients use, that is asked; default: the client's
    /// own, and none for the console.
    #[serde(default)]
    pub database: Option<Spanned<String>>,
    /// Who asks; its secret is known as any other user's.
    pub user: Spanned<String>,
    /// The question: `$1` is the user's name; the answer's first row has the name and the secret.
    #[serde(default = "default_query")]
    pub query: Spanned<String>,
}

impl AuthQueryTable {
    pub(super) fn check(&self, config: &Config) -> Result<(), Misconfigured> {
        if !self.query.get_ref().contains("$1") {
            let words = "it has no $1, which stands for the user's name";
            return Err(Misconfigured::at(&self.query, "auth_query.query", words));
        }
        let Some(database) = &self.database else {
            return Ok(());
        };
        let wrong = |words| Err(Misconfigured::at(database, "auth_query.database", words));
        let name = database.get_ref().as_str();
        if OWN_DATABASES.contains(&name) {
            let words = format!("{name:?} is the gate itself, which has no secrets; name another");
            return wrong(words);
        }
        if config.database(name).is_none() {
            return wrong(config.no_database(name));
        }
        Ok(())
    }

    /// The database that the gate asks about a client of `database`.
    pub fn asked<'a>(&'a self, database: &'a str) -> &'a str {
        let named = self.database.as_ref();
        named.map_or(database, |name| name.get_ref().as_str())
    }

    /// What an operator should know of a query of its own: where its names are looked for, and who
    /// may answer it.
    pub fn warning(&self) -> Option<Misconfigured> {
        let query = self.query.get_ref();
        let words = match foreign_schema(query) {
            Foreign::Nothing => return None,
            Foreign::Named if self.database.is_some() => return None,
            Foreign::Named => OWNERS_ANSWER,
            Foreign::Unnamed => NO_SCHEMA,
        };
        Some(Misconfigured::at(&self.query, "auth_query.query", words))
    }
}

const OWNERS_ANSWER: &str = "it runs in the client's own database, where its owner may answer for every user; name a trusted one, database = \"NAME\"";
const NO_SCHEMA: &str =
    "names without a schema are looked for in pg_catalog alone; write FROM SCHEMA.NAME";

/// Whether a query reads from what is not PostgreSQL's own.
enum Foreign {
    Nothing,
    Named,
    Unnamed,
}

/// By the words behind FROM and JOIN: enough for a warning.
fn foreign_schema(query: &str) -> Foreign {
    let query = query.to_lowercase();
    let words: Vec<&str> = query.split_whitespace().collect();
    let is_read = |pair: &&[&str]| ["from", "join"].contains(&pair[0]);
    let read = words.windows(2).filter(is_read).map(|pair| pair[1]);
    let foreign = read.filter(|name| !name.starts_with("pg_") && !name.starts_with('('));
    match foreign.max_by_key(|name| !name.contains('.')) {
        None => Foreign::Nothing,
        Some(name) if name.contains('.') => Foreign::Named,
        Some(_) => Foreign::Unnamed,
    }
}

fn default_query() -> Spanned<String> {
    // With the schema of everything that it names: who owns a database may have others searched
    // first.
    let all = "SELECT rolname, CASE WHEN rolvaliduntil OPERATOR(pg_catalog.<) pg_catalog.now() THEN NULL ELSE rolpassword END FROM pg_catalog.pg_authid WHERE rolname OPERATOR(pg_catalog.=) $1::pg_catalog.name AND rolcanlogin";
    Spanned::new(0..0, all.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_answer_a_query_is_told() {
        let warning = |query: &str, database: Option<&str>| {
            let table = AuthQueryTable {
                database: database.map(|name| Spanned::new(0..0, name.into())),
                user: Spanned::new(0..0, "asker".into()),
                query: Spanned::new(0..0, query.into()),
            };
            table.warning().map(|warning| warning.message)
        };
        let own = default_query();
        for query in [
            own.get_ref().as_str(),
            "SELECT usename, passwd FROM pg_shadow WHERE usename = $1",
            "SELECT s.usename, s.passwd FROM pg_catalog.pg_shadow s WHERE s.usename = $1",
        ] {
            assert_eq!(warning(query, None), None, "{query}");
        }
        let named = "SELECT * FROM admin.lookup($1)";
        assert_eq!(warning(named, None).as_deref(), Some(OWNERS_ANSWER));
        assert_eq!(warning(named, Some("auth")), None);
        let unnamed = "SELECT * FROM lookup($1)";
        for database in [None, Some("auth")] {
            assert_eq!(warning(unnamed, database).as_deref(), Some(NO_SCHEMA));
        }
    }
}
