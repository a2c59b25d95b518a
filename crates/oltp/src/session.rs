//! A connection with its prepared statements.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Row, Statement};

use crate::{Failure, Unusable};

/// Where a database is, and as whom: `postgresql://USER@HOST:PORT/DATABASE`, as libpq writes it.
#[derive(Clone, Debug)]
pub struct Place(Config);

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let example = "write postgresql://user@host:5432/database, or postgresql:///database?host=/run/postgresql&user=name";
        let config: Config = text
            .parse()
            .map_err(|error| format!("{text}: {error}; {example}"))?;
        match config.get_hosts().is_empty() {
            true => Err(format!("{text} names no host; {example}")),
            false => Ok(Self(config)),
        }
    }
}

/// What transactions see of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// PostgreSQL's default.
    #[default]
    ReadCommitted,
    /// A snapshot for each transaction.
    RepeatableRead,
    /// As if one came after the other.
    Serializable,
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadCommitted => "READ COMMITTED",
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Serializable => "SERIALIZABLE",
        })
    }
}

impl Place {
    /// A connection that calls itself `name`; its end is another task's, so a `LocalSet` is needed.
    pub async fn connect(&self, name: &str) -> Result<Client, Unusable> {
        let mut config = self.0.clone();
        config.application_name(name);
        let (client, connection) = config.connect(NoTls).await?;
        // Whoever asks next is told what went wrong.
        tokio::task::spawn_local(async move { drop(connection.await) });
        Ok(client)
    }

    /// The folder of its socket file, where it has one.
    pub fn folder(&self) -> Option<PathBuf> {
        self.0.get_hosts().iter().find_map(|host| match host {
            tokio_postgres::config::Host::Unix(folder) => Some(folder.clone()),
            tokio_postgres::config::Host::Tcp(_) => None,
        })
    }
}

/// A connection on which transactions are carried out.
pub struct Session {
    client: Client,
    statements: Vec<Statement>,
    begin: String,
}

impl Session {
    /// Prepares everything.
    pub async fn open(
        place: &Place,
        name: &str,
        statements: &[&str],
        isolation: Isolation,
    ) -> Result<Self, Unusable> {
        let client = place.connect(name).await?;
        let mut prepared = Vec::new();
        for text in statements {
            prepared.push(client.prepare(text).await?);
        }
        Ok(Self {
            client,
            statements: prepared,
            begin: format!("BEGIN ISOLATION LEVEL {isolation}"),
        })
    }

    /// Begins a transaction.
    pub async fn begin(&self, remark: &str) -> Result<(), Failure> {
        let begin = format!("{remark}{}", self.begin);
        Ok(self.client.batch_execute(&begin).await?)
    }

    /// Ends it.
    pub async fn commit(&self) -> Result<(), Failure> {
        Ok(self.client.batch_execute("COMMIT").await?)
    }

    /// Takes it back.
    pub async fn roll_back(&self) -> Result<(), Failure> {
        Ok(self.client.batch_execute("ROLLBACK").await?)
    }

    /// Whether the connection is of no use any more.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Runs the statement of this number.
    pub async fn execute(
        &self,
        number: usize,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Failure> {
        let statement = &self.statements[number];
        Ok(self.client.execute(statement, parameters).await?)
    }

    /// The rows of the statement of this number.
    pub async fn rows(
        &self,
        number: usize,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Failure> {
        let statement = &self.statements[number];
        Ok(self.client.query(statement, parameters).await?)
    }
}
