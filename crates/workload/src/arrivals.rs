//! Arrivals with an exact load: first the requests are chosen, then the gaps between them are
//! scaled.
//!
//! For each phase of the schedule, the requests are a run of consecutive requests of the trace, in
//! the trace's order. It is the run with the work nearest to the phase's load x rate x duration,
//! and within [`TOLERANCE`] of it. The first phase starts looking at a point of the trace chosen by
//! the seed, each later one where the one before ended; past its last request the trace goes on
//! with its first.
//!
//! What this does to the sizes: where the run that starts right here would end in the middle of a
//! large object, the start moves on, request by request, until a run fits. So whole stretches of
//! the trace are passed over ([`Plan::passed_over`] counts them), never single large objects, and a
//! run is a piece of the trace as it is. Two things remain: a run cannot end with an object much
//! larger than the tolerance, and an object larger than all the work of a phase never occurs in it.
//! At 10 Mbit/s this makes the mean size, averaged over seeds, less than 1 % different from the
//! trace's in phases of 120 s, 2 % smaller (EPA; NASA 1 %) at load 0.9 for 35 s, 4 % smaller (NASA
//! 2 %) in the schedule 0.2,1.2,10,10, and 16 % (NASA 10 %) in 0.2,1.2,2,2.
//!
//! Connections that are kept for K requests count as work of the first and then of each K-th
//! request of a phase. Which requests really open one depends on the server: those that find no
//! connection idle. But a connection is closed only after K requests, and never more are open than
//! requests were once under way together, M. So over any stretch of n requests n / K connections
//! are opened, M more or less, and the work is off by at most M times what a new connection costs
//! (264 bytes in clear text, a few thousand with TLS). In clear text, at loads of 0.5 to 0.9 for a
//! minute on 10 Mbit/s it was off by at most 0.32 % (EPA and NASA; K 2, 5 and 50; served in order,
//! shared and SRPT; 25 seeds), and by 0.6 % at 1.2. It does not hold where M is a large share of n:
//! at load 2 served in order with K = 50 it was off by 1.5 % (EPA). Nor does it for a server that
//! itself closes most connections before their K-th request. Such a run says that it is INVALID.
//!
//! Several source addresses have connections of their own, so M is then the sum over them; with
//! four of them the work of the runs above stays within 1 % of what is asked. The address of a
//! request is drawn with the same probability for each, so that what comes from one of a Poisson
//! process is a Poisson process too.
//!
//! In a partly-open plan the chosen requests are cut into visits ([`visits`]); only the beginnings
//! of visits have a time, and a phase's load is that of the visits that begin in it. Every visit
//! has connections of its own, the first and every K-th of its requests opening one. The last visit
//! of a phase ends with the phase's last request.
//!
//! A crowd at one object ([`crowd`]) takes the place of some of the trace's requests before any are
//! chosen.

pub mod crowd;
mod planner;
mod selection;
mod times;
pub mod visits;

use crate::schedule::{MEASURED_S_MIN, Schedule};
use crate::trace::Trace;
use crate::wire::WireModel;
use crowd::Crowd;
use planner::Planner;
use sooner_quantity::Rate;
use std::num::NonZeroU32;
use visits::Visits;

/// How far the work of a phase may be from what its load asks for, as a share.
pub const TOLERANCE: f64 = 0.005;

/// Longest run in seconds (a week).
pub const MAX_DURATION_S: f64 = 7.0 * 86_400.0;

/// Most requests of one plan, about 2 GB of arrivals.
pub const MAX_REQUESTS: u64 = 50_000_000;

/// How the gaps between arrivals are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    /// Exponential gaps, scaled so that the phase's requests fill it: a Poisson process given the
    /// number of its arrivals.
    Poisson,
    /// The trace's own gaps, scaled to the phase.
    Trace,
}

