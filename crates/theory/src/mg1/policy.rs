//! The policies that have a formula.

use crate::TheoryError;
use std::str::FromStr;

/// What textbooks call some of them.
const ALIASES: [(&str, Policy); 7] = [
    ("ps", Policy::Fair),
    ("fifo", Policy::Fcfs),
    ("spt", Policy::Sjf),
    ("srtf", Policy::Srpt),
    ("srptf", Policy::Srpt),
    ("fb", Policy::Las),
    ("fbps", Policy::Las),
];

/// A policy with a formula for M/G/1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// First come, first served.
    Fcfs,
    /// Processor sharing.
    Fair,
    /// Shortest job first, each to its end.
    Sjf,
    /// Shortest remaining first.
    Srpt,
    /// Shortest job first, preemptive.
    Psjf,
    /// Least attained service.
    Las,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Fcfs,
        Self::Fair,
        Self::Sjf,
        Self::Srpt,
        Self::Psjf,
        Self::Las,
    ];

    /// The name as it is typed and reported.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fcfs => "fcfs",
            Self::Fair => "fair",
            Self::Sjf => "sjf",
            Self::Srpt => "srpt",
            Self::Psjf => "psjf",
            Self::Las => "las",
        }
    }
}

impl FromStr for Policy {
    type Err = TheoryError;

    fn from_str(text: &str) -> Result<Self, TheoryError> {
        let named = Self::ALL.into_iter().map(|policy| (policy.name(), policy));
        named
            .chain(ALIASES)
            .find(|(word, _)| word.eq_ignore_ascii_case(text))
            .map(|(_, policy)| policy)
            .ok_or_else(|| TheoryError::Policy(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_textbooks_are_read_too() {
        for (text, policy) in [
            ("PS", Policy::Fair),
            ("fifo", Policy::Fcfs),
            ("FB", Policy::Las),
            ("srtf", Policy::Srpt),
            ("spt", Policy::Sjf),
            ("srpt", Policy::Srpt),
        ] {
            assert_eq!(text.parse().ok(), Some(policy), "{text}");
        }
        assert!("best".parse::<Policy>().is_err());
    }
}
