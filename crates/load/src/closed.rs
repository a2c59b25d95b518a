//! Saturates a server: N connections, each asking again as soon as it has its answer.
//!
//! For throughput only. Response times of a closed loop say how long N users who never think wait,
//! not how long users of an open system would. Goodput is counted from the bytes received in the
//! measured window, whichever response they belong to, so that downloads longer than the run count.

pub mod report;
mod waiting;

use crate::client::Client;
use crate::exchange::Served;
use crate::expectation::Expectation;
use crate::failure::Failure;
use crate::message::{Message, MessageError, Question};
use crate::pool::{Pool, Reuse};
use crate::rate::recorder::{Ended, Recorder, Second};
use crate::reachable::{Unreachable, is_reachable};
use crate::socket::{SocketOptions, UnconnectedSocket};
use crate::target::Target;
use report::{ClosedRun, Lasted, Window};
use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::descriptors;
use sooner_kernel::process::thread_cpu_time_ns;
use sooner_kernel::signals::EndSignals;
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::{LocalSet, spawn_local};
use waiting::{Waiting, Watch, Watched};

/// Share of the run at its start that is not measured: connections and their windows open.
const WARM_UP_SHARE: f64 = 0.2;
/// Pause after a failed request, so that a dead server is not hammered by a spinning loop.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// What to saturate, and how.
#[derive(Clone, Debug)]
pub struct ClosedOptions {
    /// What is requested; connection i always asks number i modulo how many there are. Not empty.
    pub asked: Vec<(Target, Message)>,
    /// Number of connections, all kept alive.
    pub connections: u32,
    /// Connection i sends from address i modulo their number; none: the system's choice.
    pub sources: Vec<IpAddr>,
    /// HTTP/2 with so many streams at a time on every connection; `None`: HTTP/1.1. Where the
    /// server allows fewer, requests wait for one.
    pub http2_streams: Option<NonZeroU32>,
    /// Length of the run; the first fifth is warm-up.
    pub duration: Duration,
    /// How long a request may take; `None`: as long as the run.
    pub timeout: Option<Duration>,
    /// What is expected of the figures.
    pub expectations: Vec<Expectation>,
    /// Options of every socket.
    pub socket: SocketOptions,
}

/// A saturation run that could not start.
#[derive(Debug, thiserror::Error)]
pub enum ClosedError {
    /// A socket cannot be made as asked.
    #[error(
        "cannot make a socket: {0}; is the congestion control in net.ipv4.tcp_available_congestion_control?"
    )]
    Socket(io::Error),
    /// No connection can be made.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// A socket cannot send from an address.
    #[error("cannot send from {address}: {error}; give addresses that this host has")]
    Source {
        /// The address.
        address: IpAddr,
        /// What the system says.
        error: io::Error,
    },
    /// Signals cannot be waited for.
    #[error("cannot listen to signals: {0}")]
    Signals(io::Error),
}

/// Plain requests for the paths of `targets`.
pub fn gets(targets: Vec<Target>, http2: bool) -> Result<Vec<(Target, Message)>, MessageError> {
    let get = |target: Target| {
        let message = Message::new(&Question::get(&target.path), &target, http2, false)?;
        Ok((target, message))
    };
    targets.into_iter().map(get).collect()
}

/// A closed loop with its response times.
pub struct Ran {
    /// The figures.
    pub run: ClosedRun,
    /// Response times of the measured window, and counts.
    pub recorder: Recorder,
}

/// Runs the loop; call it inside a tokio current-thread runtime that does nothing else. `told` is
/// called once a second.
///
/// In a box, so that the loop is compiled with this crate and not with each that waits for it.
pub fn run<'a>(
    options: &'a ClosedOptions,
    told: &'a mut dyn FnMut(&Second),
) -> Pin<Box<dyn Future<Output = Result<Ran, ClosedError>> + 'a>> {
    Box::pin(carry_out(options, told))
}