/// What to plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanOptions {
    /// Load over time.
    pub schedule: Schedule,
    /// Length of the run in seconds.
    pub duration_s: f64,
    /// Rate of the link the load is a share of.
    pub rate: Rate,
    /// Chooses the starting point in the trace and the Poisson gaps.
    pub seed: u64,
    /// How the gaps are made.
    pub process: Process,
    /// What is spoken on the wire.
    pub wire: WireModel,
    /// Bytes of every response's head.
    pub head_bytes: u64,
    /// Requests after which a connection is closed; one in so many is planned to open one.
    pub requests_per_connection: NonZeroU32,
    /// Number of source addresses.
    pub clients: NonZeroU32,
    /// Visits of several requests; `None`: every request comes whatever became of the others.
    pub visits: Option<Visits>,
    /// The crowd that comes beside the trace's clients where the load is highest; `None`: no crowd.
    pub crowd: Option<Crowd>,
}

/// One planned request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Ns since the start of the run; for a visit's later requests the visit's beginning.
    pub at_ns: u64,
    /// How long after the end of the response before it a visit's later request is sent, in ns;
    /// `None`: it is sent at `at_ns`.
    pub think_ns: Option<u64>,
    /// Index of the source address.
    pub client: u32,
    /// Index of the object in the trace.
    pub object: u32,
    /// Whether the packets of a new connection count as its work: the first and every K-th of a
    /// phase. Which requests really open one shows when they are sent.
    pub new_connection: bool,
    /// Body in bytes.
    pub size_bytes: u64,
    /// Planned bytes on the wire, see [`WireModel::work_bytes`].
    pub work_bytes: u64,
}

/// A phase as it was planned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlannedPhase {
    /// Seconds since the start of the run.
    pub start_s: f64,
    /// Length in seconds.
    pub duration_s: f64,
    /// Requested load.
    pub asked_load: f64,
    /// Work of the chosen requests / (rate x duration).
    pub offered_load: f64,
    /// Number of requests.
    pub requests: u64,
    /// Number of visits; in an open plan every request is one.
    pub visits: u64,
}

/// The arrivals of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// All requests in order of time.
    pub arrivals: Vec<Arrival>,
    /// The phases in order of time.
    pub phases: Vec<PlannedPhase>,
    /// Work of all requests / (rate x duration of the run).
    pub offered_load: f64,
    /// Requests of the trace that were passed over so that the phases' loads are exact.
    pub passed_over: u64,
}

/// A plan that cannot be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The duration is no length of time.
    #[error("a run of {0} s is out of range; give 1 to {MAX_DURATION_S} seconds")]
    Duration(f64),
    /// A phase is too short.
    #[error("a phase of {0} s is shorter than {MEASURED_S_MIN} s; make the phases longer")]
    Phase(f64),
    /// The run would need too many requests.
    #[error("about {0} requests are more than {MAX_REQUESTS}; lower the rate or the duration")]
    TooMany(u64),
    /// No run of consecutive requests has the work of a phase.
    #[error(
        "no sequence of requests in this trace has {target_bytes} bytes of work within {} %, as load {load} for {duration_s} s asks; \
         make the phase longer or the rate higher", TOLERANCE * 100.0
    )]
    NoFit {
        /// Load of the phase.
        load: f64,
        /// Length of the phase in seconds.
        duration_s: f64,
        /// Work of the phase in bytes.
        target_bytes: u64,
    },
}

/// Plans the arrivals of a run; the same inputs give the same plan.
pub fn plan(trace: &Trace, options: &PlanOptions) -> Result<Plan, PlanError> {
    if !(1.0..=MAX_DURATION_S).contains(&options.duration_s) {
        return Err(PlanError::Duration(options.duration_s));
    }
    if let Some(seconds) = options.schedule.too_short() {
        return Err(PlanError::Phase(seconds));
    }
    let mut planner = Planner::new(trace, options);
    let phases = options.schedule.over(options.duration_s);
    let asked_s: f64 = phases
        .iter()
        .map(|phase| phase.load * phase.duration_s)
        .sum();
    let about_requests =
        (asked_s * options.rate.bytes_per_sec() / planner.mean_work_bytes()) as u64;
    if about_requests > MAX_REQUESTS {
        return Err(PlanError::TooMany(about_requests));
    }
    for phase in phases {
        planner.add(phase)?;
    }
    Ok(planner.finish())
}
