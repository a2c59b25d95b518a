//! Attached to a server until told to stop: the processor goes first to what classes say.

use std::cell::Cell;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use sooner_kernel::capability;
use sooner_kernel::priority;
use sooner_kernel::scheduling::RealTime;
use sooner_kernel::signals::EndSignals;
use sooner_pooler::config::ClassTable;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use super::attached::Attached;
use super::connection::{ConnectError, Connection, Login};
use super::leftovers::{self, Leftovers, ProcessId, name_of};
use super::levels::Levels;
use super::mechanism::{Mechanism, Trial, test};
use super::meter::MeterError;
use super::told::{Gate, GateSocket, Told};
use crate::control::Control;

/// Between two attempts to find a server again that went away.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// What gates told and was not looked at; a gate that tells more waits.
const TOLD_MAX: usize = 1024;
/// Between two questions who holds what a raised one waits for.
pub const INHERIT_INTERVAL: Duration = Duration::from_millis(2);

/// What the operator requested.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which server, and as whom.
    pub login: Login,
    /// Who goes first.
    pub classes: Vec<ClassTable>,
    /// By which means; none: the strongest that works.
    pub mechanism: Option<Mechanism>,
    /// Whether holders of what a higher one waits for are raised.
    pub inherits: bool,
    /// Where gates tell, and the user they run as.
    pub gate_socket: Option<(PathBuf, Option<u32>)>,
    /// What looking may cost, of all processors' time, 0 to 1.
    pub cost_share: f64,
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
        "no class goes before another; give one [[class]] a lower priority number than the others, and --config"
    )]
    NoClassFirst,
    /// No means has an effect.
    #[error(
        "no means gives a process of this server the processor first here: {0}; in a control group of its own, real time needs a budget (cpu.rt_runtime_us) and nice values work only inside it"
    )]
    NothingWorks(String),
    /// Another one is attached.
    #[error("process {0} is attached to this server already; end it with `sooner attach remove`")]
    Attached(u32),
    /// The socket file for gates cannot be made.
    #[error("--gate {}: {source}; name a file in a folder of this user", path.display())]
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
    /// The server is gone; it is waited for.
    Gone,
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
    if Levels::of(&options.classes).top() == 0 {
        return Err(DaemonError::NoClassFirst);
    }
    let cleaned = leftovers::clean()?;
    if !cleaned.is_empty() {
        tell(DaemonEvent::Cleaned(cleaned));
    }
    let mut gates = GateTasks::start(options)?;
    let mut session = Session::start(options, &mut tell).await?;
    loop {
        let ended = tokio::select! {
            biased;
            _ = ends.next() => None,
            ended = session.work(options, &mut gates.told) => Some(ended),
        };
        if ended.is_none() {
            tell(DaemonEvent::Stopping);
        }
        session.end()?;
        match ended {
            None => return Ok(()),
            Some(Err(WorkError::Daemon(error))) => return Err(error),
            Some(Err(WorkError::ServerGone) | Ok(())) => tell(DaemonEvent::Gone),
        }
        session = tokio::select! {
            biased;
            _ = ends.next() => {
                tell(DaemonEvent::Stopping);
                return Ok(());
            }
            session = Session::restart(options, &mut tell) => session?,
        };
    }
}

/// Why work ends.
pub enum WorkError {
    /// The session on the server broke.
    ServerGone,
    /// Something that does not come back.
    Daemon(DaemonError),
}

impl From<tokio_postgres::Error> for WorkError {
    fn from(_: tokio_postgres::Error) -> Self {
        WorkError::ServerGone
    }
}

/// One life of the server.
struct Session {
    connection: Connection,
    control: Control,
    leftovers: Leftovers,
    trials: Vec<Trial>,
    levels: Levels,
    _real_time: Option<RealTime>,
}

