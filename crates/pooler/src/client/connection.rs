//! The connection of a client from its first byte to its last: authenticated, counted, served, and
//! told why where it must go.

use crate::client::Client;
use crate::client::handle::ClientHandle;
use crate::client::refusal::{Departure, Refusal};
use crate::client::slots::LoginSlot;
use crate::client::startup::{self, AuthenticatedClient};
use crate::config::OWN_DATABASES;
use crate::console;
use crate::log::log;
use crate::pool::database::CountedClient;
use crate::pool::lease::RETRY_PAUSE;
use crate::pooler::Pooler;
use crate::stream::Stream;
use bytes::BytesMut;
use std::rc::Rc;
use std::time::Duration;

/// Serves a client.
pub async fn serve(pooler: Rc<Pooler>, stream: Stream, login_slot: LoginSlot) {
    let mut input = BytesMut::new();
    let Some(mut authenticated) = authenticated(&pooler, stream, &mut input, &login_slot).await
    else {
        return;
    };
    drop(login_slot);
    if OWN_DATABASES.contains(&authenticated.database.as_str()) {
        return console::serve(&pooler, authenticated, input).await;
    }
    let (user, database) = (authenticated.user.clone(), authenticated.database.clone());
    let _counted_clients = match count_client(&pooler, &user, &database) {
        Ok(counted_clients) => counted_clients,
        Err(refusal) => return refuse(&mut authenticated.stream, &refusal).await,
    };
    let version = authenticated.version;
    let mut client = Client::new(&pooler, authenticated, input);
    let registered = Registered::register(&pooler, client.handle.clone());
    let served = client.begin_and_serve(version).await;
    drop(registered);
    if let Err(Departure::Refused(refusal)) = served {
        log(&format!(
            "a client of user {user:?} in database {database:?}: {refusal}"
        ));
        tell(&mut client.stream, &refusal).await;
    }
}

/// Who it is that came; `None` where it is gone, has been told why not, or had to make room.
async fn authenticated(
    pooler: &Pooler,
    stream: Stream,
    input: &mut BytesMut,
    login_slot: &LoginSlot,
) -> Option<AuthenticatedClient> {
    let login_seconds = *pooler.configuration().config.limits.login_seconds.get_ref();
    let patience = Duration::from_secs(login_seconds);
    // In a box, so that what only the beginning needs is given back after it.
    let startup = Box::pin(startup::start_up(pooler, stream, input, login_slot));
    let startup = tokio::select! {
        startup = tokio::time::timeout(patience, startup) => startup,
        () = login_slot.ended() => return None,
    };
    match startup {
        Ok(Ok(authenticated)) => authenticated,
        Ok(Err(refused)) => {
            match refused.stream {
                Some(mut stream) => refuse(&mut stream, &refused.refusal).await,
                None => log(&refused.refusal.to_string()),
            }
            None
        }
        Err(_) => {
            pooler.overdue.log(1, |times| match times {
                1 => "a client took too long to log in".into(),
                _ => format!("{times} clients took too long to log in"),
            });
            None
        }
    }
}

/// A client's places among those of its user and its database.
fn count_client(
    pooler: &Pooler,
    user: &str,
    database: &str,
) -> Result<[CountedClient; 2], Refusal> {
    let db = pooler
        .database(database)
        .ok_or_else(|| Refusal::no_database(database))?;
    pooler.note_requested(database);
    // The stop has begun while it proved who it is.
    if pooler.is_stopping() {
        return Err(Refusal::stopping());
    }
    if db.is_disabled.get() {
        return Err(Refusal::disabled(database));
    }
    if let Some(max) = db.table.clients
        && db.clients.get() >= max.get()
    {
        return Err(Refusal::full_of(max.get(), "database", database));
    }
    let user_state = pooler.user(user);
    let max = pooler
        .configuration()
        .user(user)
        .and_then(|table| table.clients);
    if let Some(max) = max
        && user_state.clients.get() >= max.get()
    {
        return Err(Refusal::full_of(max.get(), "user", user));
    }
    Ok([db.clients.count_one(), user_state.clients.count_one()])
}

/// One of the clients that are here; no longer when dropped.
struct Registered(Rc<Pooler>, u64);

impl Registered {
    fn register(pooler: &Rc<Pooler>, handle: Rc<ClientHandle>) -> Self {
        let id = handle.id;
        pooler.clients.borrow_mut().insert(id, handle);
        Self(pooler.clone(), id)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let Self(pooler, id) = self;
        pooler.clients.borrow_mut().remove(id);
        pooler.changed.notify_waiters();
    }
}

/// Tells a client why, and the operator in one line.
pub async fn refuse(stream: &mut Stream, refusal: &Refusal) {
    log(&refusal.to_string());
    tell(stream, refusal).await;
}

async fn tell(stream: &mut Stream, refusal: &Refusal) {
    let mut out = BytesMut::new();
    refusal.write(&mut out);
    let told = stream.flush_all(&mut out);
    // A client that does not read is not waited for.
    let _ = tokio::time::timeout(RETRY_PAUSE, told).await;
}