async fn carry_out(
    options: &ClosedOptions,
    told: &mut dyn FnMut(&Second),
) -> Result<Ran, ClosedError> {
    descriptors::raise_limit(u64::from(options.connections) + 1024).ok();
    let clients = clients(options)?;
    let mut signals = EndSignals::listen().map_err(ClosedError::Signals)?;
    if let Some(client) = clients.first() {
        for server in servers(&options.asked) {
            is_reachable(client, server).await?;
        }
    }
    let notes = Rc::new(Notes::default());
    let warm_up = options.duration.mul_f64(WARM_UP_SHARE);
    let tasks = LocalSet::new();
    let measurement = async {
        let asked = options.asked.iter().cycle();
        let connections = asked.zip(clients.iter().cycle());
        for (connection, (asked, client)) in (0..options.connections).zip(connections) {
            start(asked, options, client, &notes, connection);
        }
        let begin = Beginning::now(&clients);
        if sleep_unless_stopped(warm_up, &mut signals).await {
            // What there is is of the warm-up.
            return begin.until_now(&clients, Some(options.duration));
        }
        notes.measure();
        let begin = Beginning::now(&clients);
        let rest = options.duration - warm_up;
        let is_stopped = sleep_unless_stopped(rest, &mut signals).await;
        begin.until_now(&clients, is_stopped.then_some(options.duration))
    };
    let mut lasted = tasks
        .run_until(async {
            tokio::select! {
                lasted = measurement => lasted,
                never = notes.tell(told) => match never {},
            }
        })
        .await;
    drop(tasks);
    if !notes.recorder.borrow().is_quiet() {
        told(&notes.take_second());
    }
    let recorder = notes.recorder.take();
    let longest_ns = recorder.responses.max();
    lasted.waiting = notes
        .watch
        .waiting(lasted.end_ns, lasted.elapsed_ns, longest_ns);
    let window = notes.window.take();
    let run = window.into_run(
        options.connections,
        lasted,
        &recorder,
        &options.expectations,
    );
    Ok(Ran { run, recorder })
}

/// What the connections note.
#[derive(Default)]
struct Notes {
    /// Since the measured part began, or the run.
    window: RefCell<Window>,
    /// Likewise.
    recorder: RefCell<Recorder>,
    in_flight: Cell<u64>,
    watch: Watch,
}

impl Notes {
    fn measure(&self) {
        self.window.take();
        self.recorder.borrow_mut().begin_again();
    }

    fn asks(&self) {
        self.in_flight.set(self.in_flight.get() + 1);
        self.recorder.borrow_mut().sent(0, None, false, true);
    }

    fn ended(&self, start_ns: u64, end: Result<Served, Failure>) -> Result<Served, Failure> {
        self.in_flight.set(self.in_flight.get() - 1);
        let end = end.and_then(Served::without_error);
        let at_ns = match &end {
            Ok(served) => served.answer.last_byte_ns,
            Err(_) => monotonic_ns(),
        };
        let ended = Ended {
            intended_ns: start_ns,
            at_ns,
            is_warm_up: false,
            is_in_time: true,
        };
        self.recorder.borrow_mut().ended(ended, end);
        match &end {
            Ok(served) => self.window.borrow_mut().note(&served.answer, start_ns),
            Err(failure) => self.window.borrow_mut().note_failure(*failure),
        }
        end
    }

    fn take_second(&self) -> Second {
        self.recorder.borrow_mut().take_second(self.in_flight.get())
    }

    async fn tell(&self, told: &mut dyn FnMut(&Second)) -> Infallible {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            told(&self.take_second());
        }
    }
}

/// One for each address to send from.
fn clients(options: &ClosedOptions) -> Result<Vec<Rc<Client>>, ClosedError> {
    let sources = options.sources.iter().map(|source| Some(*source));
    let sources: Vec<Option<IpAddr>> = match options.sources.len() {
        0 => vec![None],
        _ => sources.collect(),
    };
    let client = |source| {
        let socket = SocketOptions {
            source,
            ..options.socket.clone()
        };
        let tried = UnconnectedSocket::new(options.asked[0].0.endpoint.address, &socket);
        tried.map_err(|error| match source {
            Some(address) => ClosedError::Source { address, error },
            None => ClosedError::Socket(error),
        })?;
        Ok(Rc::new(Client::new(socket)))
    };
    sources.into_iter().map(client).collect()
}

