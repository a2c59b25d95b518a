//! Policies by name, as a command line gives them.

use crate::order::{BandMeasure, Fair, Fcf, Fcfs, Fsp, Las, OrderUser, Pljf, Psjf, Srpt, Swift};
use crate::{Classes, Guard, GuardLimits, HALF_LIFE_NS, LeastUsed, Order, Scheduler};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// A policy that can be requested by name.
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

    /// What textbooks call some of them.
    pub const ALIASES: [(&str, Self); 6] = [
        ("ps", Self::Fair),
        ("fifo", Self::Fcfs),
        ("srtf", Self::Srpt),
        ("srptf", Self::Srpt),
        ("fb", Self::Las),
        ("fbps", Self::Las),
    ];

    /// What it is called in full.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Fair => "Processor sharing: all responses at once, each at the same rate",
            Self::Fcfs => "First come, first served",
            Self::Srpt => "Shortest remaining processing time first",
            Self::Psjf => "Shortest job first, by its whole size; a shorter one interrupts",
            Self::Las => "Least attained service first; needs no sizes",
            Self::Fsp => "Fair sojourn protocol: in the order in which sharing would finish",
            Self::Swift => "By size and round-trip time, distant clients before near ones",
            Self::Fcf => "Fastest connection first",
            Self::Ljf => "Longest job first: wrong on purpose, to check measurements",
        }
    }

    /// Whether its ranks depend on the network to the client: then [`Scheduler::observe`] is worth
    /// the cost of a measurement.
    pub const fn asks_for_path(self) -> bool {
        matches!(self, Self::Swift | Self::Fcf)
    }

    /// Gives its order, sharing in turns of `quantum`, to `user`.
    pub fn with_order<U: OrderUser>(self, quantum: u64, user: U) -> U::Output {
        match self {
            Self::Fair => user.with(Fair::new(quantum)),
            Self::Fcfs => user.with(Fcfs),
            Self::Srpt => user.with(Srpt),
            Self::Psjf => user.with(Psjf),
            Self::Las => user.with(Las::new(quantum)),
            Self::Fsp => user.with(Fsp::default()),
            Self::Swift => user.with(Swift::default()),
            Self::Fcf => user.with(Fcf),
            Self::Ljf => user.with(Pljf),
        }
    }

    /// The policy with class priority inside and, with `guard`, the starvation guard around it;
    /// sharing in turns of `quantum`.
    pub fn scheduler(self, quantum: u64, guard: Option<GuardLimits>) -> Box<dyn Scheduler + Send> {
        self.with_order(quantum, Guarded(guard))
    }

    /// The same among the jobs of one payer ([`crate::Payer`]); of the payers of a class the one
    /// goes first that had the least of late.
    pub fn scheduler_by_payer(
        self,
        quantum: u64,
        guard: Option<GuardLimits>,
    ) -> Box<dyn Scheduler + Send> {
        self.with_order(quantum, GuardedByPayer(guard))
    }

    /// How kernel bands follow it.
    pub fn bands(self) -> BandMeasure {
        self.with_order(1, Bands)
    }

    /// The names that are offered to people, parted by commas: all but the wrong one.
    pub fn offered() -> String {
        let names = Self::ALL.iter().filter(|name| **name != Self::Ljf);
        let names: Vec<&str> = names.map(|name| name.as_str()).collect();
        names.join(", ")
    }
}

/// Makes a scheduler of an order.
struct Guarded(Option<GuardLimits>);

impl OrderUser for Guarded {
    type Output = Box<dyn Scheduler + Send>;

    fn with<O: Order + Clone + Send + 'static>(self, order: O) -> Self::Output {
        guarded(Classes::new(order), self.0)
    }
}

/// Makes a scheduler of an order, for each payer.
struct GuardedByPayer(Option<GuardLimits>);

impl OrderUser for GuardedByPayer {
    type Output = Box<dyn Scheduler + Send>;

    fn with<O: Order + Clone + Send + 'static>(self, order: O) -> Self::Output {
        guarded(LeastUsed::new(order, HALF_LIFE_NS), self.0)
    }
}

fn guarded<S: Scheduler + Send + 'static>(
    inner: S,
    limits: Option<GuardLimits>,
) -> Box<dyn Scheduler + Send> {
    match limits {
        Some(limits) => Box::new(Guard::new(inner, limits)),
        None => Box::new(inner),
    }
}

/// Tells an order's bands.
struct Bands;

impl OrderUser for Bands {
    type Output = BandMeasure;

    fn with<O: Order>(self, _order: O) -> BandMeasure {
        O::BANDS
    }
}

impl FromStr for PolicyName {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let named = Self::ALL.into_iter().map(|name| (name.as_str(), name));
        named
            .chain(Self::ALIASES)
            .find(|(word, _)| word.eq_ignore_ascii_case(text))
            .map(|(_, name)| name)
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
