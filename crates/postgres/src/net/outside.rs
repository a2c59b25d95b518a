//! Waiting outside the database: for the database to be open, for the client's own bounds, then in the one queue of all.
//!
//! The narrower bound comes first: whoever waits for it takes no place from others, and whoever has it waits in the common queue, whose order
//! is the one that counts. Places are taken in this order everywhere, so nobody waits in a circle.

use std::io;
use std::time::Instant;

use bytes::BytesMut;
use sooner_gate::{Gate, Permit};

use super::door::{Door, UserDoor};
use super::here::{Here, Leave};
use super::lend::Inside;
use super::stream::Stream;

/// What a client may send ahead while it waits for its turn.
const AHEAD_BYTES: usize = 64 * 1024;

/// Somebody who waits.
pub struct Waiting<'a> {
    pub door: &'a Door,
    pub user: &'a UserDoor,
    /// The number of its class.
    pub class: u8,
    /// When it began to wait.
    pub came_at: Instant,
    /// Whose times tell how long this one will take: the guard against starvation counts time and not heads.
    pub kind: &'a str,
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
    /// Waits until it may go in.
    async fn enter(&self) -> Inside {
        loop {
            self.door.opened().await;
            let of_user = self.pass(self.user.gate.as_ref()).await;
            let of_database = self.pass(self.door.gate.as_ref()).await;
            let of_server = self.pass(Some(&self.door.backend.gate)).await;
            // Meanwhile it may have been closed.
            if !self.door.is_paused() {
                return [of_user, of_database, of_server];
            }
        }
    }

    async fn pass(&self, gate: Option<&Gate>) -> Option<Permit> {
        // The queue has no bound, so nobody is refused.
        let waited_ns = self.came_at.elapsed().as_nanos() as u64;
        let enter = gate?.enter_after(self.class, self.kind.to_owned(), waited_ns);
        enter.await.ok()
    }

    /// The same for a client, which may leave meanwhile and is heard while it does not say too much.
    pub async fn go_in(
        &self,
        here: &Here,
        stream: &mut Stream,
        input: &mut BytesMut,
    ) -> Result<Inside, Gone> {
        let enter = self.enter();
        tokio::pin!(enter);
        loop {
            tokio::select! {
                biased;
                () = self.door.until_replaced() => return Err(Gone::Moved),
                inside = &mut enter => return Ok(inside),
                () = here.told(Leave::Now) => return Err(Gone::Told),
                () = here.withdrawn() => return Err(Gone::Withdrawn),
                heard = stream.more(input), if input.len() < AHEAD_BYTES => {
                    if !is_there(&heard) {
                        return Err(Gone::Left);
                    }
                }
            }
        }
    }
}

/// Whether somebody said something, and did not leave.
pub fn is_there(heard: &io::Result<usize>) -> bool {
    matches!(heard, Ok(1..))
}
