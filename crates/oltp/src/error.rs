//! What can go wrong: a transaction that fails, and a database that cannot be used at all.

use std::error::Error as _;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// Why one transaction failed.
#[derive(Debug)]
pub enum Failure {
    /// What the database, or the way to it, said.
    Database(Error),
    /// A row that must be there is not.
    NoRow,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl Failure {
    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Database(error) => error.code(),
            Self::NoRow => Some(&SqlState::NO_DATA),
        }
    }

    /// Its SQLSTATE, or `none` where the connection broke.
    pub fn sqlstate(&self) -> String {
        let code = self.code();
        code.map_or("none".into(), |code| code.code().to_owned())
    }

    /// Whether the same transaction is to be tried again: it stood in the way of another one
    /// (40001, 40P01).
    pub fn is_conflict(&self) -> bool {
        let conflicts = [
            &SqlState::T_R_SERIALIZATION_FAILURE,
            &SqlState::T_R_DEADLOCK_DETECTED,
        ];
        self.code().is_some_and(|code| conflicts.contains(&code))
    }
}

/// Why nothing can be done with a database, in one line.
#[derive(Debug)]
pub struct Unusable(pub String);

impl Unusable {
    /// With its place.
    pub(crate) fn at(why: impl Into<Self>, place: impl std::fmt::Display) -> Self {
        let Self(why) = why.into();
        Self(format!("{place}: {why}"))
    }

    /// Of a question about data that is not there.
    pub(crate) fn unfilled(why: impl Into<Self>, kit: &str) -> Self {
        let Self(why) = why.into();
        Self(format!(
            "{why}; fill the database first: sooner load {kit} fill"
        ))
    }

    /// Of a table in which nothing is.
    pub(crate) fn empty(what: &str, kit: &str) -> Self {
        Self::unfilled(Self(format!("there are no {what}")), kit)
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
        // The server's own words, and the system's, are behind the library's.
        match (error.as_db_error(), error.source()) {
            (Some(said), _) => Self(said.message().to_owned()),
            (None, Some(cause)) => Self(format!("{error}: {cause}")),
            (None, None) => Self(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_missing_has_a_code_and_is_not_asked_for_again() {
        assert_eq!(Failure::NoRow.sqlstate(), "02000");
        assert!(!Failure::NoRow.is_conflict());
    }
}
