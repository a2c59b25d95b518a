//! SURGE's users against a real server: a closed system of user equivalents that ask for pages and think (see [`sooner_workload::surge`]).
//!
//! Nothing is planned: who asks when follows from how fast the server is, so offered and realised load are both what happened. A request
//! is due when its user's pause ends, counted from the end of the response before; one driver with a precise timer sends
//! for all users, so that the send lag is known here as in a replay. A failed request ends its page: the user
//! thinks, and goes on with another one. Every user has connections of its own; in 1999 one for each request.

mod play;

use crate::counters::TcpCounters;
use crate::outcome::{self, Measured};
use crate::play::{Played, Progress};
use crate::probe::{self, Costs};
use crate::replay::{Replay, ReplayError, protocol};
use crate::socket::{SocketOptions, UnconnectedSocket};
use crate::target::Target;
use crate::verdict;
use sooner_kernel::descriptors;
use sooner_kernel::scheduling::RealTime;
use sooner_stats::{Run, RunFacts};
use sooner_workload::surge::{FileSet, SurgeError, SurgeModel};
use sooner_workload::{Arrival, Object, Plan, Process, Rate};
use std::num::NonZeroU32;
use std::time::Duration;

/// Most users of one run: each may hold a connection.
pub const USERS_MAX: u32 = 50_000;

/// Whom to let loose on which server, and how long.
#[derive(Clone, Debug)]
pub struct SurgeOptions {
    /// Where the files of `surge:SEED` are served.
    pub target: Target,
    /// What the users do.
    pub model: SurgeModel,
    /// Number of user equivalents, at most [`USERS_MAX`].
    pub users: u32,
    /// Rate of the link that load, slowdown and ideals refer to.
    pub rate: Rate,
    /// Length of the run, warm-up included.
    pub duration: Duration,
    /// First part of the run, left out of the statistics; shorter than the run.
    pub warm_up: Duration,
    /// How long to wait for the last responses.
    pub drain: Duration,
    /// Requests after which a user's connection is closed.
    pub requests_per_connection: NonZeroU32,
    /// Seed of files, requests and pauses.
    pub seed: u64,
    /// Name of the policy under test, as the report shall call it.
    pub label: String,
    /// Options of every socket.
    pub socket: SocketOptions,
}

/// A run that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SurgeRunError {
    /// Too many users, or none.
    #[error("{0} users; give 1 to {USERS_MAX}")]
    Users(u32),
    /// The model's parameters are impossible.
    #[error(transparent)]
    Surge(#[from] SurgeError),
    /// What can go wrong with every replay.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// Lets the users loose; call it inside a tokio current-thread runtime that does nothing else. `progress` is called once a second.
pub async fn run(
    options: &SurgeOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Replay, SurgeRunError> {
    if !(1..=USERS_MAX).contains(&options.users) {
        return Err(SurgeRunError::Users(options.users));
    }
    if options.warm_up >= options.duration {
        let (warm_up_s, duration_s) = (
            options.warm_up.as_secs_f64(),
            options.duration.as_secs_f64(),
        );
        return Err(ReplayError::WarmUp {
            warm_up_s,
            duration_s,
        }
        .into());
    }
    let objects = FileSet::new(&options.model, options.seed)?.objects();
    descriptors::raise_limit(u64::from(options.users) * 2 + 1024).ok();
    UnconnectedSocket::new(options.target.endpoint.address, &options.socket)
        .map_err(ReplayError::Socket)?;
    let costs = probe(options, &objects).await?;
    // Without the privilege the send lag shows whether it was needed.
    let real_time = RealTime::enter().ok();
    let counters_before = TcpCounters::now();
    let (played, arrivals) = play::play(options, objects, &costs, progress)
        .await
        .map_err(ReplayError::Timer)?;
    drop(real_time);
    let counters = TcpCounters::now()
        .zip(counters_before)
        .map(|(now, before)| now.since(before));
    Ok(report(options, &played, arrivals, costs, counters))
}
/// Asks for the smallest file.
async fn probe(options: &SurgeOptions, objects: &[Object]) -> Result<Costs, ReplayError> {
    let Some(object) = objects
        .iter()
        .min_by_key(|object| (object.size_bytes, object.id))
    else {
        return Ok(Costs::default());
    };
    let path = options.target.path_of(&object.path());
    let probing = probe::probe(
        &options.target,
        &path,
        object.size_bytes,
        false,
        &options.socket,
    )
    .await;
    probing.map_err(|failure| ReplayError::Probe {
        url: options.target.url_of(&path),
        failure,
    })
}
fn report(
    options: &SurgeOptions,
    played: &Played,
    arrivals: Vec<Arrival>,
    costs: Costs,
    counters: Option<TcpCounters>,
) -> Replay {
    // What happened, in the form of a plan; the measured part is all that is asked of it.
    let plan = Plan {
        arrivals,
        phases: Vec::new(),
        offered_load: 0.0,
        passed_over: 0,
    };
    let samples = outcome::samples(&plan, played, &costs, options.rate);
    let (warm_up_ns, duration_ns) = (
        options.warm_up.as_nanos() as u64,
        options.duration.as_nanos() as u64,
    );
    let measured = Measured::new(
        &plan,
        played,
        &samples,
        warm_up_ns,
        duration_ns,
        options.rate,
    );
    let mut evidence = measured.evidence(Process::Trace);
    // Nothing was asked for: the load is what the users made of it.
    evidence.offered_load = evidence.realised_load;
    let offered_load = evidence.offered_load;
    let (verdict, verdict_reason) = verdict::judge(evidence);
    let facts = RunFacts {
        policy: options.label.clone(),
        verdict,
        verdict_reason,
        seed: options.seed,
        offered_load,
        rate_bits_per_sec: options.rate.bits_per_sec(),
        measured_ns: duration_ns - warm_up_ns,
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
        passed_over: 0,
        samples,
        costs,
    }
}
