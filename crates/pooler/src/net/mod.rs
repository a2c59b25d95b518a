//! The gate between sockets: clients that come, server connections that are lent to them for a turn, and who waits for whom.
//!
//! One thread: everything that is shared is behind an `Rc`, and no lock is held while somebody waits.

mod admin;
mod arrivals;
mod auth_query;
mod cancel;
mod capacity;
mod client;
mod console;
mod door;
mod greet;
mod held;
mod here;
mod lend;
mod lending;
mod log;
mod login;
mod logins;
mod metrics;
mod outside;
mod pool;
mod probe;
mod prove;
mod refusal;
mod relay;
mod settings;
mod settle;
mod shared;
mod stream;
mod system_random;
mod tls;
mod tuning;
mod upkeep;
mod verifiers;
mod visit;
mod withdraw;

use std::rc::Rc;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};

pub use crate::command::Stop;
pub use console::{Answer, Console};
use log::log;
pub use probe::look_at_servers;
pub use settings::Settings;
use shared::Shared;

/// How the configuration is read again; a mistake in words.
pub type Reload = Box<dyn Fn() -> Result<Settings, String>>;

/// Where clients come in.
pub enum Listener {
    /// An address and port.
    Tcp(TcpListener),
    /// A socket file.
    Unix(UnixListener),
}

/// A gate that serves. Clones are the same.
#[derive(Clone)]
pub struct Gateway(Rc<Shared>);

impl Gateway {
    /// Nobody has come yet.
    pub fn new(settings: Settings, reload: Reload) -> std::io::Result<Self> {
        Ok(Self(Rc::new(Shared::new(settings, reload)?)))
    }

    /// Serves whoever comes, until it has been told to stop and the last client has left. Needs a `LocalSet`.
    pub async fn serve(
        &self,
        listeners: Vec<Listener>,
        metrics: Option<TcpListener>,
    ) -> std::io::Result<()> {
        let Self(shared) = self;
        let mut tasks = tokio::task::JoinSet::new();
        for listener in listeners {
            tasks.spawn_local(accept(shared.clone(), listener));
        }
        tasks.spawn_local(upkeep::keep_up(shared.clone()));
        tasks.spawn_local(tuning::tune(shared.clone()));
        if let Some(listener) = metrics {
            tasks.spawn_local(metrics::serve(shared.clone(), listener));
        }
        shared.stopped().await;
        tasks.shutdown().await;
        shared.is_empty().await;
        log::finish();
        Ok(())
    }

    /// What the operator should know of the servers at the start.
    pub async fn look_at_servers(&self) -> Vec<String> {
        look_at_servers(&self.0.settings()).await
    }

    /// Nobody new comes in; those who are here leave as `how` says.
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

/// Pause after a failure to accept, such as no descriptor left: it would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

async fn accept(shared: Rc<Shared>, listener: Listener) {
    loop {
        match listener.accept().await {
            Ok(stream) => {
                let (login, ended) = shared.arrivals.arrive(stream.origin(), shared.bounds());
                shared.crowded_out.log(ended, |times| {
                    format!("silent connections closed to make room for others: {times}")
                });
                tokio::task::spawn_local(visit::serve(shared.clone(), stream, login));
            }
            Err(error) => {
                log(&format!("cannot accept a client: {error}"));
                // For want of a descriptor, a connection that says nothing gives its own.
                shared.arrivals.end_one();
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

impl Listener {
    async fn accept(&self) -> std::io::Result<stream::Stream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                login::keep_alive(&stream);
                Ok(stream::Stream::Tcp(stream))
            }
            Self::Unix(listener) => Ok(stream::Stream::Unix(listener.accept().await?.0)),
        }
    }
}
