//! The policies that have a formula.

use crate::TheoryError;
use std::str::FromStr;

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
        let all = Self::ALL.into_iter();
        all.clone()
            .find(|policy| policy.name() == text)
            .ok_or_else(|| TheoryError::Policy(text.into()))
    }
}
