//! A session of our own on the server, as a role that may see what others do.

use std::env;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_res_uid;
use sooner_kernel::privilege::Account;
use sooner_kernel::process_table;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};

use super::numbers::ProcessNumbers;
use super::server::{Place, ServerError, Wanted, connect_to, is_server};

/// What sessions see of ours.
pub const APPLICATION_NAME: &str = "sooner attach";
/// No functions and operators of others run in our sessions, and nothing ends them or their
/// statements: not what the role, the database or the server's configuration says.
const SETTINGS: &str = "-c search_path=pg_catalog -c statement_timeout=0 -c lock_timeout=0 \
    -c idle_in_transaction_session_timeout=0";
/// Those that not all versions know.
const LATER_SETTINGS: &str = "SELECT pg_catalog.set_config(name, '0', false) \
    FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) \
    ANY ('{idle_session_timeout,transaction_timeout}'::pg_catalog.text[])";
/// For how long a server may take to let us in; said in an error.
const PATIENCE: Duration = Duration::from_secs(10);
/// The oldest server, by server_version_num.
const VERSION_MIN: i32 = 150_000;

/// Why there is no session that would do.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// There is no such server.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server's address is no address.
    #[error(
        "--url {url}: {problem}; write postgresql://user@/database?host=/run/postgresql or postgresql://user@127.0.0.1:5432/database"
    )]
    Url {
        /// As it was given.
        url: String,
        /// What is wrong.
        problem: String,
    },
    /// The server refuses.
    #[error(
        "cannot log in to {place} as {role:?}: {problem}; name a role that is a member of pg_monitor with --user, and its password in PGPASSWORD"
    )]
    Login {
        /// Where.
        place: String,
        /// As whom.
        role: String,
        /// What the server says.
        problem: String,
    },
    /// It is an old one.
    #[error("the server is PostgreSQL {0}; PostgreSQL 15 and later can be looked into")]
    Version(String),
    /// The role sees too little.
    #[error(
        "role {0:?} does not see what other sessions do; run GRANT pg_monitor TO {0:?} as a superuser"
    )]
    NotAMonitor(String),
    /// Nothing is tracked.
    #[error(
        "track_activities is off on the server, so that sessions do not show what they do; set it to on"
    )]
    NotTracked,
    /// Its processes are not here.
    #[error(
        "the processes of the server cannot be seen from here; run sooner on the server's machine, and where it is in a container, as root of the host with --pid"
    )]
    NotHere,
    /// It says nothing.
    #[error(
        "the server has not let us in for 10 s; it may be stopped, or have no place for a session"
    )]
    Silent,
    /// The connection went away.
    #[error("the server ended the session: {0}")]
    Lost(#[from] tokio_postgres::Error),
}

/// A session, and what is known of its server.
pub struct Connection {
    /// Asks; its other half is a task.
    pub client: Client,
    /// As server_version has it.
    pub version: String,
    /// The server's first process.
    pub first_process: u32,
    /// The session's own process.
    pub own_process: u32,
    /// From the server's numbers to those here.
    pub numbers: ProcessNumbers,
}

/// Who logs in, and where.
#[derive(Debug, Clone)]
pub struct Login {
    /// A libpq URI; over `wanted`.
    pub url: Option<String>,
    /// Which server, where there is no address.
    pub wanted: Wanted,
    /// The role; over that of the URI.
    pub user: Option<String>,
}

impl Login {
    /// Logs in and looks whether the session will do. Needs a `LocalSet`.
    pub async fn connect(&self) -> Result<Connection, ConnectError> {
        let connected = timeout(PATIENCE, self.log_in()).await;
        connected.unwrap_or(Err(ConnectError::Silent))
    }

    async fn log_in(&self) -> Result<Connection, ConnectError> {
        let mut config = self.config()?;
        config.application_name(APPLICATION_NAME);
        // The last word counts.
        let options = format!("{} {SETTINGS}", config.get_options().unwrap_or_default());
        config.options(options.trim_start());
        if let Some(user) = &self.user {
            config.user(user);
        }
        if let (None, Ok(password)) = (config.get_password(), env::var("PGPASSWORD")) {
            config.password(password);
        }
        let place = match socket_of(&config) {
            Some(socket) => Some(find(Wanted::Socket(socket)).await?),
            None if config.get_hosts().is_empty() => Some(find(self.wanted.clone()).await?),
            None => None,
        };
        if config.get_user().is_none() {
            config.user(default_role(place.as_ref()));
        }
        if config.get_dbname().is_none() {
            config.dbname("postgres");
        }
        let role = config.get_user().unwrap_or_default().to_owned();
        let refused = |problem: String| ConnectError::Login {
            place: match &place {
                Some(place) => place.socket.display().to_string(),
                None => "the server".into(),
            },
            role: role.clone(),
            problem,
        };
        let client = match &place {
            Some(place) => over_socket(&config, place).await.map_err(refused)?,
            None => over_tcp(&config).await.map_err(refused)?,
        };
        examine(client, place).await
    }

    fn config(&self) -> Result<Config, ConnectError> {
        let Some(url) = &self.url else {
            return Ok(Config::new());
        };
        url.parse()
            .map_err(|error: tokio_postgres::Error| ConnectError::Url {
                url: without_password(url),
                problem: words(&error),
            })
    }
}

/// What stands between `:` and `@` is not for the screen.
fn without_password(url: &str) -> String {
    let hidden = || {
        let (scheme, rest) = url.split_once("://")?;
        let (user, behind) = rest.split_once('@')?;
        let (name, _) = user.split_once(':')?;
        Some(format!("{scheme}://{name}@{behind}"))
    };
    hidden().unwrap_or_else(|| url.to_owned())
}