impl Session {
    async fn start(
        options: &Options,
        tell: &mut dyn FnMut(DaemonEvent),
    ) -> Result<Session, DaemonError> {
        let connection = options.login.connect().await?;
        let server = connection.first_process;
        if let Some(pid) = crate::control::holder(&name_of(server))? {
            return Err(DaemonError::Attached(
                pid.as_raw_nonzero().get().cast_unsigned(),
            ));
        }
        let wanted = match options.mechanism {
            Some(one) => vec![one],
            None => Mechanism::ALL.to_vec(),
        };
        let trials = test(&options.login, &wanted).await?;
        tell(DaemonEvent::Tested(trials.clone()));
        let Some(works) = trials.iter().find(|trial| trial.works()) else {
            let words: Vec<String> = trials.iter().map(ToString::to_string).collect();
            return Err(DaemonError::NothingWorks(words.join(", ")));
        };
        let mechanism = works.mechanism;
        let leftovers = Leftovers {
            server: ProcessId::of(server)?,
            mechanism,
            nice: priority::nice(server)?,
            gates: Vec::new(),
        };
        leftovers.write()?;
        let control = Control::listen(&name_of(server))?;
        let levels = Levels::of(&options.classes);
        // Above all that it raises and the gates, or it could not lower them.
        let real_time = match mechanism {
            Mechanism::RoundRobin => RealTime::enter_at(levels.top() + 2).ok(),
            _ => None,
        };
        tell(DaemonEvent::Ready(format!(
            "PostgreSQL {} (process {server}): the processor goes first to {}, by {mechanism}",
            connection.version,
            first_classes(options, &levels),
        )));
        Ok(Session {
            connection,
            control,
            leftovers,
            trials,
            levels,
            _real_time: real_time,
        })
    }

    /// Tries until there is a server again.
    async fn restart(
        options: &Options,
        tell: &mut dyn FnMut(DaemonEvent),
    ) -> Result<Session, DaemonError> {
        loop {
            sleep(RETRY_PAUSE).await;
            match Session::start(options, tell).await {
                Err(DaemonError::Connect(_)) => {}
                started => return started,
            }
        }
    }

    async fn work(
        &mut self,
        options: &Options,
        told: &mut mpsc::Receiver<FromGate>,
    ) -> Result<(), WorkError> {
        let mut attached = Attached::new(
            &self.connection,
            options,
            (&self.levels, &self.trials),
            &mut self.leftovers,
        )
        .await?;
        let mut look_at = Instant::now();
        let mut inherit_at = Instant::now();
        loop {
            tokio::select! {
                biased;
                one = told.recv() => attached.take(one.unwrap_or(FromGate::Nothing)),
                () = sleep_until(inherit_at), if attached.has_to_inherit() => {
                    attached.inherit().await?;
                    inherit_at = Instant::now() + attached.inherit_interval();
                }
                () = sleep_until(look_at) => {
                    attached.look().await?;
                    look_at = Instant::now() + attached.look_interval();
                }
                () = self.control.answer(|| Ok(attached.snapshot())) => {}
            }
        }
    }

    fn end(self) -> io::Result<()> {
        self.leftovers.put_back()
    }
}

fn first_classes(options: &Options, levels: &Levels) -> String {
    let raised = options
        .classes
        .iter()
        .filter(|class| levels.level(*class.priority.get_ref()) > 0);
    let names: Vec<&str> = raised.map(|class| class.name.get_ref().as_str()).collect();
    names.join(", ")
}

/// What comes from gates, by number.
#[derive(Debug)]
pub enum FromGate {
    /// One has come, of this process.
    Came(u64, Option<u32>),
    /// It tells.
    Told(u64, Vec<Told>),
    /// It is gone.
    Gone(u64),
    /// There is no socket.
    Nothing,
}

/// Tasks that listen to gates.
struct GateTasks {
    told: mpsc::Receiver<FromGate>,
    /// Keeps the channel open where there is no socket.
    _sender: mpsc::Sender<FromGate>,
}

impl GateTasks {
    fn start(options: &Options) -> Result<GateTasks, DaemonError> {
        let (sender, receiver) = mpsc::channel(TOLD_MAX);
        if let Some((path, user)) = &options.gate_socket {
            let socket =
                GateSocket::listen(path, *user).map_err(|source| DaemonError::GateSocket {
                    path: path.clone(),
                    source,
                })?;
            tokio::task::spawn_local(accept(socket, sender.clone()));
        }
        Ok(GateTasks {
            told: receiver,
            _sender: sender,
        })
    }
}

async fn accept(socket: GateSocket, sender: mpsc::Sender<FromGate>) {
    let last = Rc::new(Cell::new(0_u64));
    loop {
        let Ok((gate, pid)) = socket.accept().await else {
            // Descriptors are short; they may come back.
            sleep(RETRY_PAUSE).await;
            continue;
        };
        last.set(last.get() + 1);
        tokio::task::spawn_local(listen(gate, last.get(), pid, sender.clone()));
    }
}

async fn listen(mut gate: Gate, number: u64, pid: Option<u32>, sender: mpsc::Sender<FromGate>) {
    let mut is_open = sender.send(FromGate::Came(number, pid)).await.is_ok();
    while is_open {
        match gate.told().await {
            Some(told) => is_open = sender.send(FromGate::Told(number, told)).await.is_ok(),
            None => break,
        }
    }
    let _ = sender.send(FromGate::Gone(number)).await;
}
