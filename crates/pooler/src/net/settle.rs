//! Between a client's turns: the server connection is given its settings, and asked what its commands have changed.

use bytes::BytesMut;

use super::here::Here;
use super::lend::{Lent, OWN_COMMAND_PATIENCE, in_time, run};
use super::log;
use super::login::LoginError;
use super::pool::Server;
use super::refusal::Refusal;
use sooner_postgres::parameters::Parameters;
use sooner_postgres::parameters::{self, RequestedParameters};
use sooner_postgres::session::{self, SessionQuery};
use sooner_postgres::session::{ClientState, PossibleChanges};
use sooner_postgres::wire::{BackendMessage, HEADER_BYTES};

/// A statement was cancelled.
const CANCELLED: &[u8] = b"57014";

/// Gives a server connection a client's settings.
pub async fn follow(
    client: &mut ClientState,
    wanted: &RequestedParameters,
    greeting: Option<&Parameters>,
    server: &mut Server,
) -> Result<(), LoginError> {
    // Before anything was reported to it, and after it threw that away, a client has what new ones
    // have.
    if let Some(greeting) = greeting {
        session::begin(client, wanted, greeting);
    }
    // The next time they are compared at once.
    client.reported.unite(&mut server.state.reported);
    let Some((sql, extras)) = parameters::commands_to_apply(wanted, client, &server.state) else {
        return Ok(());
    };
    match Box::pin(run(server, sql.as_bytes())).await {
        // The last client's statement_timeout is none of this one's.
        Err(error) if is_cancelled(&error) => {
            let words = "it took longer than the last client's statement_timeout";
            Err(LoginError::Unreachable(std::io::Error::other(words)))
        }
        Err(error) => Err(error),
        Ok(()) => {
            server.state.unreported = extras;
            Ok(())
        }
    }
}

/// Asks what the turn that is over has changed, and gives back what the first packet set where that
/// was lost; gives what the client is to be told besides.
pub async fn settle(
    client: &mut ClientState,
    wanted: &RequestedParameters,
    here: &Here,
    lent: &mut Lent,
    by_session: bool,
) -> Result<BytesMut, Option<Refusal>> {
    let was_tied = here.pinned_by.get().is_some();
    let aside = ask_and_restore(client, wanted, lent, by_session).await;
    let tied_by = client.tied_by();
    here.pinned_by.set(tied_by);
    if let (false, Some(reason)) = (was_tied, tied_by) {
        let Here { user, database, .. } = here;
        log(&format!(
            "a client of user {user:?} keeps its server connection to {database:?}, for {reason}"
        ));
    }
    aside.map_err(|error| Some(Refusal::lost(&error.to_string())))
}

async fn ask_and_restore(
    client: &mut ClientState,
    wanted: &RequestedParameters,
    lent: &mut Lent,
    by_session: bool,
) -> Result<BytesMut, LoginError> {
    let Some(server) = lent.server.as_mut() else {
        return Ok(BytesMut::new());
    };
    server.session.aside.clear();
    let has_discarded = std::mem::take(&mut client.has_discarded);
    if has_discarded {
        session::discard(client);
    }
    let is_kept = by_session || client.pinned_by.is_some();
    client.changes.is_unanswered = false;
    if let Some(question) = SessionQuery::of(client, wanted, &server.state, is_kept) {
        Box::pin(ask(question, client, wanted, server)).await?;
    }
    let has_reset = std::mem::take(&mut client.changes.has_reset);
    if !is_kept && !client.changes.is_unanswered {
        client.changes = PossibleChanges::default();
    }
    if has_discarded || has_reset {
        let greeting = lent
            .door
            .backend
            .pool
            .borrow()
            .greeting(&lent.owner)
            .cloned();
        Box::pin(follow(client, wanted, greeting.as_ref(), server)).await?;
        let reported = server.state.reported.iter();
        let reported = reported.map(|(name, value)| (name.clone(), value.clone()));
        client.reported.extend(reported);
    }
    Ok(std::mem::take(&mut server.session.aside))
}

async fn ask(
    question: SessionQuery,
    client: &mut ClientState,
    wanted: &RequestedParameters,
    server: &mut Server,
) -> Result<(), LoginError> {
    let mut next = Some(question);
    while let Some(question) = next {
        let sql = question.sql();
        match in_time(OWN_COMMAND_PATIENCE, server.rows_of(sql.as_bytes())).await {
            Ok(rows) => {
                question.learn(&rows, wanted, client, &mut server.state);
                return Ok(());
            }
            // What may not be read is left out of the other question.
            Err(LoginError::Refused(_)) => next = question.thorough(),
            Err(error) => return Err(error),
        }
    }
    client.changes.is_unanswered = true;
    Ok(())
}

fn is_cancelled(error: &LoginError) -> bool {
    let LoginError::Refused(message) = error else {
        return false;
    };
    let read = BackendMessage::read(message[0], &message[HEADER_BYTES..]);
    matches!(read, Ok(BackendMessage::Error(Some(CANCELLED))))
}
