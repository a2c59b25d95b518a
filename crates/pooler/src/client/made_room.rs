//! A transaction that made room for one that matters more. What it has open is rolled back while
//! its client does nothing; the client is told at its next cycle, and until it gives its
//! transaction up a server's own failed transaction answers it.

use super::Client;
use crate::client::cancel_queued::{CANCELLED, refuse_cycle};
use crate::client::handle::Termination;
use crate::client::refusal::{Departure, Refusal};
use crate::client::relay::RelayOutcome;
use crate::client::session_sync::is_cancelled;
use crate::pool::ServerConnection;
use crate::pool::lease::{Lease, run};
use crate::pool::server_session::LoginError;
use bytes::BytesMut;
use sooner_postgres::cycle::{Ends, ends};
use sooner_postgres::rewriter::PREEMPTED;
use sooner_postgres::wire::TransactionStatus;
use std::io;

impl Client {
    /// Answers a cycle of a client that does not know yet that its transaction was rolled back;
    /// whether that is done, else a server has to answer.
    pub(super) async fn answer_failed(&mut self) -> Result<bool, Departure> {
        let ends = loop {
            if self.input.first() == Some(&b'X') {
                return Err(Departure::Left);
            }
            if let Some(ends) = ends(&self.input, &self.state.statements) {
                break ends;
            }
            tokio::select! {
                biased;
                () = self.handle.terminated(Termination::Now) => {
                    return Err(self.handle.refusal().into());
                }
                heard = self.stream.more(&mut self.input) => match heard {
                    Ok(1..) => {}
                    _ => return Err(Departure::Left),
                },
            }
        };
        let status = match (self.failed, ends) {
            (None | Some(true), _) | (_, Ends::GivesUp) => return Ok(false),
            // As PostgreSQL does where it is the commit that fails.
            (_, Ends::Commits) => TransactionStatus::Idle,
            (_, Ends::No) => TransactionStatus::Failed,
        };
        let (stream, input, handle) = (&mut self.stream, &mut self.input, &self.handle);
        let is_told = refuse_cycle(stream, input, handle, &PREEMPTED, status).await?;
        self.failed = match status {
            TransactionStatus::Idle => None,
            _ => Some(is_told),
        };
        Ok(true)
    }

    /// Rolls back what its client has open and does nothing with: others have the locks at once.
    pub(super) async fn roll_back(
        &mut self,
        lease: &mut Lease,
        outcome: &mut RelayOutcome,
    ) -> Result<BytesMut, Departure> {
        let mut for_client = BytesMut::new();
        if let Some(server) = &mut lease.server {
            server.session.for_client.clear();
            let rolled_back = run_uncancelled(server, b"ROLLBACK").await;
            rolled_back.map_err(|error| Refusal::lost(&error.to_string()))?;
            // Settings are as they were before, and notifications come at the end of a transaction.
            let reported = server.state.reported.iter();
            let reported = reported.map(|(name, value)| (name.clone(), value.clone()));
            self.state.reported.extend(reported);
            for_client = std::mem::take(&mut server.session.for_client);
        }
        self.failed = Some(false);
        self.state.changes.has_failed = true;
        self.state.changes.note_undone();
        outcome.is_free = true;
        outcome.has_conflicted = true;
        outcome.has_made_room = true;
        self.handle.preemption.made_room();
        Ok(for_client)
    }

    /// Its statement was to be sent again, and its client has cancelled it meanwhile.
    pub(super) async fn tell_cancelled(&mut self) -> Result<(), Departure> {
        let mut input = std::mem::take(&mut self.input);
        let told = refuse_cycle(
            &mut self.stream,
            &mut input,
            &self.handle,
            &CANCELLED,
            TransactionStatus::Idle,
        );
        let told = told.await;
        self.input = input;
        told.map(drop)
    }
}

/// Puts a server connection into a transaction that has failed; what came for its client besides.
pub(super) async fn fail(lease: &mut Lease) -> Result<BytesMut, Departure> {
    let lost = |error: LoginError| Refusal::lost(&error.to_string()).into();
    let Some(server) = &mut lease.server else {
        return Err(Departure::Left);
    };
    server.session.for_client.clear();
    run_uncancelled(server, b"BEGIN").await.map_err(lost)?;
    match go_wrong(server).await {
        Err(LoginError::Refused(_)) => Ok(std::mem::take(&mut server.session.for_client)),
        Err(error) => Err(lost(error)),
        Ok(()) => {
            let words = "it found a savepoint that does not exist";
            Err(lost(io::Error::other(words).into()))
        }
    }
}

/// Runs a command of the gate's own that no cancel request of the client's means: none goes out
/// meanwhile, and what a late one or the client's statement_timeout has cancelled is run again.
async fn run_uncancelled(server: &mut ServerConnection, sql: &[u8]) -> Result<(), LoginError> {
    let cancel_lock = server.cancel_lock.clone();
    let _no_cancel = cancel_lock.lock().await;
    match run(server, sql).await {
        Err(error) if is_cancelled(&error) => run(server, sql).await,
        done => done,
    }
}

/// There is no such savepoint, which fails before anything else is looked at.
async fn go_wrong(server: &mut ServerConnection) -> Result<(), LoginError> {
    run(server, b"ROLLBACK TO SAVEPOINT sooner").await
}
