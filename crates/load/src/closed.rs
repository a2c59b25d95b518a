//! Saturates a server: N connections, each asking again as soon as it has its answer.
//!
//! For throughput only. Response times of a closed loop say how long N users who never think wait,
//! not how long users of an open system would. Goodput is counted from the bytes received in the
//! measured window, whichever response they belong to, so that downloads longer than the run count.

use crate::connection::{Client, Connection};
use crate::failure::Failure;
use crate::socket::{SocketOptions, UnconnectedSocket};
use crate::target::Target;
use serde::Serialize;
use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::descriptors;
use sooner_kernel::process::thread_cpu_time_ns;
use sooner_stats::order::{mean, percentile};
use sooner_stats::{ErrorKind, Verdict};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::{LocalSet, spawn_local};

/// Share of the run at its start that is not measured: connections and their windows open.
const WARM_UP_SHARE: f64 = 0.2;
/// CPU share of one core above which a lone generator may be what limits the throughput.
const CPU_SHARE_MAX: f64 = 0.9;
/// Pause after a failed request, so that a dead server is not hammered by a spinning loop.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// What to saturate, and how.
#[derive(Clone, Debug)]
pub struct ClosedOptions {
    /// What is requested; connection i always asks for target i modulo their number. Not empty.
    pub targets: Vec<Target>,
    /// Number of connections, all kept alive.
    pub connections: u32,
    /// Length of the run; the first fifth is warm-up.
    pub duration: Duration,
    /// Options of every socket.
    pub socket: SocketOptions,
}

/// What a saturated server delivered in the measured window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClosedRun {
    /// Number of connections.
    pub connections: u32,
    /// Length of the measured window in seconds.
    pub measured_s: f64,
    /// VALID or INVALID.
    pub verdict: Verdict,
    /// Why, in one line.
    pub verdict_reason: String,
    /// Responses finished in the window.
    pub responses: u64,
    /// Responses finished in the window per second.
    pub requests_per_sec: f64,
    /// Body bits received in the window per second.
    pub goodput_bits_per_sec: f64,
    /// Requests that failed in the window.
    pub errors: u64,
    /// Errors by kind; kinds that did not occur are absent.
    pub errors_by_kind: BTreeMap<ErrorKind, u64>,
    /// Mean response time in ms of the responses finished in the window.
    pub mean_response_ms: Option<f64>,
    /// Median response time in ms.
    pub p50_response_ms: Option<f64>,
    /// 95th percentile of the response time in ms.
    pub p95_response_ms: Option<f64>,
    /// 99th percentile of the response time in ms.
    pub p99_response_ms: Option<f64>,
    /// 99.9th percentile of the response time in ms.
    pub p99_9_response_ms: Option<f64>,
    /// Longest response time in ms.
    pub max_response_ms: Option<f64>,
    /// The generator thread's CPU time / window.
    pub generator_cpu_share: f64,
}

/// A saturation run that could not start.
#[derive(Debug, thiserror::Error)]
pub enum ClosedError {
    /// A socket cannot be made as asked.
    #[error(
        "cannot make a socket: {0}; is the congestion control in net.ipv4.tcp_available_congestion_control?"
    )]
    Socket(io::Error),
}

/// What the connections have noted in the current window.
#[derive(Default)]
struct Window {
    responses_ns: Vec<u64>,
    failures: Vec<Failure>,
}

