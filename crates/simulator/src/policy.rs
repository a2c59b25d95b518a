//! Policies by name: those of the crate `policy`, and what only a simulation can have.

use std::fmt;
use std::str::FromStr;

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// Processor sharing.
    Fair,
    /// First come, first served.
    Fcfs,
    /// Shortest remaining first.
    Srpt,
    /// Shortest first, whoever is served is interrupted.
    Psjf,
    /// Shortest first, each to its end.
    Sjf,
    /// Longest first, each to its end.
    Ljf,
    /// Longest first, whoever is served is interrupted: `ljf` of a server, which can always
    /// interrupt.
    Pljf,
    /// Least attained first.
    Las,
    /// In the order in which sharing would finish.
    Fsp,
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
#[error("`{0}` is no policy; use {list}, or hybrid:SHARE like hybrid:0.5", list = Policy::NAMES.join(", "))]
pub struct UnknownPolicy(String);

impl Policy {
    /// All that have no parameter.
    pub const ALL: [Self; 12] = [
        Self::Fair,
        Self::Fcfs,
        Self::Srpt,
        Self::Psjf,
        Self::Sjf,
        Self::Ljf,
        Self::Pljf,
        Self::Las,
        Self::Fsp,
        Self::Pesjf,
        Self::Peljf,
        Self::Psbs,
    ];
    /// Their names.
    pub const NAMES: [&str; 12] = [
        "fair", "fcfs", "srpt", "psjf", "sjf", "ljf", "pljf", "las", "fsp", "pesjf", "peljf",
        "psbs",
    ];

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
        let mut named = Self::NAMES.into_iter().zip(Self::ALL);
        named
            .find(|(name, _)| *name == text)
            .map(|(_, policy)| policy)
            .ok_or_else(unknown)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut named = Self::NAMES.into_iter().zip(Self::ALL);
        match (self, named.find(|(_, policy)| policy == self)) {
            (Self::Hybrid(share), _) => write!(f, "hybrid:{share}"),
            (_, Some((name, _))) => f.write_str(name),
            (_, None) => Ok(()),
        }
    }
}
