//! Secrets that stand in no file, looked up in the database itself.

use super::lend::{Borrower, OWN_COMMAND_PATIENCE, in_time};
use super::log;
use super::login::LoginSecret;
use super::refusal::Refusal;
use super::shared::Shared;
use crate::auth::Secret;

/// The secret of a user who wants `database`; `None` where nobody is asked, or nobody knows.
pub async fn look_up(
    shared: &Shared,
    user: &str,
    database: &str,
) -> Result<Option<Secret>, Refusal> {
    let settings = shared.settings();
    let Some(table) = &settings.config.auth_query else {
        return Ok(None);
    };
    let asked = table.database.as_ref().map(|name| name.get_ref().as_str());
    let name = asked.unwrap_or(database);
    let door = shared
        .door(name)
        .ok_or_else(|| Refusal::no_database(name))?;
    let asking = table.user.get_ref();
    let proof = settings.users.get(asking).cloned().map(LoginSecret::Kept);
    let borrower = Borrower {
        user: asking,
        door: door.clone(),
        proof: proof.as_ref(),
    };
    door.opened().await;
    // Before everybody: whoever is let in waits for its turn afterwards.
    let permit = door.backend.gate.enter(0, String::new()).await;
    let permit = permit.map_err(|full| Refusal::ours(&std::io::Error::other(full)))?;
    let mut lent = borrower.borrow(shared, [None, None, Some(permit)]).await?;
    let Some(server) = &mut lent.server else {
        return Ok(None);
    };
    let asks = server
        .session
        .ask(table.query.get_ref(), user, &mut server.state.settings);
    let rows = in_time(OWN_COMMAND_PATIENCE, asks).await;
    let rows =
        rows.map_err(|error| Refusal::of_login(error, &door.backend.address, &lent.owner))?;
    lent.give_back(false).await;
    let secret = rows
        .into_iter()
        .next()
        .and_then(|row| row.into_iter().nth(1).flatten());
    match secret
        .filter(|text| !text.is_empty())
        .map(|text| Secret::read(&text))
    {
        Some(Ok(secret)) => Ok(Some(secret)),
        Some(Err(error)) => {
            log(&format!(
                "the secret of user {user:?} cannot be used: {error}"
            ));
            Ok(None)
        }
        None => Ok(None),
    }
}
