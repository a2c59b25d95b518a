//! Users who wait for a limited time (Schroeder and Harchol-Balter 2006, section 5.1 H): they abort
//! what takes too long and ask again.

use crate::exchange::Served;
use crate::failure::Failure;
use crate::pool::{Carrier, Pool};
use crate::target::Target;
use std::time::Duration;

/// How long a user waits, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// An attempt that is not finished after this time is aborted.
    pub limit: Duration,
    /// So often the user repeats an aborted request, at once and on a new connection.
    pub reloads: u32,
}

/// How a request ended for its user.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// Answered.
    Served(Served),
    /// Failed.
    Failed(Failure),
    /// Aborted as often as the user would ask.
    GivenUp,
}

impl From<Result<Served, Failure>> for End {
    fn from(result: Result<Served, Failure>) -> End {
        match result {
            Ok(served) => End::Served(served),
            Err(failure) => End::Failed(failure),
        }
    }
}

/// One request, as often as the user sends it.
pub struct Asking<'run> {
    /// Where.
    pub target: &'run Target,
    /// Connections of the user who asks.
    pub pool: &'run Pool,
    /// What for: a path of the server.
    pub path: &'run str,
    /// Length of the body it must have, in bytes.
    pub body_bytes: u64,
    /// Whether the connection is not needed any more.
    pub ends_visit: bool,
}

impl Asking<'_> {
    /// Asks on `carrier`, and after an abort on new connections; gives how it ended and what
    /// carried the last answer. `aborted` is called after each abort.
    pub async fn run(
        &self,
        mut carrier: Carrier,
        close: bool,
        patience: Option<Patience>,
        aborted: impl Fn(),
    ) -> (End, Option<Carrier>) {
        let Some(Patience { limit, reloads }) = patience else {
            let end = self.request(&mut carrier, close).await;
            return (end.into(), Some(carrier));
        };
        let close_new = self.ends_visit || self.pool.is_last(None);
        let mut close = close;
        for reload in 0..=reloads {
            if let Ok(end) = tokio::time::timeout(limit, self.request(&mut carrier, close)).await {
                return (end.into(), Some(carrier));
            }
            // The connection has ended with the attempt: what has come of the response is thrown
            // away.
            aborted();
            if reload < reloads {
                close = close_new;
                carrier = match self.pool.connect().1 {
                    Ok(carrier) => carrier,
                    Err(failure) => return (End::Failed(failure), None),
                };
            }
        }
        (End::GivenUp, None)
    }

    async fn request(&self, carrier: &mut Carrier, close: bool) -> Result<Served, Failure> {
        let body_bytes = Some(self.body_bytes);
        self.pool
            .request(carrier, self.target, self.path, close, body_bytes)
            .await
    }
}
