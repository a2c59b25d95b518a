//! The model file: one description of a queueing system, plain data, for the program that
//! generates, simulates or computes it.
//!
//! ```toml
//! sizes = "h2:mean=1,c2=4"        # see sizes::text; or trace:NAME
//! schedule = "0.8"                # load, or LOW,HIGH,LOW_SECONDS,HIGH_SECONDS; not with closed users
//! policy = "srpt"
//! servers = 1
//! mpl = 4                         # jobs at a time inside; left out: no limit
//! uplink = "10mbit"               # sizes are bytes on it, and times are seconds; left out: both are in one unit
//! error = 0.5                     # sizes are estimates: σ of ln(estimate / size)
//! turn = 0.01                     # the policy is asked again after so many mean sizes
//! guard = true                    # with the starvation guard
//! priority = { share = 0.1, first = "smallest" }  # or "chance"
//!
//! [arrivals]
//! kind = "poisson"                # poisson, trace, renewal
//!
//! [users]
//! kind = "open"                   # open, closed, partly-open
//! ```
//!
//! A mistake is told with its line, its key and what would be right; an unknown key is one.

mod mistake;
mod read;

pub use mistake::Mistake;

use crate::schedule::Schedule;
use crate::sizes::{Distribution, Sizes};
use sooner_quantity::Rate;

/// A queueing system.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Sizes of the jobs, in the unit of work of the program that plays the model: bytes on a link,
    /// or seconds.
    pub sizes: Sizes,
    /// Who sends them.
    pub users: Users,
    /// Name of the order in which they are served; none where the program that plays the model
    /// chooses.
    pub policy: Option<String>,
    /// Number of servers that share the capacity equally; a job is at one at a time.
    pub servers: u32,
    /// Most jobs inside at a time, the others waiting outside; none without a limit.
    pub mpl: Option<u32>,
    /// The link that the sizes are bytes on, times being seconds; none where times are in the unit
    /// of the sizes.
    pub uplink: Option<Rate>,
    /// σ of the logarithm of estimate over size; none where sizes are known.
    pub error: Option<f64>,
    /// Work between two questions to the policy, in mean sizes; none where it is asked at every
    /// event.
    pub turn: Option<f64>,
    /// Whether the starvation guard is on.
    pub guard: bool,
    /// Who goes first, whatever the policy says.
    pub priority: Option<Priority>,
}

/// A share of the jobs that goes before all others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Priority {
    /// The share, above 0 and below 1.
    pub share: f64,
    /// Which jobs they are.
    pub first: First,
}

/// How those who go first are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// By size.
    Smallest,
    /// By chance.
    Chance,
}

/// Who sends jobs, and when.
#[derive(Debug, Clone, PartialEq)]
pub enum Users {
    /// Each job comes by itself.
    Open {
        /// Load over time.
        schedule: Schedule,
        /// How jobs follow each other.
        arrivals: Arrivals,
    },
    /// So many users, each of whom thinks, sends a job and waits for its end.
    Closed {
        /// Number of users.
        users: u32,
        /// Time from the end of a job to the same user's next one.
        think: Distribution,
    },
    /// Users come by themselves; after each job one stays for another with a probability.
    PartlyOpen {
        /// Load over time, of all jobs.
        schedule: Schedule,
        /// How users follow each other.
        arrivals: Arrivals,
        /// Probability of staying, from 0 to below 1: 1/(1 - stay) jobs a visit in the mean.
        stay: f64,
        /// Time from the end of a job to the same user's next one.
        think: Distribution,
    },
}

/// How arrivals follow each other; scaled so that the load is what the schedule says.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrivals {
    /// Exponential gaps.
    Poisson,
    /// The gaps of the trace that the sizes are from.
    Trace,
    /// Independent gaps of this law.
    Renewal(Distribution),
}

impl Model {
    /// Reads a model file; `check_policy` refuses a policy that the caller cannot serve by, in words.
    pub fn read(
        text: &str,
        check_policy: impl Fn(&str) -> Result<(), String>,
    ) -> Result<Self, Mistake> {
        read::read(text, &check_policy)
    }
}
