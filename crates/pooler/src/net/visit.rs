//! A client from its first byte to its last: greeted, given its places, served, and told why where it must go.

use std::rc::Rc;
use std::time::Duration;

use bytes::BytesMut;

use super::arrivals::Login;
use super::client::Client;
use super::door::One;
use super::greet::{self, Greeted};
use super::here::{Here, Leave};
use super::lend::RETRY_PAUSE;
use super::refusal::Refusal;
use super::shared::Shared;
use super::stream::Stream;
use super::{admin, log};
use crate::config::OWN_DATABASES;

/// Serves a client.
pub async fn serve(shared: Rc<Shared>, stream: Stream, login: Login) {
    let mut input = BytesMut::new();
    let Some(mut greeted) = greeted(&shared, stream, &mut input, &login).await else {
        return;
    };
    drop(login);
    if OWN_DATABASES.contains(&greeted.database.as_str()) {
        return admin::serve(&shared, greeted, input).await;
    }
    let (user, database) = (greeted.user.clone(), greeted.database.clone());
    let _ones = match places(&shared, &user, &database) {
        Ok(ones) => ones,
        Err(refusal) => return refuse(&mut greeted.stream, &refusal).await,
    };
    let version = greeted.version;
    let mut client = Client::new(&shared, greeted, input);
    let entered = Entered::enter(&shared, client.here.clone());
    let served = client.begin_and_serve(version).await;
    drop(entered);
    if let Err(Some(refusal)) = served {
        refuse(&mut client.stream, &refusal).await;
    }
}

/// Who it is that came; `None` where it is gone, has been told why not, or had to make room.
async fn greeted(
    shared: &Shared,
    stream: Stream,
    input: &mut BytesMut,
    login: &Login,
) -> Option<Greeted> {
    let login_seconds = *shared.settings().config.limits.login_seconds.get_ref();
    let patience = Duration::from_secs(login_seconds);
    // In a box, so that what only the beginning needs is given back after it.
    let greeting = Box::pin(greet::greet(shared, stream, input, login));
    let greeting = tokio::select! {
        greeting = tokio::time::timeout(patience, greeting) => greeting,
        () = login.ended() => return None,
    };
    match greeting {
        Ok(Ok(greeted)) => greeted,
        Ok(Err(refused)) => {
            match refused.stream {
                Some(mut stream) => refuse(&mut stream, &refused.refusal).await,
                None => log(&refused.refusal.to_string()),
            }
            None
        }
        Err(_) => {
            shared.overdue.log(1, |times| match times {
                1 => "a client took too long to say who it is".into(),
                _ => format!("{times} clients took too long to say who they are"),
            });
            None
        }
    }
}

/// A client's places among those of its user and its database.
fn places(shared: &Shared, user: &str, database: &str) -> Result<[One; 2], Refusal> {
    let door = shared
        .door(database)
        .ok_or_else(|| Refusal::no_database(database))?;
    if door.is_disabled.get() {
        return Err(Refusal::disabled(database));
    }
    if let Some(max) = door.table.clients
        && door.clients.get() >= max.get()
    {
        return Err(Refusal::full_of(max.get(), "database", database));
    }
    let user_door = shared.user(user);
    let max = shared.settings().user(user).and_then(|table| table.clients);
    if let Some(max) = max
        && user_door.clients.get() >= max.get()
    {
        return Err(Refusal::full_of(max.get(), "user", user));
    }
    Ok([door.clients.one_more(), user_door.clients.one_more()])
}

/// One of the clients that are here; no longer when dropped.
struct Entered(Rc<Shared>, u64);

impl Entered {
    fn enter(shared: &Rc<Shared>, here: Rc<Here>) -> Self {
        let id = here.id;
        if shared.is_stopping() {
            here.tell(Leave::WhenIdle);
        }
        shared.clients.borrow_mut().insert(id, here);
        Self(shared.clone(), id)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let Self(shared, id) = self;
        shared.clients.borrow_mut().remove(id);
        shared.changed.notify_waiters();
    }
}

/// Tells a client why, and the operator in one line.
pub async fn refuse(stream: &mut Stream, refusal: &Refusal) {
    log(&refusal.to_string());
    let mut out = BytesMut::new();
    refusal.write(&mut out);
    let told = stream.flush_all(&mut out);
    // Whoever does not read is not waited for.
    let _ = tokio::time::timeout(RETRY_PAUSE, told).await;
}
