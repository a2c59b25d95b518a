//! A session of our own on the server, as a role that may see what others do.

use std::env;
use std::io::{self, ErrorKind};
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
use tokio_postgres::error::SqlState;
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
/// A server that does not know its own encoding refuses to tell what is not in that of its client:
/// one session's statement would end every look.
const UNCONVERTED: &str = "SELECT pg_catalog.set_config('client_encoding', 'SQL_ASCII', false) \
    WHERE pg_catalog.current_setting('server_encoding') OPERATOR(pg_catalog.=) 'SQL_ASCII'";
/// For how long, in seconds, this session has been there, by the server's clock.
const AGE: &str = "SELECT pg_catalog.date_part('epoch', \
    pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) backend_start) \
    FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())";
/// For how long a server may take to let us in; said in an error. With hundreds of sessions on a
/// full processor, where an explanation is worth most, a login takes longer than ten seconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// So much apart are two readings of one process's age at most: the server's answer has to get here,
/// and a session counts from a little after its process began.
const AGES_APART: Duration = Duration::from_secs(10);
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
    /// The server does not let this role in.
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
    /// It lets no role in now, or not there.
    #[error("cannot log in to {place} as {role:?}: {problem}")]
    Refused {
        /// Where.
        place: String,
        /// As whom.
        role: String,
        /// What the server or the system says.
        problem: String,
    },
    /// It is an old one.
    #[error("the server is PostgreSQL {0}; this needs PostgreSQL 15 or later")]
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
        "the server has not accepted a session for 60 s; it may be stopped, or have no connection free"
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
        let refused = |refusal: Refusal| {
            let (role, problem) = (role.clone(), refusal.problem);
            let place = match &place {
                Some(place) => place.socket.display().to_string(),
                None => "the server".into(),
            };
            match refusal.is_of_role {
                true => ConnectError::Login {
                    place,
                    role,
                    problem,
                },
                false => ConnectError::Refused {
                    place,
                    role,
                    problem,
                },
            }
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

/// What stands between `:` and `@`, or behind `password=`, is not for the screen.
fn without_password(url: &str) -> String {
    let hidden = || {
        let (scheme, rest) = url.split_once("://")?;
        let (user, behind) = rest.split_once('@')?;
        let (name, _) = user.split_once(':')?;
        Some(format!("{scheme}://{name}@{behind}"))
    };
    let mut shown = hidden().unwrap_or_else(|| url.to_owned());
    const KEY: &str = "password=";
    if let Some(at) = shown.find(KEY) {
        let begin = at + KEY.len();
        let value = &shown[begin..];
        let length = match value.strip_prefix('\'') {
            // Of words in quotes.
            Some(quoted) => quoted.find('\'').map_or(value.len(), |end| end + 2),
            None => value
                .find(|c: char| c == '&' || c.is_whitespace())
                .unwrap_or(value.len()),
        };
        shown.replace_range(begin..begin + length, "...");
    }
    shown
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

/// Why a session did not begin.
#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    problem: String,
    /// Whether another role or a password might be let in.
    is_of_role: bool,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        let is_of_role = false;
        // Which of them it is depends on who was quicker. A server that cannot start a process for
        // a session says so in a way that none understands who speaks the newer protocol.
        let problem = match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => {
                "the server closed the connection; its log may say why".into()
            }
            _ => error.to_string(),
        };
        Refusal {
            problem,
            is_of_role,
        }
    }
}

impl From<tokio_postgres::Error> for Refusal {
    fn from(error: tokio_postgres::Error) -> Self {
        let source = std::error::Error::source(&error);
        if let Some(system) = source.and_then(|source| source.downcast_ref::<io::Error>()) {
            let same = system.raw_os_error().map(io::Error::from_raw_os_error);
            let same = same.unwrap_or_else(|| io::Error::new(system.kind(), system.to_string()));
            return same.into();
        }
        if error.is_closed() {
            return io::Error::from(ErrorKind::UnexpectedEof).into();
        }
        // Class 28 is that of roles and passwords; what the library itself lacks is a password.
        let code = error.code().map(SqlState::code);
        Refusal {
            problem: words(&error),
            is_of_role: code.is_none_or(|code| code.starts_with("28")),
        }
    }
}

async fn over_tcp(config: &Config) -> Result<Client, Refusal> {
    let (client, connection) = config.connect(NoTls).await?;
    // The caller of the next query is told what went wrong.
    tokio::task::spawn_local(async move { drop(connection.await) });
    Ok(client)
}

async fn over_socket(config: &Config, place: &Place) -> Result<Client, Refusal> {
    let (socket, owner) = (place.socket.clone(), place.owner);
    let stream = beside(move || stream(&socket, owner)).await?;
    stream.set_nonblocking(true)?;
    let stream = tokio::net::UnixStream::from_std(stream)?;
    let (client, connection) = config.connect_raw(stream, NoTls).await?;
    tokio::task::spawn_local(async move { drop(connection.await) });
    Ok(client)
}

/// Connects, in a thread that ends after that; as root it becomes the user who runs the server,
/// whom peer authentication lets in. The folder is opened before, since that user may not
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
    client.query(UNCONVERTED, &[]).await?;
    let own: i32 = row.get(2);
    let first_process = match place {
        Some(place) => place.pid,
        None => {
            let age_s: Option<f64> = client.query_one(AGE, &[]).await?.get(0);
            first_by_number(own.cast_unsigned(), age_s).ok_or(ConnectError::NotHere)?
        }
    };
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

/// The first process of a server of which one session has this number and this age. Over TCP
/// nothing else says which process it is: the server may be on another machine or in a container,
/// and its number that of another process here, even of another server.
fn first_by_number(own: u32, age_s: Option<f64>) -> Option<u32> {
    let first = process_table::parent(own).ok()?;
    let is_it = has_age(own, age_s?) && is_server(own) && is_server(first);
    is_it.then_some(first)
}

/// Whether a process is so old.
fn has_age(pid: u32, age_s: f64) -> bool {
    let age = process_table::age(pid);
    age.is_ok_and(|age| (age.as_secs_f64() - age_s).abs() <= AGES_APART.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let shown = without_password("postgresql://ann:secret@h/db");
        assert_eq!(shown, "postgresql://ann@h/db");
        assert_eq!(without_password("postgresql:///db"), "postgresql:///db");
        for (url, shown) in [
            (
                "postgresql:///app?user=m&password=se%20c&service=x",
                "postgresql:///app?user=m&password=...&service=x",
            ),
            ("host=h password=secret", "host=h password=..."),
            ("password='a b' host=h", "password=... host=h"),
            ("password='a b", "password=..."),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }

    #[test]
    fn a_process_with_the_number_of_a_session_elsewhere_is_another_age() {
        let own = std::process::id();
        let age_s = process_table::age(own).unwrap().as_secs_f64();
        assert!(has_age(own, age_s));
        assert!(!has_age(own, age_s + 60.0) && !has_age(u32::MAX, age_s));
        assert_eq!(first_by_number(own, Some(age_s)), None, "no server");
    }

    #[test]
    fn only_what_another_role_could_mend_is_of_the_role() {
        let of = |kind: ErrorKind| Refusal::from(io::Error::from(kind));
        // A server that cannot start a process: in the words of one.
        assert_eq!(of(ErrorKind::ConnectionReset), of(ErrorKind::BrokenPipe));
        assert!(!of(ErrorKind::ConnectionRefused).is_of_role);
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
