//! Replays a trace at an exact load and measures every response beside its ideal.
//!
//! Response time is from the SYN to the last byte, so a TLS handshake is part of it; on a connection that is there
//! already, from the moment the request is handed to it. No request waits behind another one here (see
//! [`crate::pool`]), so all waiting is the server's. How late the generator itself was is the send
//! lag, reported apart and limited by the verdict.
//!
//! Which requests open a connection depends on how fast the server is. The plan counts one in K;
//! work, realised load and ideals count what happened.

use crate::client::Client;
use crate::counters::TcpCounters;
use crate::failure::Failure;
use crate::outcome::{self, Measured};
use crate::play::{self, Played, Progress};
use crate::pool::{Pool, Reuse};
use crate::probe::{self, Costs};
use crate::socket::{SocketOptions, UnconnectedSocket};
use crate::target::Target;
use crate::verdict;
use sooner_kernel::descriptors;
use sooner_kernel::scheduling::RealTime;
use sooner_stats::{Run, RunFacts, Sample};
use sooner_workload::{Plan, PlanError, PlanOptions, Process, Rate, Schedule, Trace};
use std::io;
use std::rc::Rc;
use std::time::Duration;

/// Descriptors asked for at the start: one a connection, and overload opens thousands.
const DESCRIPTORS: u64 = 1 << 20;

/// What to replay, and how.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// Where the trace's objects are served.
    pub target: Target,
    /// What is requested.
    pub trace: Trace,
    /// Load over time.
    pub schedule: Schedule,
    /// How the gaps between requests are made.
    pub process: Process,
    /// Rate of the link that the load is a share of.
    pub rate: Rate,
    /// Length of the run, warm-up included.
    pub duration: Duration,
    /// First part of the run, left out of the statistics; shorter than the run.
    pub warm_up: Duration,
    /// How long to wait for the last responses after the last request.
    pub drain: Duration,
    /// Protocol, and how connections are used.
    pub reuse: Reuse,
    /// Seed of the arrivals.
    pub seed: u64,
    /// Name of the policy under test, as the report shall call it.
    pub label: String,
    /// Options of every socket.
    pub socket: SocketOptions,
}

/// A measured run.
#[derive(Clone, Debug)]
pub struct Replay {
    /// What is reported.
    pub run: Run,
    /// Every request in order of time, warm-up included.
    pub samples: Vec<Sample>,
    /// How many of them, at the start, are warm-up.
    pub warm_up_samples: usize,
    /// Requests of the trace passed over to make the load exact.
    pub passed_over: u64,
    /// What responses cost beside their bodies, as measured before the run.
    pub costs: Costs,
}

/// A replay that could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// Nothing left to measure.
    #[error("warm-up of {warm_up_s} s in a run of {duration_s} s: give a shorter --warm-up")]
    WarmUp {
        /// Warm-up in seconds.
        warm_up_s: f64,
        /// Length of the run in seconds.
        duration_s: f64,
    },
    /// The arrivals cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A socket cannot be made as asked.
    #[error(
        "cannot make a socket: {0}; is the congestion control in net.ipv4.tcp_available_congestion_control?"
    )]
    Socket(io::Error),
    /// The first request failed.
    #[error(
        "{url}: {failure}; serve the trace's files there \
         (`sooner load mkroot TRACE DIR`) or correct --url"
    )]
    Probe {
        /// What was asked for.
        url: String,
        /// How it failed.
        failure: Failure,
    },
    /// The system refused a timer.
    #[error("cannot set up a timer: {0}")]
    Timer(io::Error),
}

