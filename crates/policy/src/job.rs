//! What a policy knows of a job.

use crate::{Path, Time};

/// Names a job; chosen by the caller, unique among the jobs present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

/// Names a client; chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// A job as it arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its name.
    pub id: JobId,
    /// Its class; class 0 goes before class 1 under [`crate::Classes`].
    pub class: u8,
    /// Its service demand in the caller's unit, if known.
    pub size: Option<u64>,
    /// The service of which its client notices something, where that is more than a guard's own
    /// trickle: a whole record of TLS. 0 otherwise.
    pub trickle: u64,
    /// The client that it is for, where the caller tells clients apart: they share what a guard
    /// gives, whatever the number of their jobs. Jobs without a client count as one client's.
    pub client: Option<ClientId>,
    /// Who is charged for it, where an order keeps accounts.
    pub payer: Option<Payer>,
}

/// Who is charged for what jobs are served ([`crate::LeastUsed`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payer {
    /// A client, or what stands for one: a user, a key.
    pub client: ClientId,
    /// The network that it is in; `None` where it is no address.
    pub network: Option<ClientId>,
}

/// A job in the system, as a rank function sees it.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Its name.
    pub id: JobId,
    /// Its service demand, if known; grows with the attained service where it proved too low.
    pub size: Option<u64>,
    /// The service it has had so far.
    pub attained: u64,
    /// The network to its client; all unknown until it is observed.
    pub path: Path,
    /// When it arrived.
    pub arrived_at: Time,
    /// Its place in the order of arrival; breaks ties of rank.
    pub sequence: u64,
    /// The order's own mark on the job (a virtual start or finish time); 0 where the order keeps
    /// none.
    pub tag: u64,
}

impl Job {
    /// The service still to come, if the size is known.
    pub fn remaining(&self) -> Option<u64> {
        self.size.map(|size| size.saturating_sub(self.attained))
    }
}
