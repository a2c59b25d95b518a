//! The gateway: listens, and starts a task for each client and for what is done regularly.
//!
//! One thread: everything that is shared is behind an `Rc`, and no lock is held over an `await`.

use crate::client::connection;
use crate::configuration::Configuration;
use crate::console::command::Stop;
use crate::log::{self, log};
use crate::pool::probe::probe_servers;
use crate::pool::server_session::keep_alive;
use crate::pool::{limit_controller, orders, overtime};
use crate::pooler::Pooler;
use crate::stream::Stream;
use crate::{admin, lock_waits, priorities, upkeep};
use sooner_operate::AcceptFailures;
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, UnixListener};

/// How the configuration is read again; a mistake in words.
pub type Reload = Box<dyn Fn() -> Result<Configuration, String>>;

/// Where clients come in.
pub enum Listener {
    /// An address and port.
    Tcp(TcpListener),
    /// A socket file.
    Unix(UnixListener),
}

/// A gate that serves. Clones are the same.
#[derive(Clone)]
pub struct Gateway(Rc<Pooler>);

impl Gateway {
    /// No client has come yet.
    pub fn new(configuration: Configuration, reload: Reload) -> std::io::Result<Self> {
        Ok(Self(Rc::new(Pooler::new(configuration, reload)?)))
    }

    /// Serves clients until it has been told to stop and the last client has left. Needs a
    /// `LocalSet`.
    ///
    /// In a box, so that the proxy is compiled with this crate and not with each that waits for it.
    pub fn serve(
        &self,
        listeners: Vec<Listener>,
        metrics: Option<TcpListener>,
    ) -> Pin<Box<dyn Future<Output = std::io::Result<()>> + '_>> {
        Box::pin(self.serve_until_stopped(listeners, metrics))
    }

    async fn serve_until_stopped(
        &self,
        listeners: Vec<Listener>,
        metrics: Option<TcpListener>,
    ) -> std::io::Result<()> {
        let Self(pooler) = self;
        let mut tasks = tokio::task::JoinSet::new();
        for listener in listeners {
            tasks.spawn_local(accept(pooler.clone(), listener));
        }
        tasks.spawn_local(upkeep::keep_up(pooler.clone()));
        tasks.spawn_local(limit_controller::run(pooler.clone()));
        tasks.spawn_local(orders::run(pooler.clone()));
        tasks.spawn_local(overtime::run(pooler.clone()));
        tasks.spawn_local(priorities::keep_connected(pooler.clone()));
        tasks.spawn_local(lock_waits::watch(pooler.clone()));
        if let Some(listener) = metrics {
            tasks.spawn_local(admin::serve(pooler.clone(), listener));
        }
        pooler.stopped().await;
        // Until then clients are served as before, and those that come are told why they are not.
        pooler.is_empty().await;
        tasks.shutdown().await;
        log::finish();
        Ok(())
    }

    /// What the operator should know of the servers at the start.
    pub async fn probe_servers(&self) -> Vec<String> {
        probe_servers(&self.0.configuration()).await
    }

    /// Takes no more clients but admins; those that are connected leave as `how` says.
    pub fn stop(&self, how: Stop) {
        self.0.stop(how);
    }

    /// How many clients are here.
    pub fn clients(&self) -> usize {
        self.0.clients.borrow().len()
    }

    /// Reads the configuration again; after a mistake, which goes to the log, nothing has changed.
    pub fn reload(&self) {
        match self.0.reload() {
            Ok(()) => log("the configuration was read again"),
            Err(mistake) => log(&format!("{mistake}; the old configuration stays")),
        }
    }
}

/// So many silent connections end at each failure to accept, so that a few seconds end them all.
const ENDED_FOR_DESCRIPTORS: usize = 16;

/// Pause after a failure to accept, such as no descriptor left: it would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

async fn accept(pooler: Rc<Pooler>, listener: Listener) {
    let mut failures = AcceptFailures::new("cannot accept clients", "trying again");
    loop {
        match listener.accept().await {
            Ok(stream) => {
                failures.end();
                let (login_slot, ended) =
                    pooler.slots.arrive(stream.origin(), pooler.slot_limits());
                pooler.crowded_out.log(ended, |times| {
                    format!("silent connections closed to make room for others: {times}")
                });
                tokio::task::spawn_local(connection::serve(pooler.clone(), stream, login_slot));
            }
            Err(error) => {
                if let Some(line) = failures.line(&error, Instant::now()) {
                    log(&line);
                }
                if failures.is_ours(&error) {
                    // For want of a descriptor, connections that say nothing give theirs.
                    pooler.slots.end_for_room(ENDED_FOR_DESCRIPTORS);
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

impl Listener {
    async fn accept(&self) -> std::io::Result<Stream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                keep_alive(&stream);
                Ok(Stream::Tcp(stream))
            }
            Self::Unix(listener) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }
}
