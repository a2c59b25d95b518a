//! Attached to a server until told to stop: the processor goes first to what classes say.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use sooner_kernel::signals::EndSignals;
use sooner_kernel::{capability, descriptors};
use sooner_pooler::config::ClassTable;
use tokio::time::sleep;

use super::connection::{ConnectError, Login};
use super::gate_tasks::GateTasks;
use super::leftovers::Leftovers;
use super::levels::Levels;
use super::mechanism::Mechanism;
use super::meter::MeterError;
use super::session::{Prepared, Session, Waiting};
use super::told::Guests;
use super::trial::Trial;
use crate::record::{self, Cleaned};

/// Between two attempts to find a server again that went away.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// The same where no means works: a test costs a second of a processor.
const NOTHING_WORKS_PAUSE: Duration = Duration::from_secs(30);
/// Logging in and trying what works is said to take long after this.
const SLOW_LOGIN: Duration = Duration::from_secs(5);
/// Two for each session that is looked at, as far as the system lets.
pub const DESCRIPTORS: u64 = 1 << 16;

/// What the operator requested.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which server, and as whom.
    pub login: Login,
    /// Who goes first.
    pub classes: Vec<ClassTable>,
    /// By which means; none: the strongest that works and may be chosen.
    pub mechanism: Option<Mechanism>,
    /// Whether holders of what a higher one waits for are raised.
    pub inherits: bool,
    /// Whether classes behind the middle are lowered.
    pub lowers: bool,
    /// Where gates tell.
    pub gate_socket: Option<GateAt>,
    /// What looking may cost, of all processors' time, 0 to 1.
    pub cost_share: f64,
}

/// Where gates tell, and who may.
#[derive(Debug, Clone)]
pub struct GateAt {
    /// The socket file.
    pub path: PathBuf,
    /// Besides this user and root.
    pub guests: Guests,
}

/// Why it did not begin, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// No session on the server.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The kernel does not show processes.
    #[error(transparent)]
    Meter(#[from] MeterError),
    /// A capability is missing.
    #[error(
        "giving processes of the server the processor first needs CAP_SYS_NICE; run as root, or with AmbientCapabilities=CAP_SYS_NICE in a systemd unit"
    )]
    NotPermitted,
    /// All classes are alike.
    #[error(
        "no class goes before another; give one [[class]] a lower priority number than the others and than 100, and --config"
    )]
    NoClassFirst,
    /// None is behind the middle.
    #[error(
        "--lower: no class has a priority above 100, so none would be lowered; give one [[class]] such a priority in --config, or leave --lower out"
    )]
    NoClassLowered,
    /// No means puts a process behind others.
    #[error(
        "--lower: no mechanism puts a process of this server behind others here: {0}; leave --lower out"
    )]
    NothingLowers(String),
    /// No means has an effect.
    #[error(
        "no mechanism gives a process of this server the processor first here: {0}; in a control group of its own, real time needs a budget (cpu.rt_runtime_us) and nice values work only inside it; in a user namespace nothing is permitted"
    )]
    NothingWorks(String),
    /// Another one is attached.
    #[error(
        "process {pid} is attached to this server already; end it with `sooner attach remove --postgres --pid {server}`"
    )]
    Attached {
        /// Its process.
        pid: u32,
        /// The server's first process.
        server: u32,
    },
    /// The socket file for gates cannot be made.
    #[error("--gate {}: {source}; name a socket file in a folder of this user", path.display())]
    GateSocket {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system refused something.
    #[error("{0}")]
    System(#[from] io::Error),
}

/// What it tells its caller.
#[derive(Debug, Clone, PartialEq)]
pub enum DaemonEvent {
    /// What killed ones had changed of these servers was put back.
    Cleaned(Vec<u32>),
    /// What came of the test.
    Tested(Vec<Trial>),
    /// The processor goes first to what classes say; how, in one line.
    Ready(String),
    /// The session on the server is lost, in one line why; the server is waited for.
    Gone(String),
    /// Something the operator should know, in one line.
    Problem(String),
    /// It ends, and puts everything back.
    Stopping,
}

/// Attaches until SIGTERM, SIGINT or SIGHUP. Everything is put back when it returns. Needs a
/// `LocalSet`.
pub fn run<'a>(
    options: &'a Options,
    tell: Box<dyn FnMut(DaemonEvent) + 'a>,
) -> Pin<Box<dyn Future<Output = Result<(), DaemonError>> + 'a>> {
    // A box, so that it is compiled here and not with its caller.
    Box::pin(run_until_ended(options, tell))
}

