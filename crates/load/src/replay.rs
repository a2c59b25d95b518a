//! Replays a trace, at an exact load or for a number of users, and measures every response beside
//! its ideal.
//!
//! Response time is from the SYN to the last byte, so a TLS handshake is part of it; on a
//! connection that is there already, from the moment the request is handed to it. No request waits
//! behind another one here (see [`crate::pool`]), so all waiting is the server's. How late the
//! generator itself was is the send lag, reported apart and limited by the verdict. Of a request
//! that waits for a response, the lag counts from when it was due: the response's last byte and the
//! pause to think.
//!
//! Which requests open a connection depends on how fast the server is. The plan counts one in K;
//! work, realised load and ideals count what happened.
//!
//! Several source addresses are driven by this one process with one schedule and one clock, so that
//! all figures are of all samples: percentiles measured by several generators could not be put
//! together.

mod error;
mod offer;
mod report;

use crate::client::Client;
use crate::counters::TcpCounters;
use crate::model::Model;
use crate::patience::Patience;
use crate::play::{self, PlayOptions, Progress};
use crate::pool::{Pool, Reuse};
use crate::probe::{self, Costs};
use crate::script::Script;
use crate::socket::{SocketOptions, UnconnectedSocket};
use crate::target::Target;
pub use error::ReplayError;
pub use offer::ASKED_TOLERANCE;
use report::Facts;
use sooner_kernel::descriptors;
use sooner_kernel::scheduling::RealTime;
use sooner_stats::{Run, Sample};
use sooner_workload::{Behaviour, Rate, Trace, Users, UsersOptions};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

/// Descriptors that the generator requests at the start: one a connection, and overload opens
/// thousands.
const DESCRIPTORS: u64 = 1 << 20;

/// What to replay, and how.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// Where the trace's objects are served.
    pub target: Target,
    /// What is requested.
    pub trace: Trace,
    /// Who triggers requests, and how many there are.
    pub model: Model,
    /// Rate of the link that the load is a share of.
    pub rate: Rate,
    /// Length of the run, warm-up included.
    pub duration: Duration,
    /// First part of the run, left out of the statistics; shorter than the run.
    pub warm_up: Duration,
    /// How long to wait for the last responses after the last request that no response triggers.
    pub drain: Duration,
    /// Protocol, and how connections are used.
    pub reuse: Reuse,
    /// How long users wait before they abort; `None`: they never abort.
    pub patience: Option<Patience>,
    /// Whether status 503 is the answer of a server that admits only so many, and no reason to
    /// doubt the figures.
    pub expects_refusals: bool,
    /// Addresses to send from, each with connections of its own; the system's choice when there is
    /// none.
    pub sources: Vec<IpAddr>,
    /// Bytes of every response's head by which the requests are chosen, so that servers that are
    /// compared get the very same; `None`: what this server's has.
    pub plan_head_bytes: Option<u64>,
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
    /// For each of them, whether it is reported: not those of the warm-up.
    pub measured: Vec<bool>,
    /// Mean load that was requested of the measured part; none in a closed system.
    pub asked_load: Option<f64>,
    /// Requests of the trace passed over to make the load exact.
    pub passed_over: u64,
    /// What responses cost beside their bodies, as measured before the run.
    pub costs: Costs,
    /// Requests that were sent again, because they got no answer on a connection, in the whole run.
    pub resent: u64,
}

/// Runs a replay; call it inside a tokio current-thread runtime that does nothing else. `progress`
/// is called once a second.
///
/// In a box, so that the replay is compiled with this crate and not with each that waits for it.
pub fn run<'a>(
    options: &'a ReplayOptions,
    progress: &'a mut dyn FnMut(Progress),
) -> Pin<Box<dyn Future<Output = Result<Replay, ReplayError>> + 'a>> {
    Box::pin(carry_out(options, progress))
}

