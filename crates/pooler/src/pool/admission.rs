//! Waiting outside the database: for the database to be open, for the client's own bounds, then in the one queue of all.
//!
//! The narrower bound comes first: whoever waits for it takes no place from others, and whoever has it waits in the common queue, whose order
//! is the one that counts. Places are taken in this order everywhere, so nobody waits in a circle.

use crate::client::handle::{ClientHandle, Termination};
use crate::configuration::Configuration;
use crate::pool::database::{Database, User};
use crate::pool::lease::{Admitted, owner};
use crate::pool::login_admission::LoginPermit;
use crate::pooler::Pooler;
use crate::stream::Stream;
use bytes::BytesMut;
use sooner_limiter::{Limiter, Permit};
use sooner_postgres::wire::{Splitter, look_at_frontend};
use std::io;
use std::rc::Rc;
use std::time::Instant;

/// What a client may send ahead while it waits for its turn.
const AHEAD_BYTES: usize = 64 * 1024;

/// Somebody who waits.
pub struct AdmissionRequest<'a> {
    pub db: &'a Database,
    pub user: &'a User,
    pub handle: &'a ClientHandle,
    pub pooler: &'a Pooler,
    /// When it began to wait.
    pub came_at: Instant,
}

/// A class by its number in the configuration that was in force when it came to the queue.
pub struct ClientClass {
    configuration: Rc<Configuration>,
    number: usize,
}

impl ClientClass {
    /// That of a client.
    pub fn of(handle: &ClientHandle, configuration: Rc<Configuration>) -> Self {
        let number = handle.class(&configuration.config.class);
        Self {
            configuration,
            number,
        }
    }

    /// Its name; empty for that of all who are in none.
    pub fn name(&self) -> &str {
        let class = self.configuration.config.class.get(self.number);
        class.map_or("", |class| class.name.get_ref())
    }

    /// Its number; behind the last for all who are in none.
    pub fn number(&self) -> u8 {
        // There are fewer classes than that.
        u8::try_from(self.number).unwrap_or(u8::MAX)
    }
}

/// Why somebody waits no longer.
pub enum Interrupted {
    /// It has left.
    Left,
    /// It has been told to.
    Terminated,
    /// It wants what it waits for no more.
    Cancelled,
    /// The way to its database is another one now.
    DatabaseMoved,
}

impl AdmissionRequest<'_> {
    /// Waits until it may go in. Where it must log in in place of another owner it needs leave for that as well: it
    /// makes room for others while it waits for it, and has its turn when it comes back.
    async fn enter(&self) -> (Admitted, ClientClass) {
        let mut login = None;
        let mut is_back = false;
        loop {
            self.db.opened().await;
            let of_user = self.pass_bound(self.user.limiter.as_ref(), is_back).await;
            let of_database = self.pass_bound(self.db.limiter.as_ref(), is_back).await;
            let (of_server, class) = self.pass(&self.db.upstream.limiter, is_back).await;
            // Meanwhile it may have been closed.
            if self.db.is_paused() {
                continue;
            }
            let permits = [of_user, of_database, of_server];
            let must_log_in = self.must_log_in();
            login = login.filter(|_| must_log_in);
            if must_log_in && login.is_none() {
                let (upstream, logins) = (&self.db.upstream, &self.db.upstream.logins);
                if !logins.has_room(upstream.limiter.status().limit) {
                    permits.into_iter().flatten().for_each(Permit::yield_place);
                    upstream.login_share.borrow_mut().note_wait();
                    login = self
                        .pass(&logins.limiter, false)
                        .await
                        .0
                        .map(LoginPermit::new);
                    is_back = true;
                    continue;
                }
                login = self
                    .pass(&logins.limiter, false)
                    .await
                    .0
                    .map(LoginPermit::new);
            }
            return (Admitted::new(permits, login), class);
        }
    }

    fn must_log_in(&self) -> bool {
        let (upstream, configuration) = (&self.db.upstream, self.pooler.configuration());
        let most = upstream.connections(&configuration.config.limits);
        let pool = upstream.pool.borrow();
        // In the usual case there is room, and no need to know whose.
        pool.open() >= most && pool.must_yield(&owner(&self.handle.user, self.db), most)
    }

    async fn pass_bound(&self, limiter: Option<&Limiter>, is_back: bool) -> Option<Permit> {
        self.pass(limiter?, is_back).await.0
    }

    /// In the class that it has at the moment: classes may have become others while it waited elsewhere.
    async fn pass(&self, limiter: &Limiter, is_back: bool) -> (Option<Permit>, ClientClass) {
        let class = ClientClass::of(self.handle, self.pooler.configuration());
        // Its like tell how long this one will take: the guard against starvation counts time and not heads.
        let kind = self.handle.hints.borrow().kind();
        let kind = kind.unwrap_or_else(|| class.name().to_owned());
        let waited_ns = self.came_at.elapsed().as_nanos() as u64;
        let enter = if is_back {
            limiter.acquire_again(class.number(), kind, waited_ns)
        } else {
            limiter.acquire_after(class.number(), kind, waited_ns)
        };
        let _waits = enter.job().map(|job| self.handle.queued(limiter, job));
        // The queue has no bound, so nobody is refused.
        (enter.await.ok(), class)
    }

    /// Goes in if nobody has to be waited for.
    pub async fn admit_now(&self) -> Option<Admitted> {
        tokio::select! {
            biased;
            (inside, _) = self.enter() => Some(inside),
            () = std::future::ready(()) => None,
        }
    }

    /// Waits for a client, which may leave meanwhile and is heard while it does not say too much.
    pub async fn admit(
        &self,
        stream: &mut Stream,
        input: &mut BytesMut,
    ) -> Result<(Admitted, ClientClass), Interrupted> {
        let enter = self.enter();
        tokio::select! {
            biased;
            () = self.db.until_replaced() => Err(Interrupted::DatabaseMoved),
            inside = enter => Ok(inside),
            interrupted = interruption(stream, input, self.handle) => Err(interrupted),
        }
    }
}

/// Ready when a client gives up what it waits for. What it sends meanwhile is kept, as long as it is not too much.
pub async fn interruption(
    stream: &mut Stream,
    input: &mut BytesMut,
    handle: &ClientHandle,
) -> Interrupted {
    let mut has_left = false;
    loop {
        tokio::select! {
            biased;
            () = handle.terminated(Termination::Now) => return Interrupted::Terminated,
            () = handle.wait_cancelled() => return Interrupted::Cancelled,
            heard = stream.more(input), if !has_left && input.len() < AHEAD_BYTES => {
                if is_there(&heard) {
                    continue;
                }
                // What stands before a goodbye is done before it, however long that takes.
                has_left = says_goodbye(input);
                if !has_left {
                    return Interrupted::Left;
                }
            }
        }
    }
}

/// Whether these messages end with a Terminate.
fn says_goodbye(mut messages: &[u8]) -> bool {
    let mut splitter = Splitter::new(look_at_frontend);
    while let Ok(Some(piece)) = splitter.next(messages) {
        if piece.tag == b'X' {
            return true;
        }
        messages = &messages[piece.bytes.len()..];
    }
    false
}

/// Whether somebody said something, and did not leave.
pub fn is_there(heard: &io::Result<usize>) -> bool {
    matches!(heard, Ok(1..))
}
