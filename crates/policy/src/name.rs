//! Policies by name, as a command line gives them.

use crate::order::{Fair, Fcf, Fcfs, Fsp, Las, Pljf, Psjf, Srpt, Swift};
use crate::{Classes, Guard, GuardLimits, Order, Scheduler};
use alloc::boxed::Box;
use core::fmt;
use core::str::FromStr;

/// A policy that can be asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyName {
    /// Processor sharing.
    Fair,
    /// First come, first served.
    Fcfs,
    /// Shortest remaining first.
    Srpt,
    /// Shortest job first, preemptive.
    Psjf,
    /// Least attained service.
    Las,
    /// Fair sojourn protocol.
    Fsp,
    /// By size and round trip, the distant before the near.
    Swift,
    /// Fastest connection first.
    Fcf,
    /// Longest job first, preemptive: broken on purpose, for checking measurements.
    Ljf,
}

/// A name that is no policy's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPolicy;

impl PolicyName {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Fair,
        Self::Fcfs,
        Self::Srpt,
        Self::Psjf,
        Self::Las,
        Self::Fsp,
        Self::Swift,
        Self::Fcf,
        Self::Ljf,
    ];

    /// The name as it is typed and reported.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fair => "fair",
            Self::Fcfs => "fcfs",
            Self::Srpt => "srpt",
            Self::Psjf => "psjf",
            Self::Las => "las",
            Self::Fsp => "fsp",
            Self::Swift => "swift",
            Self::Fcf => "fcf",
            Self::Ljf => "ljf",
        }
    }

    /// Whether its ranks depend on the network to the client: then [`Scheduler::observe`] is worth
    /// the cost of a measurement.
    pub const fn asks_for_path(self) -> bool {
        matches!(self, Self::Swift | Self::Fcf)
    }

    /// The policy with class priority inside and, with `guard`, the starvation guard around it;
    /// sharing in turns of `quantum`.
    pub fn scheduler(self, quantum: u64, guard: Option<GuardLimits>) -> Box<dyn Scheduler + Send> {
        match self {
            Self::Fair => guarded(Fair::new(quantum), guard),
            Self::Fcfs => guarded(Fcfs, guard),
            Self::Srpt => guarded(Srpt, guard),
            Self::Psjf => guarded(Psjf, guard),
            Self::Las => guarded(Las::new(quantum), guard),
            Self::Fsp => guarded(Fsp::default(), guard),
            Self::Swift => guarded(Swift::default(), guard),
            Self::Fcf => guarded(Fcf, guard),
            Self::Ljf => guarded(Pljf, guard),
        }
    }
}

fn guarded<O: Order + Clone + Send + 'static>(
    order: O,
    guard: Option<GuardLimits>,
) -> Box<dyn Scheduler + Send> {
    match guard {
        Some(limits) => Box::new(Guard::new(Classes::new(order), limits)),
        None => Box::new(Classes::new(order)),
    }
}

impl FromStr for PolicyName {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        Self::ALL
            .into_iter()
            .find(|name| name.as_str() == text)
            .ok_or(UnknownPolicy)
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown policy; one of")?;
        PolicyName::ALL
            .iter()
            .try_for_each(|name| write!(f, " {name}"))
    }
}

impl core::error::Error for UnknownPolicy {}
