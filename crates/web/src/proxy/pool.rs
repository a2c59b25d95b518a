//! Connections of one worker to one server that wait for the next request.

use super::server::Server;
use super::upstream_connection::UpstreamConnection;
use sooner_http::forwarding::request::Protocol;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_local;
use tokio::time::{Instant, timeout};

/// Connections of one version of HTTP that are kept.
const KEPT_MAX: usize = 64;
/// How long a connection over HTTP/1 may take to be ready again after the last byte of a response.
const READY_WITHIN: Duration = Duration::from_secs(1);

/// Reaches one server, and keeps connections to it.
pub struct Pool {
    server: Arc<Server>,
    /// HTTP/1, the one used last at the end.
    idle: RefCell<Vec<Idle>>,
    /// HTTP/2, in the order in which they were opened: further ones where as many requests are
    /// under way on the earlier ones as the server allows.
    shared: RefCell<Vec<Shared>>,
}

/// A connection over HTTP/2, which takes requests beside those that it has.
struct Shared {
    connection: UpstreamConnection,
    used_at: Instant,
}

/// An idle connection over HTTP/1.
struct Idle {
    connection: UpstreamConnection,
    since: Instant,
    /// When the server will close it, if it said so.
    until: Option<Instant>,
}

impl Idle {
    fn is_usable(&self, now: Instant) -> bool {
        self.connection.is_open() && self.until.is_none_or(|until| now < until)
    }
}

impl Pool {
    /// No connections yet.
    pub fn new(server: Arc<Server>) -> Self {
        Self {
            server,
            idle: RefCell::new(Vec::new()),
            shared: RefCell::new(Vec::new()),
        }
    }

    /// Whether its connections lead to this server.
    pub fn is_of(&self, server: &Arc<Server>) -> bool {
        Arc::ptr_eq(&self.server, server)
    }

    /// The server.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// A connection that is open as far as is known; `None` if there is none.
    pub fn checkout(&self, http1_only: bool) -> Option<UpstreamConnection> {
        if !http1_only && let Some(connection) = self.share() {
            return Some(connection);
        }
        let (mut idle, now) = (self.idle.borrow_mut(), Instant::now());
        while let Some(mut newest) = idle.pop() {
            if newest.is_usable(now) && newest.connection.take_up() {
                return Some(newest.connection);
            }
        }
        None
    }

    /// A handle for the first connection over HTTP/2 that has room for a request.
    fn share(&self) -> Option<UpstreamConnection> {
        let mut shared = self.shared.borrow_mut();
        shared.retain(|shared| shared.connection.is_open());
        let has_room = |shared: &&mut Shared| shared.connection.has_room();
        let first = shared.iter_mut().find(has_room)?;
        first.used_at = Instant::now();
        first.connection.share()
    }

    /// A new connection.
    pub async fn connect(&self, http1_only: bool) -> io::Result<UpstreamConnection> {
        let connector = &self.server.connector;
        let connection = connector.connect(http1_only, self.server.place()).await?;
        if let Some(handle) = connection.share() {
            self.keep_shared(handle);
        }
        Ok(connection)
    }

    /// Keeps a connection over HTTP/2 for further requests, unless there is one for them: many that
    /// come at once open one each.
    fn keep_shared(&self, connection: UpstreamConnection) {
        let mut shared = self.shared.borrow_mut();
        shared.retain(|shared| shared.connection.is_open());
        let may_have_room = |shared: &Shared| {
            let connection = &shared.connection;
            connection.has_room() || !connection.is_settled()
        };
        if shared.len() < KEPT_MAX && !shared.iter().any(may_have_room) {
            shared.push(Shared {
                connection,
                used_at: Instant::now(),
            });
        }
    }

    /// Gives no further request to `connection`, which may lead nowhere; those under way go on.
    pub fn forget(&self, connection: &UpstreamConnection) {
        self.shared
            .borrow_mut()
            .retain(|shared| !shared.connection.is_same(connection));
    }

    /// Takes a connection back after a response was read to its end; `keep_alive_seconds` is what
    /// the server said about keeping it.
    pub fn put_back(
        self: &Rc<Self>,
        mut connection: UpstreamConnection,
        keep_alive_seconds: Option<u64>,
    ) {
        // Of HTTP/2 the pool has a handle already, or wants none.
        if connection.protocol() == Protocol::Http2 {
            return;
        }
        // Then the request that goes in next finds it.
        if connection.is_open() {
            self.keep(connection, keep_alive_seconds);
            return;
        }
        let pool = self.clone();
        spawn_local(async move {
            // hyper has to see the end too; it closes the connection if either side requested that.
            if let Ok(Ok(())) = timeout(READY_WITHIN, connection.ready()).await {
                pool.keep(connection, keep_alive_seconds);
            }
        });
    }

    fn keep(&self, mut connection: UpstreamConnection, keep_alive_seconds: Option<u64>) {
        if !connection.rest(self.server.connections_max()) {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        if idle.len() == KEPT_MAX {
            // The one that was not needed for the longest time.
            idle.remove(0);
        }
        let since = Instant::now();
        // A second less than it said: a request must not meet the close on its way.
        let until = keep_alive_seconds
            .and_then(|seconds| since.checked_add(Duration::from_secs(seconds.saturating_sub(1))));
        idle.push(Idle {
            connection,
            since,
            until,
        });
    }

    /// Closes connections that are closed already or were not used for `keep`.
    pub fn sweep(&self, keep: Duration) {
        let now = Instant::now();
        self.idle
            .borrow_mut()
            .retain(|idle| idle.is_usable(now) && now.duration_since(idle.since) < keep);
        // Requests under way keep a connection over HTTP/2 open without this handle.
        self.shared.borrow_mut().retain(|shared| {
            shared.connection.is_open() && now.duration_since(shared.used_at) < keep
        });
    }
}