/// Runs a replay; call it inside a tokio current-thread runtime that does nothing else. `progress`
/// is called once a second.
pub async fn run(
    options: &ReplayOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Replay, ReplayError> {
    if options.warm_up >= options.duration {
        return Err(ReplayError::WarmUp {
            warm_up_s: options.warm_up.as_secs_f64(),
            duration_s: options.duration.as_secs_f64(),
        });
    }
    descriptors::raise_limit(DESCRIPTORS).ok();
    UnconnectedSocket::new(options.target.endpoint.address, &options.socket)
        .map_err(ReplayError::Socket)?;
    let costs = probe(options).await?;
    let plan = plan(options, &costs)?;
    // Without the privilege the send lag shows whether it was needed.
    let real_time = RealTime::enter().ok();
    let counters_before = TcpCounters::now();
    let pool = Pool::new(
        Rc::new(Client::new(options.socket.clone())),
        options.target.endpoint.clone(),
        options.reuse,
    );
    let played = play::play(
        &plan,
        &options.trace,
        &options.target,
        pool,
        options.drain,
        progress,
    );
    let played = played.await.map_err(ReplayError::Timer)?;
    drop(real_time);
    let counters = TcpCounters::now()
        .zip(counters_before)
        .map(|(now, before)| now.since(before));
    Ok(report(options, &plan, &played, costs, counters))
}

/// Asks for the smallest of the trace's objects that is ever asked for.
async fn probe(options: &ReplayOptions) -> Result<Costs, ReplayError> {
    let objects = options
        .trace
        .requests
        .iter()
        .map(|request| options.trace.object_of(request));
    let Some(object) = objects.min_by_key(|object| (object.size_bytes, object.id)) else {
        return Ok(Costs::default());
    };
    let path = options.target.path_of(&object.path());
    let probing = probe::probe(
        &options.target,
        &path,
        object.size_bytes,
        options.reuse.http2_streams.is_some(),
        &options.socket,
    );
    probing.await.map_err(|failure| ReplayError::Probe {
        url: options.target.url_of(&path),
        failure,
    })
}

/// A constant load is planned as two phases, warm-up and the rest, so that it is exact in the part
/// that is reported; where no requests fit that, as one.
fn plan(options: &ReplayOptions, costs: &Costs) -> Result<Plan, PlanError> {
    let with = |schedule: Schedule| {
        let plan_options = PlanOptions {
            schedule,
            duration_s: options.duration.as_secs_f64(),
            rate: options.rate,
            seed: options.seed,
            process: options.process,
            wire: costs.wire,
            head_bytes: costs.head_bytes,
            requests_per_connection: options.reuse.requests_per_connection,
        };
        sooner_workload::plan(&options.trace, &plan_options)
    };
    match split_at_warm_up(options) {
        Some(split) => with(split).or_else(|_| with(options.schedule.clone())),
        None => with(options.schedule.clone()),
    }
}

fn split_at_warm_up(options: &ReplayOptions) -> Option<Schedule> {
    let [phase] = options.schedule.phases() else {
        return None;
    };
    let rest = options.duration - options.warm_up;
    let text = format!(
        "{load},{load},{},{}",
        options.warm_up.as_secs_f64(),
        rest.as_secs_f64(),
        load = phase.load
    );
    text.parse().ok()
}

fn report(
    options: &ReplayOptions,
    plan: &Plan,
    played: &Played,
    costs: Costs,
    counters: Option<TcpCounters>,
) -> Replay {
    let samples = outcome::samples(plan, played, &costs, options.rate);
    let measured = Measured::new(
        plan,
        played,
        &samples,
        options.warm_up.as_nanos() as u64,
        options.duration.as_nanos() as u64,
        options.rate,
    );
    let (verdict, verdict_reason) = verdict::judge(measured.evidence(options.process));
    let facts = RunFacts {
        policy: options.label.clone(),
        verdict,
        verdict_reason,
        seed: options.seed,
        offered_load: measured.offered_load(),
        rate_bits_per_sec: options.rate.bits_per_sec(),
        measured_ns: (options.duration - options.warm_up).as_nanos() as u64,
        syn_drops: counters
            .filter(|_| options.target.endpoint.address.ip().is_loopback())
            .map(|counters| counters.listen_drops),
        syn_retransmissions: counters.map(|counters| counters.syn_retransmissions),
    };
    let mut run = Run::new(facts, measured.samples().to_vec());
    run.first_errors = measured.first_errors();
    run.protocol = Some(protocol(&costs).into());
    run.opening_bytes = Some(costs.wire.opening_bytes);
    run.head_bytes = Some(costs.head_bytes);
    let warm_up_samples = samples.len() - measured.samples().len();
    Replay {
        run,
        warm_up_samples,
        passed_over: plan.passed_over,
        samples,
        costs,
    }
}

/// What is spoken, in words.
pub(crate) fn protocol(costs: &Costs) -> &'static str {
    match (costs.wire.http2, costs.wire.tls) {
        (false, false) => "HTTP/1.1",
        (false, true) => "HTTP/1.1 over TLS",
        (true, false) => "HTTP/2",
        (true, true) => "HTTP/2 over TLS",
    }
}
