//! Saturates a server: N connections, each asking again as soon as it has its answer.
//!
//! For throughput only. Response times of a closed loop say how long N users who never think wait,
//! not how long users of an open system would. Goodput is counted from the bytes received in the
//! measured window, whichever response they belong to, so that downloads longer than the run count.

pub mod report;

use crate::client::Client;
use crate::exchange::Served;
use crate::failure::Failure;
use crate::pool::{Pool, Reuse};
use crate::socket::{SocketOptions, UnconnectedSocket};
use crate::target::Target;
use report::{ClosedRun, Lasted, Window};
use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::descriptors;
use sooner_kernel::process::thread_cpu_time_ns;
use sooner_kernel::signals::EndSignals;
use std::cell::RefCell;
use std::io;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::{LocalSet, spawn_local};

/// Share of the run at its start that is not measured: connections and their windows open.
const WARM_UP_SHARE: f64 = 0.2;
/// Pause after a failed request, so that a dead server is not hammered by a spinning loop.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// What to saturate, and how.
#[derive(Clone, Debug)]
pub struct ClosedOptions {
    /// What is requested; connection i always asks for target i modulo their number. Not empty.
    pub targets: Vec<Target>,
    /// Number of connections, all kept alive.
    pub connections: u32,
    /// Connection i sends from address i modulo their number; none: the system's choice.
    pub sources: Vec<IpAddr>,
    /// HTTP/2 with so many streams at a time on every connection; `None`: HTTP/1.1. Where the
    /// server allows fewer, more connections are opened.
    pub http2_streams: Option<NonZeroU32>,
    /// Length of the run; the first fifth is warm-up.
    pub duration: Duration,
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

/// Runs the loop; call it inside a tokio current-thread runtime that does nothing else.
///
/// In a box, so that the loop is compiled with this crate and not with each that waits for it.
pub fn run(
    options: &ClosedOptions,
) -> Pin<Box<dyn Future<Output = Result<ClosedRun, ClosedError>> + '_>> {
    Box::pin(carry_out(options))
}

async fn carry_out(options: &ClosedOptions) -> Result<ClosedRun, ClosedError> {
    descriptors::raise_limit(u64::from(options.connections) + 1024).ok();
    let clients = clients(options)?;
    let mut signals = EndSignals::listen().map_err(ClosedError::Signals)?;
    let window = Rc::new(RefCell::new(Window::default()));
    let warm_up = options.duration.mul_f64(WARM_UP_SHARE);
    let tasks = LocalSet::new();
    let measurement = async {
        let targets = options.targets.iter().cycle();
        let connections = targets.zip(clients.iter().cycle());
        for (target, client) in connections.take(options.connections as usize) {
            start(target, options.http2_streams, client, &window);
        }
        let begin = Beginning::now(&clients);
        if sleep_unless_stopped(warm_up, &mut signals).await {
            // What there is is of the warm-up.
            return begin.until_now(&clients, Some(options.duration));
        }
        window.take();
        let begin = Beginning::now(&clients);
        let rest = options.duration - warm_up;
        let is_stopped = sleep_unless_stopped(rest, &mut signals).await;
        begin.until_now(&clients, is_stopped.then_some(options.duration))
    };
    let lasted = tasks.run_until(measurement).await;
    Ok(window.take().into_run(options.connections, lasted))
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
        let tried = UnconnectedSocket::new(options.targets[0].endpoint.address, &socket);
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
}

impl Beginning {
    fn now(clients: &[Rc<Client>]) -> Beginning {
        Beginning {
            start_ns: monotonic_ns(),
            cpu_ns: thread_cpu_time_ns(),
            body_bytes: body_bytes(clients),
        }
    }

    fn until_now(&self, clients: &[Rc<Client>], stopped_of: Option<Duration>) -> Lasted {
        let elapsed_ns = (monotonic_ns() - self.start_ns).max(1);
        Lasted {
            elapsed_ns,
            cpu_share: (thread_cpu_time_ns() - self.cpu_ns) as f64 / elapsed_ns as f64,
            body_bytes: body_bytes(clients) - self.body_bytes,
            stopped_of,
        }
    }
}

/// Starts what is asked on one connection.
fn start(
    target: &Target,
    http2_streams: Option<NonZeroU32>,
    client: &Rc<Client>,
    window: &Rc<RefCell<Window>>,
) {
    let reuse = Reuse {
        requests_per_connection: NonZeroU32::MAX,
        http2_streams,
    };
    let pool = Rc::new(Pool::new(client.clone(), target.endpoint.clone(), reuse));
    for _ in 0..http2_streams.map_or(1, NonZeroU32::get) {
        spawn_local(ask_forever(target.clone(), pool.clone(), window.clone()));
    }
}

/// One stream of requests: asks, reads, asks again, until the run ends.
async fn ask_forever(target: Target, pool: Rc<Pool>, window: Rc<RefCell<Window>>) {
    loop {
        let start_ns = monotonic_ns();
        match ask(&target, &pool).await {
            Ok(served) => window.borrow_mut().note(&served.answer, start_ns),
            Err(failure) => {
                window.borrow_mut().note_failure(failure);
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}

async fn ask(target: &Target, pool: &Pool) -> Result<Served, Failure> {
    let mut carrier = match pool.take() {
        Some(carrier) => carrier,
        None => pool.connect().1?,
    };
    let served = carrier.request(target, &target.path, false, None).await;
    pool.put_back(carrier).await;
    served
}
