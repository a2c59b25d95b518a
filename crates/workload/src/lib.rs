//! What arrives: sizes, traces, users, arrivals, schedules.
//!
//! Everything here is a pure function of its inputs and a seed, so that two runs can be given the
//! very same arrivals. The two exceptions read and write files: [`trace::Trace::load`] and
//! [`root::mkroot`].

pub mod arrivals;
pub mod content;
pub mod fit;
pub mod guess;
pub mod job_log;
pub mod model;
mod rng;
pub mod root;
pub mod schedule;
pub mod sizes;
pub mod surge;
mod synthetic;
pub mod trace;
mod uplink_rate;
pub mod users;
pub mod wire;

pub use arrivals::crowd::{Crowd, CrowdError};
pub use arrivals::visits::{VisitLength, Visits};
pub use arrivals::{Arrival, Plan, PlanError, PlanOptions, PlannedPhase, Process, plan};
pub use model::{Mistake, Model};
pub use rng::Rng;
pub use root::{RootError, RootSummary, mkroot};
pub use schedule::{Phase, Schedule, ScheduleError};
pub use sizes::{Distribution, DistributionError, Sampler, Sizes};
pub use sooner_quantity::{
    DurationError, Rate, RateError, parse_bytes, parse_duration, parse_duration_with_unit,
};
pub use trace::{Object, Row, Trace, TraceError, TraceRequest};
pub use uplink_rate::UplinkRate;
pub use users::{Behaviour, Users, UsersOptions};
