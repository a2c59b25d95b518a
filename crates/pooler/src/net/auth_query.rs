//! Secrets that stand in no file, looked up in the database itself.
//!
//! On connections of their own: a client could have left something on one of its own that changes what the question means, and who has proved
//! nothing yet is not to take the place of those who have. The database may belong to a stranger who may set its search_path, so each question
//! says where its names are looked for, and one row of the answer is read.

use std::fmt;
use std::rc::Rc;
use std::time::Instant;

use super::door::Door;
use super::lend::{OWN_COMMAND_PATIENCE, Place, RETRY_PAUSE, in_time};
use super::log;
use super::login::{self, LoginError, LoginSecret};
use super::pool::{Owner, Server};
use super::settings::Settings;
use super::shared::Shared;
use crate::config::{AuthQueryTable, ServerAddress};
use sooner_postgres::auth::Secret;
use sooner_postgres::wire::{code_of_error, message_of_error};

/// What was learnt of a user.
pub enum Found {
    /// Its secret, if it has one.
    Secret(Option<Secret>),
    /// Nothing, because the database could not be asked. The log has the reason, and strangers do not.
    Nothing,
}

/// The secret of a user who wants `database`.
pub async fn look_up(shared: &Shared, user: &str, database: &str) -> Found {
    let settings = shared.settings();
    let begin = Instant::now();
    loop {
        let answer = ask_once(shared, &settings, user, database).await;
        shared.lookups_answer.set(is_answer(&answer));
        let error = match answer {
            Ok(secret) => return Found::Secret(secret.and_then(|text| read(user, &text))),
            Err(error) => error,
        };
        let is_late = begin.elapsed() >= settings.patience();
        let waits = match error.error {
            LoginError::Unreachable(_) => !is_late,
            LoginError::Full(_) => true,
            _ => false,
        };
        if !waits {
            log(&format!(
                "cannot look up the secret of user {user:?}: {error}"
            ));
            // Before the proof, the server does not say either which databases there are.
            return match error.is_about_database() {
                true => Found::Secret(None),
                false => Found::Nothing,
            };
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// Asks for a user whose secret stands in a file: a client would notice that others are asked for. Not where nobody answers, as this user can do
/// without.
pub async fn ask_all_the_same(shared: &Shared, user: &str, database: &str) {
    let settings = shared.settings();
    let Some(table) = &settings.config.auth_query else {
        return;
    };
    let door = shared.door(table.asked(database));
    if !shared.lookups_answer.get() || door.is_none_or(|door| door.is_paused()) {
        return;
    }
    let asking = ask_once(shared, &settings, user, database);
    let answer = tokio::time::timeout(OWN_COMMAND_PATIENCE, asking).await;
    let is_answer = answer.is_ok_and(|answer| is_answer(&answer));
    shared.lookups_answer.set(is_answer);
}

fn is_answer(answer: &Result<Option<String>, NotAsked>) -> bool {
    !matches!(answer, Err(why) if matches!(why.error, LoginError::Unreachable(_) | LoginError::Full(_)))
}

fn read(user: &str, text: &str) -> Option<Secret> {
    if text.is_empty() {
        return None;
    }
    match Secret::read(text) {
        Ok(secret) => Some(secret),
        Err(error) => {
            log(&format!(
                "the secret of user {user:?} cannot be used: {error}"
            ));
            None
        }
    }
}

/// Why the database was not asked, or did not answer.
struct NotAsked {
    error: LoginError,
    owner: Owner,
    address: ServerAddress,
}

impl NotAsked {
    fn is_about_database(&self) -> bool {
        matches!(&self.error, LoginError::Refused(message) if code_of_error(message) == b"3D000")
    }
}

impl fmt::Display for NotAsked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            error,
            owner: Owner { user, database },
            address,
        } = self;
        write!(
            f,
            "the database at {address}, as user {user:?} in {database:?}: "
        )?;
        let LoginError::Refused(message) = error else {
            return error.fmt(f);
        };
        f.write_str(&message_of_error(message))?;
        let unknown: [&[u8]; 2] = [b"42P01", b"42883"];
        match unknown.contains(&code_of_error(message)) {
            true => f.write_str("; names in auth_query.query need their schema"),
            false => Ok(()),
        }
    }
}

/// What the database says of a user, if anything is asked; nothing for the console, which is no server's, unless a database is named.
async fn ask_once(
    shared: &Shared,
    settings: &Settings,
    user: &str,
    database: &str,
) -> Result<Option<String>, NotAsked> {
    let Some(table) = &settings.config.auth_query else {
        return Ok(None);
    };
    loop {
        let Some(door) = shared.door(table.asked(database)) else {
            return Ok(None);
        };
        let asking = Asking {
            settings,
            table,
            door: &door,
        };
        match asking.ask(user).await {
            Ok(Some(secret)) => return Ok(secret),
            // The database has been moved.
            Ok(None) => {}
            Err(error) => {
                return Err(NotAsked {
                    error,
                    owner: asking.owner(),
                    address: door.backend.address.clone(),
                });
            }
        }
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
        let changes = server.session.ask(query, user, &mut server.state.reported);
        let rows = in_time(OWN_COMMAND_PATIENCE, changes).await?;
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
