//! What can go wrong: a transaction that fails, and a database that cannot be used at all.

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// Why one transaction failed.
#[derive(Debug)]
pub struct Failure(pub Error);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl Failure {
    /// Its SQLSTATE, or `none` where the connection broke.
    pub fn sqlstate(&self) -> String {
        let code = self.0.code();
        code.map_or("none".into(), |code| code.code().to_owned())
    }

    /// Whether the same transaction is to be tried again: it stood in the way of another one (40001, 40P01).
    pub fn is_conflict(&self) -> bool {
        let conflicts = [
            &SqlState::T_R_SERIALIZATION_FAILURE,
            &SqlState::T_R_DEADLOCK_DETECTED,
        ];
        self.0.code().is_some_and(|code| conflicts.contains(&code))
    }
}

/// Why nothing can be done with a database, in one line.
#[derive(Debug)]
pub struct Unusable(pub String);

impl Unusable {
    /// Of a question about data that is not there.
    pub(crate) fn unfilled(error: Error, kit: &str) -> Self {
        let Self(why) = error.into();
        Self(format!(
            "{why}; fill the database first: sooner load {kit} fill"
        ))
    }
}

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unusable {}

impl From<Error> for Unusable {
    fn from(error: Error) -> Self {
        // The server's own words are behind the library's.
        let said = error.as_db_error().map(|said| said.message().to_owned());
        Self(said.unwrap_or_else(|| error.to_string()))
    }
}
