//! Between two transactions of a client: the server connection is given its parameters, and asked
//! what its commands have changed.

use crate::client::handle::ClientHandle;
use crate::client::refusal::{Departure, Refusal};
use crate::log::log;
use crate::pool::ServerConnection;
use crate::pool::lease::{COMMAND_PATIENCE, Lease, in_time, run};
use crate::pool::server_session::LoginError;
use bytes::BytesMut;
use sooner_postgres::parameters::{self, Parameters, RequestedParameters};
use sooner_postgres::session::{self, ClientState, PossibleChanges, SessionQuery, WITHOUT_WAIT};
use sooner_postgres::wire::code_of_error;
use std::time::Instant;

/// A statement was cancelled.
const CANCELLED: &[u8] = b"57014";
/// A setting cannot have a value.
const BAD_VALUE: &[u8] = b"22023";

/// Gives a server connection a client's settings; whether it did not have them already.
pub async fn apply_parameters(
    client: &mut ClientState,
    requested: &RequestedParameters,
    initial: Option<&Parameters>,
    server: &mut ServerConnection,
) -> Result<bool, LoginError> {
    // Before anything was reported to it, and after it threw that away, a client has what new ones
    // have.
    if let Some(initial) = initial {
        session::begin(client, requested, initial);
    }
    server.session.notices.clear();
    // The next time they are compared at once.
    client.reported.unite(&mut server.state.reported);
    let commands = parameters::commands_to_apply(requested, client, &server.state);
    let Some(commands) = commands else {
        return Ok(false);
    };
    let sql = WITHOUT_WAIT.to_owned() + &commands.sql;
    let mut applied = Box::pin(run(server, sql.as_bytes())).await;
    // The last client's statement_timeout is none of this one's.
    if applied.as_ref().is_err_and(is_cancelled) {
        let sql = session::without_timeouts(&server.state.reported) + &sql;
        applied = Box::pin(run(server, sql.as_bytes())).await;
    }
    match applied {
        Err(error) if is_cancelled(&error) => {
            let words = "something has cancelled what gives it a client's settings";
            Err(LoginError::Unreachable(std::io::Error::other(words)))
        }
        Err(error) if server.state.is_used && is_of_buffers(&error, &commands.sql) => {
            Err(LoginError::Worn)
        }
        Err(error) => Err(error),
        Ok(()) => {
            server.state.unreported = commands.unreported;
            server.state.set_for_clients.extend(commands.set);
            Ok(true)
        }
    }
}

/// Asks what the turn that is over has changed, and gives back what the first packet set where that
/// was lost; gives what the client is to be told besides. No cancel request of the client's reaches
/// that: what came before this is over, and what comes meanwhile waits until this is.
pub async fn read_back(
    client: &mut ClientState,
    requested: &RequestedParameters,
    handle: &ClientHandle,
    lease: &mut Lease,
    by_session: bool,
) -> Result<BytesMut, Departure> {
    let was_tied = handle.pinned_by.get().is_some();
    // What has come to be cancelled until now is over.
    handle.asked_at.set(Instant::now());
    let cancel_lock = lease.server.as_ref();
    let cancel_lock = cancel_lock.map(|server| server.cancel_lock.clone());
    let cancel_lock = cancel_lock.unwrap_or_default();
    let no_cancel = cancel_lock.lock().await;
    let for_client = query_and_restore(client, requested, lease, by_session).await;
    drop(no_cancel);
    let tied_by = client.tied_by();
    handle.pinned_by.set(tied_by);
    if let (false, Some(reason)) = (was_tied, tied_by) {
        let ClientHandle { user, database, .. } = handle;
        log(&format!(
            "a client of user {user:?} keeps its server connection to {database:?}, for {reason}"
        ));
    }
    for_client.map_err(|error| Refusal::lost(&error.to_string()).into())
}