fn body_bytes(clients: &[Rc<Client>]) -> u64 {
    clients
        .iter()
        .map(|client| client.receiver().body_bytes())
        .sum()
}

fn resent(clients: &[Rc<Client>]) -> u64 {
    clients.iter().map(|client| client.resent()).sum()
}

/// Sleeps, or returns true as soon as a signal asks for the end.
async fn sleep_unless_stopped(duration: Duration, signals: &mut EndSignals) -> bool {
    tokio::select! {
        () = tokio::time::sleep(duration) => false,
        _ = signals.next() => true,
    }
}

/// When a window began, and what had been counted by then.
struct Beginning {
    start_ns: u64,
    cpu_ns: u64,
    body_bytes: u64,
    resent: u64,
}

impl Beginning {
    fn now(clients: &[Rc<Client>]) -> Beginning {
        Beginning {
            start_ns: monotonic_ns(),
            cpu_ns: thread_cpu_time_ns(),
            body_bytes: body_bytes(clients),
            resent: resent(clients),
        }
    }

    fn until_now(&self, clients: &[Rc<Client>], stopped_of: Option<Duration>) -> Lasted {
        let end_ns = monotonic_ns();
        let elapsed_ns = (end_ns - self.start_ns).max(1);
        Lasted {
            end_ns,
            waiting: Waiting::default(),
            elapsed_ns,
            cpu_share: (thread_cpu_time_ns() - self.cpu_ns) as f64 / elapsed_ns as f64,
            body_bytes: body_bytes(clients) - self.body_bytes,
            resent: resent(clients) - self.resent,
            stopped_of,
        }
    }
}

/// Each server once.
fn servers(asked: &[(Target, Message)]) -> Vec<&Target> {
    let mut servers: Vec<&Target> = Vec::new();
    for (target, _) in asked {
        let address = target.endpoint.address;
        if servers
            .iter()
            .all(|known| known.endpoint.address != address)
        {
            servers.push(target);
        }
    }
    servers
}

/// Starts what is asked on one connection.
fn start(
    asked: &(Target, Message),
    options: &ClosedOptions,
    client: &Rc<Client>,
    notes: &Rc<Notes>,
    connection: u32,
) {
    let http2_streams = options.http2_streams;
    let (target, message) = asked;
    let message = Rc::new(message.clone());
    let reuse = Reuse {
        requests_per_connection: NonZeroU32::MAX,
        http2_streams,
    };
    let pool = Pool::new(client.clone(), target.endpoint.clone(), reuse);
    let pool = Rc::new(pool.with_at_most(1));
    for _ in 0..http2_streams.map_or(1, NonZeroU32::get) {
        spawn_local(ask_forever(
            message.clone(),
            pool.clone(),
            options.timeout,
            notes.clone(),
            notes.watch.stream(connection),
        ));
    }
}

/// One stream of requests: asks, reads, asks again, until the run ends.
async fn ask_forever(
    message: Rc<Message>,
    pool: Rc<Pool>,
    timeout: Option<Duration>,
    notes: Rc<Notes>,
    watched: Rc<Watched>,
) {
    let body_bytes = || pool.body_bytes();
    loop {
        let start_ns = monotonic_ns();
        notes.asks();
        let asking = watched.over(start_ns, body_bytes, ask(&message, &pool));
        let end = match timeout {
            None => asking.await,
            Some(timeout) => {
                let end = tokio::time::timeout(timeout, asking).await;
                end.unwrap_or(Err(Failure::Late))
            }
        };
        watched.ended();
        if notes.ended(start_ns, end).is_err() {
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}

async fn ask(message: &Message, pool: &Pool) -> Result<Served, Failure> {
    let mut carrier = match pool.take() {
        Some(carrier) => carrier,
        None => pool.connect().1?,
    };
    let served = pool.send(&mut carrier, message).await;
    pool.put_back(carrier).await;
    served
}
