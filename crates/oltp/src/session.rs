//! A connection with its statements, prepared or not.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use tokio_postgres::config::Host;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, NoTls, Row, Statement};

use crate::{Failure, Unusable};

/// Where a database is, and as whom: `postgresql://USER@HOST:PORT/DATABASE`, as libpq writes it.
#[derive(Clone, Debug)]
pub struct DatabaseUrl(Config);

impl FromStr for DatabaseUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let example = "write postgresql://user@host:5432/database, or postgresql:///database?host=/run/postgresql&user=name";
        // The text is not shown: a password may be in it, wherever the mistake is.
        let wrong = |error| format!("{}; {example}", Unusable::from(error));
        let config = text.parse::<Config>().map_err(wrong)?;
        if config.get_hosts().is_empty() {
            Err(format!("it names no host; {example}"))
        } else {
            Ok(Self(config))
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

/// How statements are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statements {
    /// Prepared once under a name, as most drivers do.
    #[default]
    Prepared,
    /// Parsed each time, without a name: for a proxy that hands a session's transactions to
    /// different connections and knows no names.
    Unnamed,
}

impl DatabaseUrl {
    /// A connection that calls itself `name`; its end is another task's, so a `LocalSet` is needed.
    pub async fn connect(&self, name: &str) -> Result<Client, Unusable> {
        let mut config = self.0.clone();
        config.application_name(name);
        let connected = config.connect(NoTls).await;
        let (client, connection) = connected.map_err(|error| Unusable::at(error, self))?;
        // The caller of the next query is told what went wrong.
        tokio::task::spawn_local(async move { drop(connection.await) });
        Ok(client)
    }

    /// The folder of its socket file, where it has one.
    pub fn folder(&self) -> Option<PathBuf> {
        self.0.get_hosts().iter().find_map(|host| match host {
            Host::Unix(folder) => Some(folder.clone()),
            Host::Tcp(_) => None,
        })
    }
}

impl fmt::Display for DatabaseUrl {
    /// Where it is looked for: `127.0.0.1:5432`, `/run/postgresql/.s.PGSQL.5432`; several with
    /// commas.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = self.0.get_ports();
        let places = self.0.get_hosts().iter().enumerate().map(|(at, host)| {
            // One port is for all hosts, none is the usual one.
            let port = ports.get(at).or(ports.first()).unwrap_or(&5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(folder) => folder
                    .join(format!(".s.PGSQL.{port}"))
                    .display()
                    .to_string(),
            }
        });
        f.write_str(&places.collect::<Vec<_>>().join(", "))
    }
}

/// A connection on which transactions are carried out.
pub struct Session {
    client: Client,
    known: Known,
    begin: String,
}

/// What is known of the statements, by number.
enum Known {
    Prepared(Vec<Statement>),
    /// Their texts and the types of their parameters.
    Unnamed(Vec<(String, Vec<Type>)>),
}

impl Known {
    /// Prepares everything; or does so in a transaction, which has one connection, to learn the
    /// types, and forgets the names there.
    async fn learn(
        client: &Client,
        texts: &[&str],
        statements: Statements,
    ) -> Result<Self, Unusable> {
        let is_unnamed = statements == Statements::Unnamed;
        if is_unnamed {
            client.batch_execute("BEGIN").await?;
        }
        let mut prepared = Vec::new();
        for text in texts {
            prepared.push(client.prepare(text).await?);
        }
        if !is_unnamed {
            return Ok(Self::Prepared(prepared));
        }
        let types = |statement: &Statement| statement.params().to_vec();
        let unnamed = texts.iter().zip(&prepared);
        let unnamed = unnamed.map(|(text, statement)| ((*text).to_owned(), types(statement)));
        let unnamed = unnamed.collect();
        // Dropping a statement closes it; the end of the transaction comes after that.
        drop(prepared);
        client.batch_execute("COMMIT").await?;
        Ok(Self::Unnamed(unnamed))
    }
}

/// Parameters with their types.
fn typed<'a>(
    parameters: &[&'a (dyn ToSql + Sync)],
    types: &[Type],
) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    let pairs = parameters.iter().zip(types);
    pairs.map(|(value, kind)| (*value, kind.clone())).collect()
}

impl Session {
    /// A connection that calls itself `name` and knows statements of these texts.
    pub async fn open(
        url: &DatabaseUrl,
        name: &str,
        texts: &[&str],
        isolation: Isolation,
        statements: Statements,
    ) -> Result<Self, Unusable> {
        let client = url.connect(name).await?;
        Ok(Self {
            known: Known::learn(&client, texts, statements).await?,
            client,
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
        Ok(match &self.known {
            Known::Prepared(all) => self.client.execute(&all[number], parameters).await?,
            Known::Unnamed(all) => {
                let (text, types) = &all[number];
                let typed = typed(parameters, types);
                self.client.execute_typed(text, &typed).await?
            }
        })
    }

    /// The rows of the statement of this number.
    pub async fn rows(
        &self,
        number: usize,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Failure> {
        Ok(match &self.known {
            Known::Prepared(all) => self.client.query(&all[number], parameters).await?,
            Known::Unnamed(all) => {
                let (text, types) = &all[number];
                let typed = typed(parameters, types);
                self.client.query_typed(text, &typed).await?
            }
        })
    }

    /// The first row of the statement of this number, which must have one.
    pub async fn row(
        &self,
        number: usize,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, Failure> {
        let rows = self.rows(number, parameters).await?;
        rows.into_iter().next().ok_or(Failure::NoRow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_told_with_its_reason_and_without_the_password() {
        for (text, reason) in [
            (
                "postgresql://ann:secret@h:54x/db",
                "invalid connection string: invalid value for option `port`; write postgresql://",
            ),
            (
                "postgresql:///db?user=ann&password=secret",
                "it names no host; write postgresql://",
            ),
        ] {
            let said = text.parse::<DatabaseUrl>().unwrap_err();
            assert!(said.starts_with(reason), "{said}");
            assert!(!said.contains("secret"), "{said}");
        }
    }
}
