//! The gate between sockets: clients that come, server connections that are lent to them for a turn, and who waits for whom.
//!
//! One thread: everything that is shared is behind an `Rc`, and no lock is held while somebody waits.

mod cancel;
mod client;
mod greet;
mod login;
mod pool;
mod relay;
mod stream;
mod system_random;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use sooner_gate::{Gate, GateLimits, Order};
use tokio::net::{TcpListener, UnixListener};

use crate::auth::Secret;
use crate::statements::Statements;
pub use login::ServerAddress;

/// How clients prove who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMethod {
    /// Not at all.
    Trust,
    /// By SCRAM-SHA-256.
    Scram,
    /// By md5, or by SCRAM where the secret is a verifier.
    Md5,
    /// By the password in clear text.
    Password,
}

/// What a gate does.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the database is.
    pub server: ServerAddress,
    /// How clients prove who they are.
    pub auth: AuthMethod,
    /// Who may come, unless everybody may; the secrets that are passwords log in to the server as well.
    pub users: BTreeMap<String, Secret>,
    /// How many transactions may be in the database at a time, and so how many server connections there are.
    pub limit: usize,
    /// Whether a client keeps its server connection from its first transaction until it leaves.
    pub by_session: bool,
    /// Clients beyond so many are told so.
    pub clients_max: usize,
    /// How long a client waits for a server that does not answer.
    pub connect_patience: Duration,
    /// How long a client may take to say who it is.
    pub login_patience: Duration,
    /// Prepared statements that a server connection keeps.
    pub statements_max: usize,
}

/// Where clients come in.
pub enum Listener {
    /// An address and port.
    Tcp(TcpListener),
    /// A socket file.
    Unix(UnixListener),
}

/// What all clients share.
pub(crate) struct Shared {
    settings: Settings,
    gate: Gate,
    pool: RefCell<pool::Pool>,
    statements: RefCell<Statements>,
    sessions: RefCell<cancel::Sessions>,
    clients: Cell<usize>,
    /// For the exchange with those whom nobody knows.
    nobodys_secret: [u8; 32],
}

/// Serves whoever comes until the future is dropped. Needs a `LocalSet`.
pub async fn serve(settings: Settings, listeners: Vec<Listener>) -> std::io::Result<()> {
    let limits = GateLimits {
        limit: settings.limit,
        order: Order::Fcfs,
        waiting_max: None,
    };
    let shared = Rc::new(Shared {
        gate: Gate::new(limits),
        pool: RefCell::default(),
        statements: RefCell::default(),
        sessions: RefCell::default(),
        clients: Cell::new(0),
        nobodys_secret: system_random::bytes()?,
        settings,
    });
    let mut accepting = tokio::task::JoinSet::new();
    for listener in listeners {
        accepting.spawn_local(accept(shared.clone(), listener));
    }
    match accepting.join_next().await {
        Some(Ok(ended)) => ended,
        Some(Err(failed)) => Err(std::io::Error::other(failed)),
        None => Ok(()),
    }
}

/// Pause after a failure to accept, such as no descriptor left: it would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

async fn accept(shared: Rc<Shared>, listener: Listener) -> std::io::Result<()> {
    loop {
        match listener.accept().await {
            Ok(stream) => {
                tokio::task::spawn_local(client::serve(shared.clone(), stream));
            }
            Err(error) => {
                log(&format!("cannot accept a client: {error}"));
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
                Ok(stream::Stream::Tcp(stream))
            }
            Self::Unix(listener) => Ok(stream::Stream::Unix(listener.accept().await?.0)),
        }
    }
}

/// One line for the operator. A stderr that nobody reads must not stop the gate.
fn log(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "sooner gate: {line}");
}
