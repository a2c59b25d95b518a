//! Secrets that stand in no file, looked up in the database itself.
//!
//! On connections of their own: a client could have left something on one of its own that changes
//! what the question means, and who has proved nothing yet is not to take the place of those who
//! have. The database may belong to a stranger who may set its search_path, so each question says
//! where its names are looked for, and one row of the answer is read.

use crate::config::{AuthQueryTable, ServerAddress};
use crate::configuration::Configuration;
use crate::log::log;
use crate::pool::database::Database;
use crate::pool::lease::{COMMAND_PATIENCE, PoolSlot, RETRY_PAUSE, in_time};
use crate::pool::opening::{PoolOf, Wait};
use crate::pool::server_session::{self, LoginError, LoginSecret};
use crate::pool::upstream::LOOKUPS;
use crate::pool::waiters::{Handed, Waiting};
use crate::pool::{Owner, ServerConnection};
use crate::pooler::Pooler;
use sooner_admission::Subject;
use sooner_postgres::auth::Secret;
use sooner_postgres::wire::{code_of_error, message_of_error};
use std::fmt;
use std::rc::Rc;
use std::time::Instant;

/// What was learnt of a user.
pub enum LookupResult {
    /// Its secret, if it has one.
    Secret(Option<Secret>),
    /// Nothing, because the database could not be asked. The log has the reason, and strangers do
    /// not.
    Nothing,
}

