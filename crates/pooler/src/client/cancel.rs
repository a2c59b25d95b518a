//! Cancel requests: a client knows a number and a key of the gate's, which stand for the server
//! connection it has at the moment, if any.

use crate::client::handle::ClientHandle;
use crate::pool::ShownConnection;
use crate::pool::lease::{COMMAND_PATIENCE, in_time};
use crate::pool::server_session::{self, LoginError, ServerKey};
use crate::pool::upstream::Upstream;
use crate::pooler::Pooler;
use crate::random;
use bytes::{BufMut, BytesMut};
use std::collections::HashMap;
use std::io;
use std::rc::{Rc, Weak};
use std::time::Instant;

/// The longest key, for clients that speak protocol 3.2.
const SECRET_BYTES: usize = 32;
/// What older clients can keep.
const SHORT_SECRET_BYTES: usize = 4;
/// A cancel request's number instead of a version.
const CANCEL: i32 = 80_877_102;

/// What a client runs on at the moment.
#[derive(Clone)]
pub struct CancelTarget {
    pub key: ServerKey,
    pub upstream: Rc<Upstream>,
    pub cancel_lock: CancelLock,
    /// The connection, as tables show it.
    pub shown: Rc<ShownConnection>,
}

/// Locked while a cancel request is on its way to a server connection: the next client is not to be
/// hit. Holds whether one may still come although it is not waited for any more.
pub type CancelLock = Rc<tokio::sync::Mutex<bool>>;

/// What a client is known by.
pub struct CancelKey {
    pub process_id: i32,
    pub secret: Vec<u8>,
}

/// Clients' numbers begin above every process's, so that none of them is the number of a server
/// process that another client has.
const FIRST_ID: i32 = 1 << 22;

/// All clients that can be cancelled.
#[derive(Default)]
pub struct CancelKeys {
    by_id: HashMap<i32, (Vec<u8>, Weak<ClientHandle>)>,
    last_id: i32,
}

impl CancelKeys {
    /// A new client; its key is long if it can keep that. It has the number of the server process
    /// that it keeps, unless a client of another server has the same.
    pub fn issue(
        &mut self,
        handle: &Rc<ClientHandle>,
        takes_long_key: bool,
        kept_id: Option<i32>,
    ) -> io::Result<CancelKey> {
        let kept_id = kept_id.filter(|id| *id > 0 && !self.by_id.contains_key(id));
        let process_id = kept_id.unwrap_or_else(|| self.next_id());
        let secret: [u8; SECRET_BYTES] = random::bytes()?;
        let length = if takes_long_key {
            SECRET_BYTES
        } else {
            SHORT_SECRET_BYTES
        };
        let cancel_key = CancelKey {
            process_id,
            secret: secret[..length].to_vec(),
        };
        let entry = (cancel_key.secret.clone(), Rc::downgrade(handle));
        self.by_id.insert(cancel_key.process_id, entry);
        Ok(cancel_key)
    }

