//! Secrets that stand in no file, looked up in the database itself.
//!
//! On connections of their own: a client could have left something on one of its own that changes what the question means, and who has proved
//! nothing yet is not to take the place of those who have. The database may belong to a stranger who may set its search_path, so each question
//! says where its names are looked for, and one row of the answer is read.

use std::rc::Rc;
use std::time::Instant;

use super::door::Door;
use super::lend::{OWN_COMMAND_PATIENCE, Place, RETRY_PAUSE, in_time};
use super::log;
use super::login::{self, LoginError, LoginSecret};
use super::pool::{Owner, Server};
use super::refusal::Refusal;
use super::settings::Settings;
use super::shared::Shared;
use crate::auth::Secret;
use crate::config::AuthQueryTable;

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
    let begin = Instant::now();
    let secret = loop {
        // The console is no server's, and nobody is asked there.
        let Some(door) = shared.door(name) else {
            return Ok(None);
        };
        let asking = Asking {
            settings: &settings,
            table,
            door: &door,
        };
        let error = match asking.ask(user).await {
            Ok(Some(secret)) => break secret,
            // The database has been moved.
            Ok(None) => continue,
            Err(error) => error,
        };
        let is_late = begin.elapsed() >= settings.patience();
        if is_late || !matches!(error, LoginError::Unreachable(_)) {
            let address = &door.backend.address;
            return Err(Refusal::of_login(error, address, &asking.owner()));
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    };
    let secret = secret.filter(|text| !text.is_empty());
    match secret.map(|text| Secret::read(&text)) {
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

/// A question to be asked.
struct Asking<'a> {
    settings: &'a Settings,
    table: &'a AuthQueryTable,
    door: &'a Rc<Door>,
}

impl Asking<'_> {
    fn owner(&self) -> Owner {
        Owner {
            user: self.table.user.get_ref().clone(),
            database: self.door.name.clone(),
        }
    }

    /// What the first row says of a user, if there is one; no answer where the database has been moved meanwhile.
    async fn ask(&self, user: &str) -> Result<Option<Option<String>>, LoginError> {
        self.door.opened().await;
        let backend = &self.door.backend;
        // Its queue has no bound, so nobody is refused.
        let _inside = backend.lookup_gate.enter(0, String::new()).await.ok();
        if self.door.is_replaced() {
            return Ok(None);
        }
        let _in_use = self.door.lending.lend();
        let owner = self.owner();
        let idle = backend.lookups.borrow_mut().take(&owner);
        let (mut server, place) = match idle {
            Some(server) => (server, Place::taken(&backend.lookups)),
            None => {
                let place = Place::new(&backend.lookups);
                let opened = in_time(self.settings.patience(), self.open(&owner)).await?;
                (opened, place)
            }
        };
        let query = self.table.query.get_ref();
        let asks = server.session.ask(query, user, &mut server.state.settings);
        let rows = in_time(OWN_COMMAND_PATIENCE, asks).await?;
        if server.generation == self.door.lending.generation() && !self.door.is_replaced() {
            place.done();
            server.used_at = Instant::now();
            backend.lookups.borrow_mut().give_back(&owner, server);
        }
        let first = rows.into_iter().next();
        Ok(Some(first.and_then(|row| row.into_iter().nth(1).flatten())))
    }

    async fn open(&self, owner: &Owner) -> Result<Box<Server>, LoginError> {
        let generation = self.door.lending.generation();
        let backend = &self.door.backend;
        let connector = backend.connector();
        let stream = login::connect(&backend.address, connector.as_deref()).await?;
        let there = self.door.table.name_there.as_deref();
        let database = there.unwrap_or(&owner.database);
        let secret = self.settings.users.get(&owner.user).cloned();
        let secret = secret.map(LoginSecret::Kept);
        let session = login::log_in(stream, &owner.user, database, secret.as_ref()).await?;
        Ok(Box::new(Server::new(session, 1, generation)))
    }
}
