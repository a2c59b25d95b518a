//! A static web server: configuration, start, accept loop, graceful stop.

use crate::access_log::{AccessLog, Closer, Destination};
use crate::connection::Site;
use crate::files::{CacheLimits, FileCache, Root};
use crate::listen::{ListenError, listen};
use sooner_uplink::Uplink;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{LocalSet, spawn_local};

/// After an accept that failed for want of descriptors or memory: long enough for some to come back.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// What to serve, and how.
#[derive(Debug, Clone)]
pub struct Server {
    /// The directory below which all files lie.
    pub root: PathBuf,
    /// Where to listen; port 0 lets the system choose.
    pub listen: Vec<SocketAddr>,
    /// Where the access log goes.
    pub access_log: Destination,
    /// Bounds of the file cache.
    pub cache: CacheLimits,
    /// Bytes read from a file at once; about the uplink's quantum when responses are ordered.
    pub chunk_bytes: usize,
    /// How long a client may take to send a request, counted from the response before it.
    pub head_timeout: Duration,
    /// How long a client may take none of the bytes that were sent to it.
    pub stall_timeout: Duration,
    /// How long responses in flight may take after the stop.
    pub grace: Duration,
}

/// A server that listens and does not serve yet.
pub struct Listening {
    listeners: Vec<TcpListener>,
    site: Rc<Site>,
    log_closer: Option<Closer>,
    grace: Duration,
}

/// Why a server does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// There is no such directory.
    #[error("no directory {}: name an existing one to serve", root.display())]
    MissingRoot {
        /// The directory asked for.
        root: PathBuf,
    },
    /// The root is something else.
    #[error("{} is not a directory: name the directory that holds the file", root.display())]
    NotADirectory {
        /// The directory asked for.
        root: PathBuf,
    },
    /// The root cannot be opened.
    #[error("cannot open the directory {}: {error}", root.display())]
    UnreadableRoot {
        /// The directory asked for.
        root: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// An address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The log cannot be opened.
    #[error(
        "cannot open the access log {destination}: {error}; name a file in an existing directory, - or off"
    )]
    AccessLog {
        /// The destination asked for.
        destination: Destination,
        /// What the system said.
        error: io::Error,
    },
}

impl Server {
    /// A server of `root` with the defaults: 64 KiB chunks, 30 s for a request, a stall of 60 s, 10 s of grace, no log.
    pub fn new(root: PathBuf, listen: Vec<SocketAddr>) -> Self {
        Self {
            root,
            listen,
            access_log: Destination::Off,
            cache: CacheLimits::default(),
            chunk_bytes: 64 << 10,
            head_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(60),
            grace: Duration::from_secs(10),
        }
    }

    /// Opens the root, the log and all listeners. Needs a tokio runtime around it; nothing is served before
    /// [`Listening::run`], but clients can connect.
    pub fn start(&self) -> Result<Listening, StartError> {
        let root = Root::open(&self.root).map_err(|error| self.root_error(error))?;
        let listeners = self
            .listen
            .iter()
            .map(|&address| open_listener(address, self.stall_timeout))
            .collect::<Result<_, _>>()?;
        let (log, log_closer) =
            AccessLog::open(&self.access_log).map_err(|error| StartError::AccessLog {
                destination: self.access_log.clone(),
                error,
            })?;
        let site = Site::new(
            FileCache::new(root, self.cache),
            log,
            self.chunk_bytes,
            self.head_timeout,
        );
        Ok(Listening {
            listeners,
            site: Rc::new(site),
            log_closer,
            grace: self.grace,
        })
    }

    fn root_error(&self, error: io::Error) -> StartError {
        let root = self.root.clone();
        match error.kind() {
            io::ErrorKind::NotFound => StartError::MissingRoot { root },
            io::ErrorKind::NotADirectory => StartError::NotADirectory { root },
            _ => StartError::UnreadableRoot { root, error },
        }
    }
}

fn open_listener(address: SocketAddr, stall_timeout: Duration) -> Result<TcpListener, ListenError> {
    let listener = listen(address, stall_timeout)?;
    TcpListener::from_std(listener).map_err(|error| ListenError::Other { address, error })
}

impl Listening {
    /// The addresses it listens on, with the ports the system chose.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners
            .iter()
            .filter_map(|listener| listener.local_addr().ok())
            .collect()
    }

    /// Serves through `uplink` until `stop` is ready; then ends idle connections, and waits for responses in flight
    /// as long as the grace allows.
    pub async fn run(mut self, uplink: Uplink, stop: impl Future<Output = ()>) {
        let log_closer = self.log_closer.take();
        let connections = LocalSet::new();
        connections.run_until(self.run_local(uplink, stop)).await;
        // What the grace cut off is logged as well.
        drop(connections);
        drop(log_closer);
    }

    async fn run_local(self, uplink: Uplink, stop: impl Future<Output = ()>) {
        let (stopping, is_stopping) = watch::channel(());
        let (alive, mut all_gone) = mpsc::channel::<()>(1);
        let accepting: Vec<_> = self
            .listeners
            .into_iter()
            .map(|listener| {
                if let Err(error) = uplink.mark_listener(&listener) {
                    eprintln!("sooner: handshakes are not put first: {error}");
                }
                let acceptor = Acceptor {
                    site: self.site.clone(),
                    uplink: uplink.clone(),
                    is_stopping: is_stopping.clone(),
                    alive: alive.clone(),
                };
                spawn_local(acceptor.accept_all(listener))
            })
            .collect();
        drop(alive);
        stop.await;
        for task in accepting {
            task.abort();
        }
        stopping.send_replace(());
        // All have ended when nobody holds the sending side any more.
        let _ = tokio::time::timeout(self.grace, all_gone.recv()).await;
    }
}

struct Acceptor {
    site: Rc<Site>,
    uplink: Uplink,
    is_stopping: watch::Receiver<()>,
    alive: mpsc::Sender<()>,
}

impl Acceptor {
    async fn accept_all(self, listener: TcpListener) {
        let mut has_complained = false;
        loop {
            match listener.accept().await {
                Ok((stream, remote)) => self.spawn(stream, remote),
                // The client went away while it waited: not our trouble.
                Err(error) if is_of_client(&error) => {}
                Err(error) => {
                    if !has_complained {
                        eprintln!(
                            "sooner: cannot accept connections: {error}; trying again (a higher `ulimit -n` may help)"
                        );
                        has_complained = true;
                    }
                    tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
                }
            }
        }
    }

    fn spawn(&self, stream: TcpStream, remote: SocketAddr) {
        let (stream, flow) = self.uplink.wrap(stream);
        let connection = self.site.serve(stream, flow, remote);
        let (mut is_stopping, alive) = (self.is_stopping.clone(), self.alive.clone());
        let site = self.site.clone();
        spawn_local(async move {
            let _alive = alive;
            let mut connection = pin!(connection);
            let result = tokio::select! {
                biased;
                result = connection.as_mut() => result,
                _ = is_stopping.changed() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            site.end(remote, result);
        });
    }
}

fn is_of_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