async fn carry_out(
    options: &ReplayOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Replay, ReplayError> {
    check(options)?;
    descriptors::raise_hard_limit(DESCRIPTORS).ok();
    check_sockets(options)?;
    let costs = probe(options).await?;
    let offer = offer::offer(options, &costs)?;
    let plan = offer.as_ref().map(|offer| &offer.plan);
    let end_ns = options.duration.as_nanos() as u64;
    let script = match plan {
        Some(plan) => Script::Planned {
            plan,
            visits_until_ns: matches!(options.model, Model::PartlyOpen(..)).then_some(end_ns),
            next: 0,
        },
        None => closed_script(options, &costs),
    };
    let client = Rc::new(Client::new(options.socket.clone()));
    let scene = PlayOptions {
        trace: &options.trace,
        target: &options.target,
        pools: pools(options, &client),
        patience: options.patience,
        drain: options.drain,
        planned: plan.map(|plan| plan.arrivals.len() as u64),
    };
    // Without the privilege the send lag shows whether it was needed.
    let real_time = RealTime::enter().ok();
    let counters_before = TcpCounters::now();
    let played = play::play(script, scene, progress).await;
    let played = played.map_err(ReplayError::Timer)?;
    drop(real_time);
    let counters = TcpCounters::now()
        .zip(counters_before)
        .map(|(now, before)| now.since(before));
    let facts = Facts {
        options,
        offer: offer.as_ref(),
        played: &played,
        costs,
        counters,
        resent: client.resent(),
    };
    Ok(facts.report())
}

fn check(options: &ReplayOptions) -> Result<(), ReplayError> {
    if options.warm_up >= options.duration {
        return Err(ReplayError::WarmUp {
            warm_up_s: options.warm_up.as_secs_f64(),
            duration_s: options.duration.as_secs_f64(),
        });
    }
    if options.patience.is_some() && options.reuse.http2_streams.is_some() {
        return Err(ReplayError::PatienceWithHttp2);
    }
    check_files(options)
}

fn check_files(options: &ReplayOptions) -> Result<(), ReplayError> {
    let Model::Closed {
        behaviour: Behaviour::Surge(model),
        ..
    } = &options.model
    else {
        return Ok(());
    };
    let objects = options.trace.objects.len();
    if objects != model.files as usize {
        let files = model.files;
        return Err(ReplayError::Files { objects, files });
    }
    Ok(())
}

fn check_sockets(options: &ReplayOptions) -> Result<(), ReplayError> {
    let target = options.target.endpoint.address;
    UnconnectedSocket::new(target, &options.socket).map_err(ReplayError::Socket)?;
    for &address in &options.sources {
        let socket = SocketOptions {
            source: Some(address),
            ..options.socket.clone()
        };
        UnconnectedSocket::new(target, &socket).map_err(|error| ReplayError::Source {
            address,
            target,
            error,
        })?;
    }
    Ok(())
}

/// One pool a source address; all count to the counts of `client`.
fn pools(options: &ReplayOptions, client: &Rc<Client>) -> Vec<Pool> {
    let pool = |client| Pool::new(client, options.target.endpoint.clone(), options.reuse);
    if options.sources.is_empty() {
        return vec![pool(client.clone())];
    }
    let sources = options.sources.iter();
    sources
        .map(|&source| pool(Rc::new(client.bound_to(source))))
        .collect()
}

/// Asks for the smallest of the objects that the trace's clients ever request.
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
    let socket = SocketOptions {
        source: options.sources.first().copied(),
        ..options.socket.clone()
    };
    let probing = probe::probe(
        &options.target,
        &path,
        object.size_bytes,
        options.reuse.http2_streams.is_some(),
        &socket,
    );
    probing.await.map_err(|failure| ReplayError::Probe {
        url: options.target.url_of(&path),
        failure,
    })
}

fn clients(options: &ReplayOptions) -> NonZeroU32 {
    NonZeroU32::new(options.sources.len() as u32).unwrap_or(NonZeroU32::MIN)
}

fn closed_script(options: &ReplayOptions, costs: &Costs) -> Script<'static> {
    let (count, behaviour) = match &options.model {
        Model::Closed { users, behaviour } => (*users, behaviour.clone()),
        Model::Open(_) | Model::PartlyOpen(..) => (0, Behaviour::Trace { think_s: 0.0 }),
    };
    let users = UsersOptions {
        count,
        behaviour,
        seed: options.seed,
        clients: clients(options).get(),
        wire: costs.wire,
        head_bytes: costs.head_bytes,
    };
    Script::Closed {
        users: Users::new(&options.trace, &users),
        end_ns: options.duration.as_nanos() as u64,
    }
}