async fn query_and_restore(
    client: &mut ClientState,
    requested: &RequestedParameters,
    lease: &mut Lease,
    by_session: bool,
) -> Result<BytesMut, LoginError> {
    let Some(server) = lease.server.as_mut() else {
        return Ok(BytesMut::new());
    };
    server.session.for_client.clear();
    if must_wait(client, requested) {
        return Ok(BytesMut::new());
    }
    let has_discarded = std::mem::take(&mut client.has_discarded);
    if has_discarded {
        session::discard(client, requested);
    }
    let is_kept = by_session || client.pinned_by.is_some();
    client.changes.is_unanswered = false;
    let had_temporary_path = client.has_temporary_path;
    if let Some(query) = SessionQuery::of(client, requested, &server.state, is_kept) {
        Box::pin(ask(query, client, requested, server)).await?;
    }
    // By what it has been found to have now it may have made something that ties it.
    let may_be_tied = client.has_temporary_path && !had_temporary_path;
    if may_be_tied && let Some(query) = SessionQuery::of(client, requested, &server.state, is_kept)
    {
        Box::pin(ask(query, client, requested, server)).await?;
    }
    let has_reset = if client.changes.is_unanswered {
        session::forget_resets(client, requested, &mut server.state)
    } else {
        client.changes.end_turn()
    };
    if !is_kept && !client.changes.is_unanswered {
        client.changes = PossibleChanges::default();
    }
    if has_discarded || has_reset {
        server.state.set_for_clients.clear();
        let initial = lease
            .db
            .upstream
            .pool
            .borrow()
            .initial_parameters(&lease.owner)
            .cloned();
        Box::pin(apply_parameters(
            client,
            requested,
            initial.as_ref(),
            server,
        ))
        .await?;
        let reported = server.state.reported.iter();
        let reported = reported.map(|(name, value)| (name.clone(), value.clone()));
        client.reported.extend(reported);
    }
    Ok(std::mem::take(&mut server.session.for_client))
}

/// Whether the server is asked when a later turn is over: a question takes the place of a statement
/// without a name that the client has yet to bind. What the client may have lost of its first
/// packet is given back at once all the same: it would go on with settings that are not its own.
fn must_wait(client: &ClientState, requested: &RequestedParameters) -> bool {
    let changes = &client.changes;
    let mut changed = changes.parameters.keys();
    let has_reset = changes.has_reset && changed.any(|name| requested.names(name));
    client.statements.awaits_bind() && !client.has_discarded && !has_reset
}

async fn ask(
    query: SessionQuery,
    client: &mut ClientState,
    requested: &RequestedParameters,
    server: &mut ServerConnection,
) -> Result<(), LoginError> {
    let (mut next, mut was_cancelled) = (Some(query), false);
    while let Some(query) = next {
        let sql = query.sql(&server.state);
        match in_time(COMMAND_PATIENCE, server.query(sql.as_bytes())).await {
            Ok(rows) => {
                query.learn(&rows, requested, client, &mut server.state);
                return Ok(());
            }
            // It did not mean this; or the client's own bound is so low that luck decides.
            Err(error) if is_cancelled(&error) && !was_cancelled => {
                (next, was_cancelled) = (Some(query), true);
            }
            // What may not be read is left out of the other question.
            Err(LoginError::Refused(_)) => next = query.thorough(),
            Err(error) => return Err(error),
        }
    }
    client.changes.is_unanswered = true;
    Ok(())
}

/// Whether something has cancelled a command of the gate's own.
pub fn is_cancelled(error: &LoginError) -> bool {
    matches!(error, LoginError::Refused(message) if code_of_error(message) == CANCELLED)
}

/// Whether a server process refuses temp_buffers because it has used temporary tables: it says so in
/// a detail, which it has of no bad value.
fn is_of_buffers(error: &LoginError, sql: &str) -> bool {
    let LoginError::Refused(message) = error else {
        return false;
    };
    let has_detail = message.windows(2).any(|bytes| bytes == b"\0D");
    code_of_error(message) == BAD_VALUE && has_detail && sql.contains("temp_buffers")
}