/// The secret of a user who wants `database`.
pub async fn look_up(pooler: &Pooler, user: &str, database: &str) -> LookupResult {
    let begin = Instant::now();
    loop {
        let answer = ask_once(pooler, user, database).await;
        pooler.lookups_answer.set(is_answer(&answer));
        let error = match answer {
            Ok(secret) => return LookupResult::Secret(secret.and_then(|text| read(user, &text))),
            Err(error) => error,
        };
        let is_late = begin.elapsed() >= pooler.configuration().patience();
        let waits = match error.error {
            LoginError::Unreachable(_) | LoginError::AtLimit(..) => !is_late,
            LoginError::Full => true,
            _ => false,
        };
        if !waits {
            log(&format!(
                "cannot look up the secret of user {user:?}: {error}"
            ));
            // Before the proof, the server does not say either which databases there are.
            return if error.is_about_database() {
                LookupResult::Secret(None)
            } else {
                LookupResult::Nothing
            };
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// Asks the database for a user with a secret in a file, too: a client would notice that the gate
/// asks for the others only. Not where the database does not answer, as this user can do without.
pub async fn ask_all_the_same(pooler: &Pooler, user: &str, database: &str) {
    let configuration = pooler.configuration();
    let Some(table) = &configuration.config.auth_query else {
        return;
    };
    let db = pooler.database(table.asked(database));
    if !pooler.lookups_answer.get() || db.is_none_or(|db| db.is_paused()) {
        return;
    }
    let asking = ask_once(pooler, user, database);
    let answer = tokio::time::timeout(COMMAND_PATIENCE, asking).await;
    let is_answer = answer.is_ok_and(|answer| is_answer(&answer));
    pooler.lookups_answer.set(is_answer);
}

fn is_answer(answer: &Result<Option<String>, LookupError>) -> bool {
    let no_answer = |error: &LoginError| {
        matches!(
            error,
            LoginError::Unreachable(_) | LoginError::Full | LoginError::AtLimit(..)
        )
    };
    !matches!(answer, Err(why) if no_answer(&why.error))
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
struct LookupError {
    error: LoginError,
    owner: Owner,
    address: ServerAddress,
}

impl LookupError {
    fn is_about_database(&self) -> bool {
        matches!(&self.error, LoginError::Refused(message) if code_of_error(message) == b"3D000")
    }
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            error,
            owner: Owner { user, database, .. },
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
        if unknown.contains(&code_of_error(message)) {
            f.write_str("; names in auth_query.query need their schema")
        } else {
            Ok(())
        }
    }
}

/// What the database says of a user, if anything is asked; nothing for the console, which is no
/// server's, unless a database is named.
async fn ask_once(
    pooler: &Pooler,
    user: &str,
    database: &str,
) -> Result<Option<String>, LookupError> {
    loop {
        let configuration = pooler.configuration();
        let Some(table) = &configuration.config.auth_query else {
            return Ok(None);
        };
        let Some(db) = pooler.database(table.asked(database)) else {
            return Ok(None);
        };
        let asking = Lookup {
            configuration: &configuration,
            table,
            db: &db,
        };
        match asking.ask(user).await {
            Ok(Some(secret)) => return Ok(secret),
            // The database has been moved.
            Ok(None) => {}
            Err(error) => {
                return Err(LookupError {
                    error,
                    owner: asking.owner(),
                    address: db.upstream.address.clone(),
                });
            }
        }
    }
}

/// A question to be asked.
struct Lookup<'a> {
    configuration: &'a Rc<Configuration>,
    table: &'a AuthQueryTable,
    db: &'a Rc<Database>,
}

impl Lookup<'_> {
    fn owner(&self) -> Owner {
        Owner {
            user: self.table.user.get_ref().clone(),
            database: self.db.name.clone(),
            there: self.db.table.name_there.clone(),
        }
    }

    /// What the first row says of a user, if there is one; no answer where the database has been
    /// moved meanwhile.
    async fn ask(&self, user: &str) -> Result<Option<Option<String>>, LoginError> {
        self.db.opened().await;
        let upstream = &self.db.upstream;
        // Its queue has no bound, so no lookup is refused.
        let _inside = upstream
            .lookup_limiter
            .acquire(0, Subject::default())
            .await
            .ok();
        if self.db.is_replaced() {
            return Ok(None);
        }
        let _in_use = self.db.leases.begin();
        let owner = self.owner();
        let Some(mut server) = self.obtain(&owner).await? else {
            return Ok(None);
        };
        let slot = PoolSlot::taken(&upstream.lookup_pool);
        let query = self.table.query.get_ref();
        let changes = server
            .session
            .query_with(query, user, &mut server.state.reported);
        let patience = COMMAND_PATIENCE.min(self.configuration.patience());
        let rows = in_time(patience, changes).await?;
        if self.db.keeps(&server) {
            slot.done();
            server.used_at = Instant::now();
            upstream.lookup_pool.borrow_mut().give_back(&owner, server);
        }
        let first = rows.into_iter().next();
        let secret = first.map(|row| row.into_iter().nth(1).flatten());
        if secret == Some(None) {
            log(&format!(
                "auth_query gives no secret (NULL) for user {user:?}: it has no password, or its VALID UNTIL has passed"
            ));
        }
        Ok(Some(secret.flatten()))
    }

    /// A connection that is idle, or the first that comes; none where the database is moved.
    async fn obtain(&self, owner: &Owner) -> Result<Option<Box<ServerConnection>>, LoginError> {
        let waiting = Waiting {
            rank: 0,
            since: Instant::now(),
        };
        let pool = (self.db, (|upstream| &upstream.lookup_pool) as PoolOf);
        while !self.db.is_replaced() {
            let idle = self.db.upstream.lookup_pool.borrow_mut().take(owner);
            if idle.is_some() {
                return Ok(idle);
            }
            let opening = open(self.configuration.clone(), self.db.clone(), owner.clone());
            // Under as many names as strangers try, no more than these are kept.
            let mut wait = Wait::begin(pool, owner, waiting, (LOOKUPS, Some(opening)));
            match wait.handed().await {
                Handed::Server(server) => return Ok(Some(server)),
                Handed::Failed(error) if self.makes_room(owner, &error).await => {}
                Handed::Failed(error) => return Err(error),
                Handed::LookAgain => {}
            }
        }
        Ok(None)
    }

    /// The server has no connection left: an idle one of another lookup is given up, if there is one
    /// that counts; whether there was. Those of clients stay: who asks has proved nothing yet.
    async fn makes_room(&self, owner: &Owner, error: &LoginError) -> bool {
        let counts = |other: &Owner| match error {
            LoginError::Full => true,
            LoginError::AtLimit(limited, _) => limited.is_shared(owner, other),
            _ => false,
        };
        let given_up = self.db.upstream.lookup_pool.borrow_mut().give_up_of(counts);
        let Some(server) = given_up else {
            return false;
        };
        // Where it takes longer, the next attempt comes later.
        let _ = tokio::time::timeout(RETRY_PAUSE, server.session.end()).await;
        true
    }
}

async fn open(
    configuration: Rc<Configuration>,
    db: Rc<Database>,
    owner: Owner,
) -> Result<Box<ServerConnection>, LoginError> {
    let opened = async {
        let generation = db.leases.generation();
        let upstream = &db.upstream;
        let connector = upstream.connector();
        let stream = server_session::connect(&upstream.address, connector.as_deref()).await?;
        let database = owner.database_there();
        let secret = configuration.users.get(&owner.user).cloned();
        let secret = secret.map(LoginSecret::Kept);
        let session =
            server_session::log_in(stream, &owner.user, database, secret.as_ref()).await?;
        let server = ServerConnection::new(&owner.user, session, 1, generation);
        Ok(Box::new(server))
    };
    in_time(configuration.patience(), opened).await
}