async fn run_until_ended(
    options: &Options,
    mut tell: Box<dyn FnMut(DaemonEvent) + '_>,
) -> Result<(), DaemonError> {
    // Before anything is changed, so that no signal can come too early.
    let mut ends = EndSignals::listen()?;
    if !capability::has_sys_nice() {
        return Err(DaemonError::NotPermitted);
    }
    let levels = Levels::of(&options.classes, options.lowers);
    if options.lowers && !levels.lowers() {
        return Err(DaemonError::NoClassLowered);
    }
    if levels.top() == 0 && !levels.lowers() {
        return Err(DaemonError::NoClassFirst);
    }
    // Fewer are no obstacle: the system may have its reasons.
    let _ = descriptors::raise_hard_limit(DESCRIPTORS);
    let Cleaned { servers, problems } = record::clean::<Leftovers>()?;
    if !servers.is_empty() {
        tell(DaemonEvent::Cleaned(servers));
    }
    for problem in problems {
        tell(DaemonEvent::Problem(problem));
    }
    let mut gates = GateTasks::start(options.gate_socket.as_ref())?;
    let prepared = tokio::select! {
        biased;
        _ = ends.next() => None,
        prepared = saying_when_slow(Prepared::with(options), SLOW_LOGIN, || {
            let words = "it takes long to log in and to try what works; still at it";
            tell(DaemonEvent::Problem(words.into()));
        }) => Some(prepared?),
    };
    let Some(prepared) = prepared else {
        tell(DaemonEvent::Stopping);
        return Ok(());
    };
    let mut session = Session::begin(options, prepared, &mut tell, &mut None)?;
    loop {
        let lost = tokio::select! {
            biased;
            _ = ends.next() => None,
            lost = session.work(options, &mut gates, &mut tell) => Some(lost),
        };
        let Some(lost) = lost else {
            tell(DaemonEvent::Stopping);
            session.end()?;
            return Ok(());
        };
        // What gates told is forgotten here: they come again, and tell anew.
        gates.close_all();
        let waiting = session.end()?;
        match lost {
            WorkError::Daemon(error) => return Err(error),
            WorkError::ServerGone(words) => tell(DaemonEvent::Gone(words)),
        }
        let restarted = tokio::select! {
            biased;
            _ = ends.next() => None,
            session = restart(options, &mut tell, waiting) => Some(session?),
        };
        let Some(restarted) = restarted else {
            tell(DaemonEvent::Stopping);
            return Ok(());
        };
        session = restarted;
    }
}

/// Does something, and says so where it is not done after so long.
async fn saying_when_slow<T>(
    work: impl Future<Output = T>,
    soon: Duration,
    say: impl FnOnce(),
) -> T {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = sleep(soon) => say(),
    }
    work.await
}

/// Tries until there is a server again. Why there is none is told when it changes.
async fn restart(
    options: &Options,
    tell: &mut dyn FnMut(DaemonEvent),
    waiting: Waiting,
) -> Result<Session, DaemonError> {
    let mut waiting = Some(waiting);
    let mut last = None;
    let mut pause = RETRY_PAUSE;
    loop {
        let prepared = async {
            sleep(pause).await;
            Prepared::with(options).await
        };
        let prepared = Waiting::during(waiting.as_ref(), prepared).await;
        let begun =
            prepared.and_then(|prepared| Session::begin(options, prepared, tell, &mut waiting));
        let error = match begun {
            Ok(session) => return Ok(session),
            Err(error @ DaemonError::Attached { .. }) => return Err(error),
            Err(error) => error,
        };
        pause = match error {
            DaemonError::NothingWorks(_) | DaemonError::NothingLowers(_) => NOTHING_WORKS_PAUSE,
            _ => RETRY_PAUSE,
        };
        let words = error.to_string();
        if last.as_ref() != Some(&words) {
            tell(DaemonEvent::Problem(format!("still waiting: {words}")));
            last = Some(words);
        }
    }
}

/// Why work ends.
#[derive(Debug)]
pub enum WorkError {
    /// The session on the server broke.
    ServerGone(String),
    /// Something that does not come back.
    Daemon(DaemonError),
}

impl From<tokio_postgres::Error> for WorkError {
    fn from(error: tokio_postgres::Error) -> Self {
        let own = error.as_db_error().map(ToString::to_string);
        WorkError::ServerGone(own.unwrap_or_else(|| error.to_string()))
    }
}
