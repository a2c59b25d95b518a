//! Asks a gate that runs: its own database, over the same protocol as any other client.

use crate::config::{Encryption, Endpoint, OWN_DATABASES, ServerAddress};
use crate::pool::server_session::{self, LoginError, LoginSecret, Rows, ServerSession};
use bytes::BytesMut;
use sooner_postgres::auth::Secret;
use sooner_postgres::parameters::Parameters;
use sooner_postgres::wire::message_of_error;
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the versions of all gates have in common.
const OF_GATES: &str = "(sooner ";

/// A session at the gate itself.
pub struct ConsoleClient {
    session: ServerSession,
}

/// A table as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// `None` is NULL.
    pub rows: Rows,
}

impl Answer {
    /// A row's field by its column's name; empty where it is NULL or not there.
    pub fn field<'a>(&self, row: &'a [Option<String>], column: &str) -> &'a str {
        let at = self.columns.iter().position(|name| name == column);
        let field = at.and_then(|at| row.get(at)).and_then(Option::as_deref);
        field.unwrap_or_default()
    }
}

impl ConsoleClient {
    /// Logs `user` in; why not, in words.
    pub async fn open(
        place: &Endpoint,
        user: &str,
        password: Option<String>,
    ) -> Result<Self, String> {
        let mut address = ServerAddress::at(place.clone());
        address.encryption = Encryption::Disable;
        let secret = password.map(|text| LoginSecret::Kept(Secret::Plain(text.into())));
        let open = async {
            let stream = server_session::connect(&address, None).await?;
            server_session::log_in(stream, user, OWN_DATABASES[0], secret.as_ref()).await
        };
        let session = in_time(place, open).await?;
        let version = session.parameters.get(&b"server_version"[..]);
        let version = version.map(|value| String::from_utf8_lossy(value).into_owned());
        match version.filter(|own| own.contains(OF_GATES)) {
            Some(_) => Ok(Self { session }),
            None => Err(format!("what listens at {place} is no gate")),
        }
    }

    /// Says a command.
    pub async fn ask(&mut self, place: &Endpoint, command: &str) -> Result<Answer, String> {
        let (columns, rows) = in_time(place, self.session.table(command)).await?;
        Ok(Answer { columns, rows })
    }
}

async fn in_time<T>(
    place: &Endpoint,
    asking: impl Future<Output = Result<T, LoginError>>,
) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, asking).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(LoginError::Refused(message))) => {
            let words = message_of_error(&message);
            Err(format!("{place} says: {words}"))
        }
        Ok(Err(error)) => Err(format!("no gate at {place}: {error}")),
        Err(_) => Err(format!("what listens at {place} does not answer")),
    }
}

impl ServerSession {
    /// The table that answers a command: names of columns, and rows.
    async fn table(&mut self, command: &str) -> Result<(Vec<String>, Rows), LoginError> {
        let mut out = BytesMut::new();
        sooner_postgres::wire::write_query(&mut out, command.as_bytes());
        self.stream.flush_all(&mut out).await?;
        self.read_answer(&mut Parameters::new()).await
    }
}
