//! Connections to one server that wait for the next request.

use super::connect::{Connector, Sender};
use super::upload::Upload;
use hyper::client::conn::http2;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::spawn_local;
use tokio::time::{Instant, timeout};

/// Connections kept although nobody uses them.
const IDLE_MAX: usize = 64;
/// How long a connection over HTTP/1 may take to be ready again after the last byte of a response.
const READY_WITHIN: Duration = Duration::from_secs(1);

/// Reaches one server, and keeps connections to it.
pub struct Pool {
    connector: Connector,
    /// HTTP/1, the one used last at the end.
    idle: RefCell<Vec<(Sender, Instant)>>,
    /// HTTP/2, shared by all requests, and when it was used last.
    shared: RefCell<Option<(http2::SendRequest<Upload>, Instant)>>,
}

impl Pool {
    /// No connections yet.
    pub fn new(connector: Connector) -> Self {
        Self {
            connector,
            idle: RefCell::new(Vec::new()),
            shared: RefCell::new(None),
        }
    }

    /// How the server is reached.
    pub fn connector(&self) -> &Connector {
        &self.connector
    }

    /// A connection that is open as far as is known; `None` if there is none.
    pub fn take(&self, http1_alone: bool) -> Option<Sender> {
        if !http1_alone
            && let Some((sender, used_at)) = self.shared.borrow_mut().as_mut()
            && !sender.is_closed()
        {
            *used_at = Instant::now();
            return Some(Sender::Http2(sender.clone()));
        }
        let mut idle = self.idle.borrow_mut();
        while let Some((sender, _)) = idle.pop() {
            if is_open(&sender) {
                return Some(sender);
            }
        }
        None
    }

    /// A new connection.
    pub async fn connect(&self, http1_alone: bool) -> io::Result<Sender> {
        let sender = self.connector.connect(http1_alone).await?;
        if let Sender::Http2(sender) = &sender {
            *self.shared.borrow_mut() = Some((sender.clone(), Instant::now()));
        }
        Ok(sender)
    }

    /// Takes a connection back after a response was read to its end.
    pub fn give_back(self: &Rc<Self>, sender: Sender) {
        // Of HTTP/2 the pool has a handle already.
        let Sender::Http1(mut sender) = sender else {
            return;
        };
        let pool = self.clone();
        spawn_local(async move {
            // The engine has to see the end too; it closes the connection if either side asked for that.
            if let Ok(Ok(())) = timeout(READY_WITHIN, sender.ready()).await {
                pool.keep(Sender::Http1(sender));
            }
        });
    }

    fn keep(&self, sender: Sender) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() == IDLE_MAX {
            // The one that was not needed for the longest time.
            idle.remove(0);
        }
        idle.push((sender, Instant::now()));
    }

    /// Closes connections that are closed already or were not used for `keep`.
    pub fn sweep(&self, keep: Duration) {
        let now = Instant::now();
        self.idle
            .borrow_mut()
            .retain(|(sender, since)| is_open(sender) && now.duration_since(*since) < keep);
        // Requests under way keep a connection over HTTP/2 open without this handle.
        self.shared.borrow_mut().take_if(|(sender, used_at)| {
            sender.is_closed() || now.duration_since(*used_at) >= keep
        });
    }
}

fn is_open(sender: &Sender) -> bool {
    match sender {
        Sender::Http1(sender) => sender.is_ready() && !sender.is_closed(),
        Sender::Http2(sender) => !sender.is_closed(),
    }
}
