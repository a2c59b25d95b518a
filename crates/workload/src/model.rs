//! The model file: one description of a queueing system, plain data, for whoever generates, simulates or computes it.
//!
//! ```toml
//! sizes = "h2:mean=1,c2=4"        # see sizes::text; or trace:NAME
//! schedule = "0.8"                # load, or LOW,HIGH,LOW_SECONDS,HIGH_SECONDS; not with closed users
//! policy = "srpt"
//! servers = 1
//! mpl = 4                         # jobs at a time inside; left out: no limit
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

/// A queueing system.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Sizes of the jobs, in the unit of work of whoever plays the model: bytes on a link, or seconds.
    pub sizes: Sizes,
    /// Who sends them.
    pub users: Users,
    /// Name of the order in which they are served.
    pub policy: String,
    /// Number of servers that share the capacity equally; a job is at one at a time.
    pub servers: u32,
    /// Most jobs inside at a time, the others waiting outside; none without a limit.
    pub mpl: Option<u32>,
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
    /// Reads a model file; `policies` are the names that whoever asks can serve by, the first one the default.
    pub fn read(text: &str, policies: &[&str]) -> Result<Self, Mistake> {
        read::read(text, policies)
    }
}
