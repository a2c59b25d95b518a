//! Policies by name: those of the crate `policy`, and what only a simulation can have.

use sooner_policy::PolicyName;
use std::fmt;
use std::str::FromStr;

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// A policy of a real link, which can interrupt the job that it serves. Of those that ask for
    /// the network to the client there is none: a simulated client has no network.
    Online(PolicyName),
    /// Shortest first, each to its end.
    Sjf,
    /// Longest first, each to its end.
    Ljf,
    /// The kind with the least mean first (thesis 13.1.2).
    Pesjf,
    /// The kind with the largest mean first (thesis 13.1.2).
    Peljf,
    /// FSP on estimates; the late share.
    Psbs,
    /// This share of the server to the shortest remaining, the rest to all alike.
    Hybrid(f64),
}

/// A name that is no policy's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no policy; use {list}, or hybrid:SHARE like hybrid:0.5", list = Policy::names().join(", "))]
pub struct UnknownPolicy(String);

impl Policy {
    /// Processor sharing.
    pub const FAIR: Self = Self::Online(PolicyName::Fair);
    /// First come, first served.
    pub const FCFS: Self = Self::Online(PolicyName::Fcfs);
    /// Shortest remaining first.
    pub const SRPT: Self = Self::Online(PolicyName::Srpt);
    /// Shortest first; the job in service is interrupted.
    pub const PSJF: Self = Self::Online(PolicyName::Psjf);
    /// Longest first; the job in service is interrupted: `ljf` of a server.
    pub const PLJF: Self = Self::Online(PolicyName::Ljf);
    /// Least attained first.
    pub const LAS: Self = Self::Online(PolicyName::Las);
    /// In the order in which sharing would finish.
    pub const FSP: Self = Self::Online(PolicyName::Fsp);

    /// All that have no parameter.
    pub fn all() -> Vec<Self> {
        let can_be_played = |name: &PolicyName| !name.asks_for_path();
        let online = PolicyName::ALL.into_iter().filter(can_be_played);
        let own = [Self::Sjf, Self::Ljf, Self::Pesjf, Self::Peljf, Self::Psbs];
        online.map(Self::Online).chain(own).collect()
    }

    /// Their names.
    pub fn names() -> Vec<&'static str> {
        Self::all().iter().filter_map(|one| one.name()).collect()
    }

    /// None where it has a parameter.
    fn name(self) -> Option<&'static str> {
        match self {
            // `ljf` goes on to the end here.
            Self::Online(PolicyName::Ljf) => Some("pljf"),
            Self::Online(name) => Some(name.as_str()),
            Self::Sjf => Some("sjf"),
            Self::Ljf => Some("ljf"),
            Self::Pesjf => Some("pesjf"),
            Self::Peljf => Some("peljf"),
            Self::Psbs => Some("psbs"),
            Self::Hybrid(_) => None,
        }
    }

    /// Whether it knows no more of a job than its kind.
    pub fn knows_kinds_only(self) -> bool {
        matches!(self, Self::Pesjf | Self::Peljf)
    }
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let unknown = || UnknownPolicy(text.into());
        if let Some(share) = text.strip_prefix("hybrid:") {
            let share: f64 = share.parse().map_err(|_| unknown())?;
            return if (0.0..=1.0).contains(&share) {
                Ok(Self::Hybrid(share))
            } else {
                Err(unknown())
            };
        }
        let mut all = Self::all().into_iter();
        all.find(|policy| policy.name() == Some(text))
            .ok_or_else(unknown)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.name()) {
            (Self::Hybrid(share), _) => write!(f, "hybrid:{share}"),
            (_, name) => f.write_str(name.unwrap_or_default()),
        }
    }
}
