//! Waiting outside the database: for the database to be open, for the client's own bounds, then in the one queue of all.
//!
//! The narrower bound comes first: whoever waits for it takes no place from others, and whoever has it waits in the common queue, whose order
//! is the one that counts. Places are taken in this order everywhere, so nobody waits in a circle.

use std::io;
use std::rc::Rc;
use std::time::Instant;

use bytes::BytesMut;
use sooner_gate::{Gate, Permit};

use super::door::{Door, UserDoor};
use super::here::{self, Here};
use super::lend::{Inside, owner};
use super::logins::Leave;
use super::settings::Settings;
use super::shared::Shared;
use super::stream::Stream;
use sooner_postgres::wire::{Splitter, look_at_frontend};

/// What a client may send ahead while it waits for its turn.
const AHEAD_BYTES: usize = 64 * 1024;

/// Somebody who waits.
pub struct Waiting<'a> {
    pub door: &'a Door,
    pub user: &'a UserDoor,
    pub here: &'a Here,
    pub shared: &'a Shared,
    /// When it began to wait.
    pub came_at: Instant,
}

/// A class by its number in the configuration that was in force when it came to the queue.
pub struct Class {
    settings: Rc<Settings>,
    number: usize,
}

impl Class {
    /// That of a client.
    pub fn of(here: &Here, settings: Rc<Settings>) -> Self {
        let number = here.class(&settings.config.class);
        Self { settings, number }
    }

    /// Its name; empty for that of all who are in none.
    pub fn name(&self) -> &str {
        let class = self.settings.config.class.get(self.number);
        class.map_or("", |class| class.name.get_ref())
    }

    /// Its number; behind the last for all who are in none.
    pub fn number(&self) -> u8 {
        // There are fewer classes than that.
        u8::try_from(self.number).unwrap_or(u8::MAX)
    }
}

/// Why somebody waits no longer.
pub enum Gone {
    /// It has left.
    Left,
    /// It has been told to.
    Told,
    /// It wants what it waits for no more.
    Withdrawn,
    /// The way to its database is another one now.
    Moved,
}

impl Waiting<'_> {
    /// Waits until it may go in. Where it must log in in place of another owner it needs leave for that as well: it
    /// makes room for others while it waits for it, and has its turn when it comes back.
    async fn enter(&self) -> (Inside, Class) {
        let mut login = None;
        let mut is_back = false;
        loop {
            self.door.opened().await;
            let of_user = self.pass_bound(self.user.gate.as_ref(), is_back).await;
            let of_database = self.pass_bound(self.door.gate.as_ref(), is_back).await;
            let (of_server, class) = self.pass(&self.door.backend.gate, is_back).await;
            // Meanwhile it may have been closed.
            if self.door.is_paused() {
                continue;
            }
            let permits = [of_user, of_database, of_server];
            let must_log_in = self.must_log_in();
            login = login.filter(|_| must_log_in);
            if must_log_in && login.is_none() {
                let (backend, logins) = (&self.door.backend, &self.door.backend.logins);
                if !logins.has_room(backend.gate.status().limit) {
                    permits.into_iter().flatten().for_each(Permit::step_out);
                    backend.login_share.borrow_mut().note_wait();
                    login = self.pass(&logins.gate, false).await.0.map(Leave::new);
                    is_back = true;
                    continue;
                }
                login = self.pass(&logins.gate, false).await.0.map(Leave::new);
            }
            return (Inside::new(permits, login), class);
        }
    }

    fn must_log_in(&self) -> bool {
        let (backend, settings) = (&self.door.backend, self.shared.settings());
        let most = backend.connections(&settings.config.limits);
        let pool = backend.pool.borrow();
        // In the usual case there is room, and no need to know whose.
        pool.open() >= most && pool.must_yield(&owner(&self.here.user, self.door), most)
    }

    async fn pass_bound(&self, gate: Option<&Gate>, is_back: bool) -> Option<Permit> {
        self.pass(gate?, is_back).await.0
    }

    /// In the class that it has at the moment: classes may have become others while it waited elsewhere.
    async fn pass(&self, gate: &Gate, is_back: bool) -> (Option<Permit>, Class) {
        let class = Class::of(self.here, self.shared.settings());
        // Its like tell how long this one will take: the guard against starvation counts time and not heads.
        let kind = self.here.said.borrow().kind();
        let kind = kind.unwrap_or_else(|| class.name().to_owned());
        let waited_ns = self.came_at.elapsed().as_nanos() as u64;
        let enter = match is_back {
            true => gate.come_back(class.number(), kind, waited_ns),
            false => gate.enter_after(class.number(), kind, waited_ns),
        };
        let _waits = enter.job().map(|job| self.here.waits(gate, job));
        // The queue has no bound, so nobody is refused.
        (enter.await.ok(), class)
    }

    /// Goes in if nobody has to be waited for.
    pub async fn go_in_now(&self) -> Option<Inside> {
        tokio::select! {
            biased;
            (inside, _) = self.enter() => Some(inside),
            () = std::future::ready(()) => None,
        }
    }

    /// Waits for a client, which may leave meanwhile and is heard while it does not say too much.
    pub async fn go_in(
        &self,
        stream: &mut Stream,
        input: &mut BytesMut,
    ) -> Result<(Inside, Class), Gone> {
        let enter = self.enter();
        tokio::select! {
            biased;
            () = self.door.until_replaced() => Err(Gone::Moved),
            inside = enter => Ok(inside),
            gone = gives_up(stream, input, self.here) => Err(gone),
        }
    }
}

/// Ready when a client gives up what it waits for. What it sends meanwhile is kept, as long as it is not too much.
pub async fn gives_up(stream: &mut Stream, input: &mut BytesMut, here: &Here) -> Gone {
    let mut has_left = false;
    loop {
        tokio::select! {
            biased;
            () = here.told(here::Leave::Now) => return Gone::Told,
            () = here.withdrawn() => return Gone::Withdrawn,
            heard = stream.more(input), if !has_left && input.len() < AHEAD_BYTES => {
                if is_there(&heard) {
                    continue;
                }
                // What stands before a goodbye is done before it, however long that takes.
                has_left = says_goodbye(input);
                if !has_left {
                    return Gone::Left;
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