/// The socket file of a configuration that names a folder.
fn socket_of(config: &Config) -> Option<std::path::PathBuf> {
    let Some(Host::Unix(folder)) = config.get_hosts().first() else {
        return None;
    };
    let port = config.get_ports().first().unwrap_or(&5432);
    Some(folder.join(format!(".s.PGSQL.{port}")))
}

/// The role of this process's user; root takes that of the user who runs the server.
fn default_role(place: Option<&Place>) -> String {
    if let Ok(name) = env::var("PGUSER") {
        return name;
    }
    let own = geteuid();
    let user = match place {
        Some(place) if own.is_root() => place.owner,
        _ => own.as_raw(),
    };
    let account = Account::find(&user.to_string());
    account.map_or_else(|_| "postgres".into(), |account| account.user)
}

async fn find(wanted: Wanted) -> Result<Place, ServerError> {
    let found = beside(move || Ok(Place::find(&wanted))).await;
    found.map_err(|source| ServerError::Proc("/proc/net/unix", source))?
}

/// Does what may wait in a thread of its own; the caller need not wait for it.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = oneshot::channel();
    thread::Builder::new().spawn(move || {
        // The caller has given up.
        let _ = sender.send(work());
    })?;
    let failed = |_| io::Error::other("the thread that connects has failed");
    receiver.await.unwrap_or_else(|error| Err(failed(error)))
}

async fn over_tcp(config: &Config) -> Result<Client, String> {
    let (client, connection) = config.connect(NoTls).await.map_err(|error| words(&error))?;
    // The caller of the next query is told what went wrong.
    tokio::task::spawn_local(async move { drop(connection.await) });
    Ok(client)
}

async fn over_socket(config: &Config, place: &Place) -> Result<Client, String> {
    let (socket, owner) = (place.socket.clone(), place.owner);
    let stream = beside(move || stream(&socket, owner)).await;
    let stream = stream.map_err(|error| error.to_string())?;
    let stream = stream.set_nonblocking(true).map(|()| stream);
    let stream = stream.and_then(tokio::net::UnixStream::from_std);
    let stream = stream.map_err(|error| error.to_string())?;
    let connected = config.connect_raw(stream, NoTls).await;
    let (client, connection) = connected.map_err(|error| words(&error))?;
    tokio::task::spawn_local(async move { drop(connection.await) });
    Ok(client)
}

/// Connects, in a thread that ends after that; as root it becomes the user who runs the server, in
/// whose name peer authentication lets it in. The folder is opened before, since that user may not
/// see it through /proc.
fn stream(socket: &Path, owner: u32) -> io::Result<UnixStream> {
    if !geteuid().is_root() {
        return connect_to(socket);
    }
    let (folder, name) = match (socket.parent(), socket.file_name()) {
        (Some(folder), Some(name)) => (folder, name.to_owned()),
        _ => return connect_to(socket),
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, flags, Mode::empty())?;
    set_thread_res_uid(None::<Uid>, Some(Uid::from_raw(owner)), None::<Uid>)?;
    let folder = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string());
    connect_to(&folder.join(name))
}

/// What an error says, without the frame that the library puts round it.
fn words(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(server) => server.message().to_owned(),
        None => {
            let source = std::error::Error::source(error);
            source.map_or_else(|| error.to_string(), ToString::to_string)
        }
    }
}

async fn examine(client: Client, place: Option<Place>) -> Result<Connection, ConnectError> {
    let question = "SELECT pg_catalog.current_setting('server_version_num')::pg_catalog.int4, \
        pg_catalog.current_setting('server_version'), pg_catalog.pg_backend_pid(), \
        current_user::pg_catalog.text, pg_catalog.pg_has_role('pg_read_all_stats', 'usage'), \
        pg_catalog.current_setting('track_activities')";
    let row = client.query_one(question, &[]).await?;
    let version: String = row.get(1);
    if row.get::<_, i32>(0) < VERSION_MIN {
        return Err(ConnectError::Version(version));
    }
    if !row.get::<_, bool>(4) {
        return Err(ConnectError::NotAMonitor(row.get(3)));
    }
    if row.get::<_, &str>(5) != "on" {
        return Err(ConnectError::NotTracked);
    }
    client.query(LATER_SETTINGS, &[]).await?;
    let own: i32 = row.get(2);
    let first = match place {
        Some(place) => Some(place.pid),
        // Over TCP nothing but the number says which process it is.
        None if is_server(own.cast_unsigned()) => process_table::parent(own.cast_unsigned()).ok(),
        None => None,
    };
    let first_process = first.ok_or(ConnectError::NotHere)?;
    let mut numbers = ProcessNumbers::of(first_process, own).ok_or(ConnectError::NotHere)?;
    let own_process = numbers.outside(own).ok_or(ConnectError::NotHere)?;
    Ok(Connection {
        client,
        version,
        first_process,
        own_process,
        numbers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let shown = without_password("postgresql://ann:secret@h/db");
        assert_eq!(shown, "postgresql://ann@h/db");
        assert_eq!(without_password("postgresql:///db"), "postgresql:///db");
    }

    #[tokio::test]
    async fn a_server_that_takes_nobody_is_waited_for_beside() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join(".s.PGSQL.5432");
        let listener = rustix::net::socket(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::STREAM,
            None,
        )
        .unwrap();
        let address = rustix::net::SocketAddrUnix::new(&socket).unwrap();
        rustix::net::bind(&listener, &address).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        // The only place in its queue.
        let _first = UnixStream::connect(&socket).unwrap();
        let found = timeout(Duration::from_millis(50), find(Wanted::Socket(socket))).await;
        assert!(found.is_err(), "it waits, and others go on meanwhile");
    }
}
