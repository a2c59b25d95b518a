//! Policies by name: those of the crate `policy`, and what only a simulation can have.

use sooner_policy::PolicyName;
use std::fmt;
use std::str::FromStr;

/// Largest scale of boosts, in mean sizes.
const SCALE_MAX: f64 = 1e9;

/// What textbooks call what a server cannot have, beside [`PolicyName::ALIASES`].
const ALIASES: [(&str, Policy); 4] = [
    ("spt", Policy::Sjf),
    ("lpt", Policy::Ljf),
    ("hrrf", Policy::Hrrn),
    ("plpt", Policy::PLJF),
];

/// How long a small job may pass large ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BoostScale {
    /// So many mean sizes.
    Means(f64),
    /// So many times the scale that follows from the law of sizes and the load.
    OfLaw(f64),
}

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
    /// By arrival less a boost that falls with the size, each to its end.
    Boost(BoostScale),
    /// The highest ratio of wait to size first, each to its end.
    Hrrn,
    /// In the order of arrival, but a job below the mean passes those above it among so many before
    /// it, each to its end; as many as boosts would let it pass, if none are given.
    Nudge(Option<u64>),
    /// By Gittins' index of the age, on the law that is learned; sizes are not known.
    Gittins,
    /// By the mean that remains at the age, on the law that is learned; sizes are not known.
    Serpt,
    /// This share of the server to the shortest remaining, the rest to all alike.
    Hybrid(f64),
}

/// A name that is no policy's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a policy; use {list}, hybrid:SHARE like hybrid:0.5, boost:SCALE like boost:10 or boost:x1.25, or nudge:PLACES like nudge:5", list = Policy::names().join(", "))]
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

    /// With the scale that follows from the law of sizes and the load.
    pub const BOOST: Self = Self::Boost(BoostScale::OfLaw(1.0));

    /// All that have no parameter.
    pub fn all() -> Vec<Self> {
        let can_be_played = |name: &PolicyName| !name.asks_for_path();
        let online = PolicyName::ALL.into_iter().filter(can_be_played);
        let own = [
            Self::Sjf,
            Self::Ljf,
            Self::Pesjf,
            Self::Peljf,
            Self::Psbs,
            Self::BOOST,
            Self::Hrrn,
            Self::Nudge(None),
            Self::Gittins,
            Self::Serpt,
        ];
        online.map(Self::Online).chain(own).collect()
    }

    /// Their names.
    pub fn names() -> Vec<&'static str> {
        Self::all().iter().filter_map(|one| one.name()).collect()
    }

    /// The name of one without a parameter, and what it is called in full.
    pub fn explained() -> Vec<(&'static str, &'static str)> {
        let all = Self::all().into_iter();
        all.filter_map(|one| Some((one.name()?, one.meaning())))
            .collect()
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::PLJF => "Longest first; a longer one interrupts",
            Self::Online(name) => name.meaning(),
            Self::Sjf => "Shortest job first, each to its end (SPT)",
            Self::Ljf => "Longest job first, each to its end (LPT)",
            Self::Pesjf => "The kind of job with the shortest mean first; interrupts",
            Self::Peljf => "The kind of job with the longest mean first; interrupts",
            Self::Psbs => "FSP on estimated sizes; jobs that are late share",
            Self::Boost(_) => {
                "By arrival time, earlier for short jobs; boost:SCALE sets the boost in mean sizes, \
                 boost:x1.25 a multiple of the best known one"
            }
            Self::Hrrn => "Highest ratio of waiting time to size first, each to its end",
            Self::Nudge(_) => {
                "First come, first served, but a small job passes large ones; nudge:PLACES limits \
                 how many"
            }
            Self::Gittins => "Gittins index of the age; needs no sizes",
            Self::Serpt => "Shortest expected remaining time at its age; needs no sizes",
            Self::Hybrid(_) => "A share of the server to SRPT, the rest to processor sharing",
        }
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
            Self::BOOST => Some("boost"),
            Self::Hrrn => Some("hrrn"),
            Self::Nudge(None) => Some("nudge"),
            Self::Gittins => Some("gittins"),
            Self::Serpt => Some("serpt"),
            Self::Hybrid(_) | Self::Boost(_) | Self::Nudge(Some(_)) => None,
        }
    }

    /// Whether it ranks by what a job has had, which one that waits has not.
    pub fn ranks_by_age(self) -> bool {
        matches!(self, Self::LAS | Self::Gittins | Self::Serpt)
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
        let text = text.to_ascii_lowercase();
        if let Some(share) = text.strip_prefix("hybrid:") {
            let share: f64 = share.parse().map_err(|_| unknown())?;
            return if (0.0..=1.0).contains(&share) {
                Ok(Self::Hybrid(share))
            } else {
                Err(unknown())
            };
        }
        if let Some(scale) = text.strip_prefix("boost:") {
            let times = scale.strip_prefix('x');
            let scale: f64 = times.unwrap_or(scale).parse().map_err(|_| unknown())?;
            return if (0.0..=SCALE_MAX).contains(&scale) {
                Ok(Self::Boost(match times {
                    Some(_) => BoostScale::OfLaw(scale),
                    None => BoostScale::Means(scale),
                }))
            } else {
                Err(unknown())
            };
        }
        if let Some(places) = text.strip_prefix("nudge:") {
            let places = places.parse().map_err(|_| unknown())?;
            return Ok(Self::Nudge(Some(places)));
        }
        let named = Self::all().into_iter();
        let named = named.filter_map(|policy| Some((policy.name()?, policy)));
        let shared = PolicyName::ALIASES.map(|(word, name)| (word, Self::Online(name)));
        named
            .chain(shared)
            .chain(ALIASES)
            .find(|(word, _)| *word == text)
            .map(|(_, policy)| policy)
            .ok_or_else(unknown)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.name()) {
            (Self::Hybrid(share), _) => write!(f, "hybrid:{share}"),
            (Self::Boost(BoostScale::Means(scale)), _) => write!(f, "boost:{scale}"),
            (Self::Boost(BoostScale::OfLaw(times)), None) => write!(f, "boost:x{times}"),
            (Self::Nudge(Some(places)), _) => write!(f, "nudge:{places}"),
            (_, name) => f.write_str(name.unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_those_of_textbooks_are_read() {
        for policy in Policy::all() {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        for (text, policy) in [
            ("PS", Policy::FAIR),
            ("fifo", Policy::FCFS),
            ("fb", Policy::LAS),
            ("srtf", Policy::SRPT),
            ("spt", Policy::Sjf),
            ("lpt", Policy::Ljf),
            ("ljf", Policy::Ljf),
            ("Hybrid:0.5", Policy::Hybrid(0.5)),
        ] {
            assert_eq!(text.parse(), Ok(policy), "{text}");
        }
    }

    #[test]
    fn aliases_hide_no_policy() {
        let names = Policy::names();
        let shared = PolicyName::ALIASES.map(|(word, _)| word);
        for alias in shared.iter().chain(&ALIASES.map(|(word, _)| word)) {
            assert!(!names.contains(alias), "{alias}");
        }
    }
}