/// Runs the loop; call it inside a tokio current-thread runtime that does nothing else.
pub async fn run(options: &ClosedOptions) -> Result<ClosedRun, ClosedError> {
    descriptors::raise_limit(u64::from(options.connections) + 1024).ok();
    UnconnectedSocket::new(options.targets[0].address, &options.socket)
        .map_err(ClosedError::Socket)?;
    let client = Rc::new(Client {
        options: options.socket.clone(),
        ..Client::default()
    });
    let window = Rc::new(RefCell::new(Window::default()));
    let warm_up = options.duration.mul_f64(WARM_UP_SHARE);
    let tasks = LocalSet::new();
    let measurement = async {
        for target in options
            .targets
            .iter()
            .cycle()
            .take(options.connections as usize)
        {
            spawn_local(ask_forever(target.clone(), client.clone(), window.clone()));
        }
        tokio::time::sleep(warm_up).await;
        window.take();
        let (start_ns, cpu_ns, bytes) = (
            monotonic_ns(),
            thread_cpu_time_ns(),
            client.receiver.body_bytes(),
        );
        tokio::time::sleep(options.duration - warm_up).await;
        let elapsed_ns = monotonic_ns() - start_ns;
        let cpu_share = (thread_cpu_time_ns() - cpu_ns) as f64 / elapsed_ns as f64;
        (elapsed_ns, cpu_share, client.receiver.body_bytes() - bytes)
    };
    let (elapsed_ns, cpu_share, body_bytes) = tasks.run_until(measurement).await;
    Ok(summary(
        options.connections,
        window.take(),
        elapsed_ns,
        cpu_share,
        body_bytes,
    ))
}

/// One connection: asks, reads, asks again, until the run ends.
async fn ask_forever(target: Target, client: Rc<Client>, window: Rc<RefCell<Window>>) {
    let request = target.own_request();
    let mut connection = Connection::new(client, target.address);
    loop {
        let start_ns = monotonic_ns();
        match connection.request(&request, None).await {
            Ok(served) => {
                window
                    .borrow_mut()
                    .responses_ns
                    .push(served.answer.last_byte_ns - start_ns);
                if !served.answer.keep_alive {
                    connection.close().await;
                }
            }
            Err(failure) => {
                window.borrow_mut().failures.push(failure);
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}

fn summary(
    connections: u32,
    mut window: Window,
    elapsed_ns: u64,
    cpu_share: f64,
    body_bytes: u64,
) -> ClosedRun {
    let seconds = elapsed_ns as f64 / 1e9;
    let responses_ns = &mut window.responses_ns;
    responses_ns.sort_unstable();
    let at = |per_mille| percentile(responses_ns, per_mille).map(|ns| ns as f64 / 1e6);
    let mut errors_by_kind = BTreeMap::new();
    for failure in &window.failures {
        *errors_by_kind.entry(failure.kind()).or_insert(0) += 1;
    }
    let (verdict, verdict_reason) =
        judge(&window.failures, responses_ns.len(), cpu_share, body_bytes);
    ClosedRun {
        connections,
        measured_s: seconds,
        verdict,
        verdict_reason,
        responses: responses_ns.len() as u64,
        requests_per_sec: responses_ns.len() as f64 / seconds,
        goodput_bits_per_sec: body_bytes as f64 * 8.0 / seconds,
        errors: window.failures.len() as u64,
        errors_by_kind,
        mean_response_ms: mean(responses_ns.iter().map(|&ns| ns as f64 / 1e6)),
        p50_response_ms: at(500),
        p95_response_ms: at(950),
        p99_response_ms: at(990),
        p99_9_response_ms: at(999),
        max_response_ms: at(1000),
        generator_cpu_share: cpu_share,
    }
}

fn judge(
    failures: &[Failure],
    responses: usize,
    cpu_share: f64,
    body_bytes: u64,
) -> (Verdict, String) {
    let invalid = |reason: String| (Verdict::Invalid, reason);
    if let Some(failure) = failures.first()
        && failures.len() * 100 > responses
    {
        return invalid(format!(
            "{} requests failed, the first: {failure}",
            failures.len()
        ));
    }
    if body_bytes == 0 {
        return invalid("not one body byte was received".into());
    }
    if cpu_share > CPU_SHARE_MAX {
        return invalid(format!(
            "the generator used {:.0} % of a core: it may be what limits the throughput",
            cpu_share * 100.0
        ));
    }
    (Verdict::Valid, "the generator had time to spare".into())
}
