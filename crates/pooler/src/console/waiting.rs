//! Commands that wait: for as long as their client is there, and until it cancels them.

use crate::client::cancel::CancelKey;
use crate::client::handle::ClientHandle;
use crate::console::Failure;
use crate::console::sessions::ConsoleSession;
use crate::pool::admission::is_there;
use crate::pool::database::Database;
use crate::pooler::Pooler;
use crate::stream::Stream;
use bytes::BytesMut;
use std::io;
use std::rc::Rc;

/// What a client may send ahead while its command waits.
const AHEAD_BYTES: usize = 1 << 16;

/// The key by which a session's commands are cancelled, as long as this is there.
pub(super) struct ConsoleKey {
    pooler: Rc<Pooler>,
    pub(super) key: CancelKey,
    pub(super) handle: Rc<ClientHandle>,
}

impl ConsoleKey {
    /// One for a session; long if its client can keep that.
    pub(super) fn issue(
        pooler: &Rc<Pooler>,
        session: &ConsoleSession,
        takes_long_key: bool,
    ) -> io::Result<Self> {
        let ConsoleSession { user, database, .. } = session;
        // It is none of the clients, so it needs no number among them.
        let handle = ClientHandle::new(0, user, database, session.peer, session.tls.clone(), None);
        let mut cancel_keys = pooler.cancel_keys.borrow_mut();
        let key = cancel_keys.issue(&handle, takes_long_key, None)?;
        Ok(Self {
            pooler: pooler.clone(),
            key,
            handle,
        })
    }
}

impl Drop for ConsoleKey {
    fn drop(&mut self) {
        let mut cancel_keys = self.pooler.cancel_keys.borrow_mut();
        cancel_keys.revoke(self.key.process_id);
    }
}

/// Ready when a client has left; what it sends until then is kept, as long as it is not too much.
pub(super) async fn left(stream: &mut Stream, input: &mut BytesMut) {
    while input.len() < AHEAD_BYTES {
        if !is_there(&stream.more(input).await) {
            return;
        }
    }
    std::future::pending().await
}

/// Waits for something unless the session's client cancels it.
pub(super) async fn unless_cancelled<T>(
    handle: &ClientHandle,
    waiting: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        biased;
        waited = waiting => waited,
        () = handle.wait_cancelled() => Err(Failure::cancelled()),
    }
}

/// Waits until no server connection to a paused database is in use, and closes the others: a server
/// that is stopped now need not wait for the gate.
pub(super) async fn until_unused(pooler: &Pooler, db: &Database) -> Result<(), Failure> {
    // It may have been moved meanwhile.
    let present = || {
        let all = pooler.databases().into_iter();
        all.filter(|now| now.name == db.name).last()
    };
    let is_resumed = || present().is_some_and(|now| !now.is_paused());
    let leases = &db.leases;
    leases
        .wait_until(|| leases.count() == 0 || is_resumed())
        .await;
    if is_resumed() {
        let name = &db.name;
        let words =
            format!("RESUME has ended the pause of database {name:?} before it was reached");
        return Err(words.into());
    }
    if let Some(now) = present() {
        now.replace_connections();
    }
    Ok(())
}