    fn next_id(&mut self) -> i32 {
        loop {
            self.last_id = self.last_id.wrapping_add(1).max(FIRST_ID);
            if !self.by_id.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }

    /// The client has left.
    pub fn revoke(&mut self, process_id: i32) {
        self.by_id.remove(&process_id);
    }

    fn client(&self, process_id: i32, secret: &[u8]) -> Option<Rc<ClientHandle>> {
        let (own, handle) = self.by_id.get(&process_id)?;
        (own == secret).then(|| handle.upgrade())?
    }
}

/// A cancel request. If the key is right it is passed on where the client runs something, and what
/// waits for its turn is withdrawn; else it is forgotten, and answered in no case.
pub async fn cancel(pooler: &Pooler, process_id: i32, secret: &[u8], came_at: Instant) {
    let found = pooler.cancel_keys.borrow().client(process_id, secret);
    let Some(handle) = found else { return };
    // What came later it does not mean, however long it was on its way.
    if handle.asked_at.get() > came_at {
        return;
    }
    handle.preemption.cancelled_by_client();
    if handle.has_lease() {
        // What has begun while it waited for another one it does not mean either.
        interrupt(&handle, || handle.asked_at.get() <= came_at).await;
    } else {
        handle.cancel_wait();
    }
}

/// Has the server cancel what it runs for a client, if that is still to be when no other request is
/// on its way. Whether it was told.
pub async fn interrupt(handle: &ClientHandle, is_due: impl Fn() -> bool) -> bool {
    let running = handle.cancel_target.borrow().clone();
    let Some(target) = running else { return false };
    // What is over already waits for nothing.
    if !is_due() {
        return false;
    }
    let mut may_still_come = target.cancel_lock.lock().await;
    // Meanwhile the connection may have gone to another client.
    let is_still_there = handle
        .cancel_target
        .borrow()
        .as_ref()
        .is_some_and(|now| now.key == target.key);
    if !is_still_there || !is_due() {
        return false;
    }
    // Where this future is dropped while the request is on its way, it stays so; and an earlier one
    // may still come.
    let before = std::mem::replace(&mut *may_still_come, true);
    match in_time(COMMAND_PATIENCE, send(&target, &is_due)).await {
        Ok(was_sent) => {
            *may_still_come = before;
            was_sent
        }
        Err(error) => {
            let address = &target.upstream.address;
            crate::log::log(&format!(
                "a cancel request did not reach {address}: {error}"
            ));
            false
        }
    }
}

/// Sends it if it is still to be when there is a connection for it, and waits until the server has
/// taken it: it closes the connection then. It goes where the session is, as libpq's does: the
/// server's name may be another's by now. Whether it was sent.
pub async fn send(target: &CancelTarget, is_due: impl Fn() -> bool) -> Result<bool, LoginError> {
    let CancelTarget { key, upstream, .. } = target;
    let (connector, peer) = (upstream.connector(), target.shown.peer);
    let connecting = server_session::connect_to(&upstream.address, peer, connector.as_deref());
    let mut stream = connecting.await?;
    if !is_due() {
        return Ok(false);
    }
    let mut out = BytesMut::new();
    out.put_i32(12 + key.secret.len() as i32);
    out.put_i32(CANCEL);
    out.put_i32(key.process_id);
    out.put_slice(&key.secret);
    stream.flush_all(&mut out).await?;
    stream.more(&mut BytesMut::new()).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::configuration::Configuration;
    use std::net::SocketAddr;
    use std::time::SystemTime;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    /// A session there, of a server that has this port by its name.
    fn target(peer: Option<SocketAddr>, named: u16) -> CancelTarget {
        let text = format!(
            "auth = \"trust\"\n[[database]]\nname = \"shop\"\n\
             server = \"postgresql://127.0.0.1:{named}?sslmode=disable\"\n"
        );
        let config = Config::parse(&text).unwrap();
        let (configuration, _) = Configuration::load(config, SystemTime::now()).unwrap();
        let address = configuration.config.database[0].server.get_ref().clone();
        CancelTarget {
            key: ServerKey {
                process_id: 7,
                secret: vec![1, 2, 3, 4],
            },
            upstream: Rc::new(Upstream::new(address, &configuration)),
            cancel_lock: Rc::default(),
            shown: Rc::new(ShownConnection {
                opened_at: Instant::now(),
                user: "ann".into(),
                peer,
                local: None,
                tls: None,
            }),
        }
    }

    #[tokio::test]
    async fn what_is_not_due_does_not_wait_for_what_holds_the_connection() {
        let target = target(None, 1);
        let handle = ClientHandle::new(1, "ann", "shop", None, None, None);
        handle.cancel_target.replace(Some(target.clone()));
        let _held = target.cancel_lock.lock().await;
        let told = tokio::time::timeout(COMMAND_PATIENCE, interrupt(&handle, || false));
        assert_eq!(told.await, Ok(false));
    }

    /// The server's name may lead to another one since the session began.
    #[tokio::test]
    async fn a_cancel_request_goes_where_its_session_is() {
        let here = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let named = elsewhere.local_addr().unwrap().port();
        let target = target(here.local_addr().ok(), named);
        let taken = async {
            let (mut stream, _) = tokio::select! {
                taken = here.accept() => taken.unwrap(),
                _ = elsewhere.accept() => panic!("it goes where the name leads now"),
            };
            let mut heard = [0; 16];
            stream.read_exact(&mut heard).await.unwrap();
            heard
        };
        let (sent, heard) = tokio::join!(send(&target, || true), taken);
        assert!(sent.unwrap());
        let request = b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x07\x01\x02\x03\x04";
        assert_eq!(&heard, request);
    }
}
