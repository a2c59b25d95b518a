//! What triggers a request: the arrival process, the response before it, or both (Schroeder,
//! Wierman and Harchol-Balter 2006).

use sooner_workload::{Behaviour, Crowd, Process, Schedule, Visits};

/// The model of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// Requests come whatever became of the others.
    Open(Offered),
    /// Visits begin whatever became of the others; inside a visit each request waits for the
    /// response before it.
    PartlyOpen(Offered, Visits),
    /// A fixed number of users, each asking again after its response.
    Closed {
        /// Number of users, above 0.
        users: u32,
        /// What they ask for, and how long they pause.
        behaviour: Behaviour,
    },
}

/// What is asked of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Offered {
    /// Load over time.
    pub schedule: Schedule,
    /// How the gaps between requests, or visits, are made.
    pub process: Process,
    /// The crowd that comes beside the trace's clients where the load is highest; `None`: no crowd.
    pub crowd: Option<Crowd>,
}

impl Model {
    /// Its name, as in `--model`; `surge` for SURGE's users.
    pub fn name(&self) -> &'static str {
        match self {
            Model::Open(_) => "open",
            Model::PartlyOpen(..) => "partly-open",
            Model::Closed { behaviour, .. } => match behaviour {
                Behaviour::Trace { .. } => "closed",
                Behaviour::Surge(_) => "surge",
            },
        }
    }

    /// What is asked of the link; nothing in a closed system.
    pub fn offered(&self) -> Option<&Offered> {
        match self {
            Model::Open(offered) | Model::PartlyOpen(offered, _) => Some(offered),
            Model::Closed { .. } => None,
        }
    }
}
