//! What a class says of who goes first: a priority, targets, or a weight.

use super::bounds::ClassBounds;
use super::target::{TargetTable, response_targets};
use crate::{Misconfigured, Spanned};
use serde::Deserialize;
use sooner_admission::Goal;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;

/// What becomes of how much response times differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variability {
    /// They are brought near the mean: what takes long goes early, what is short waits.
    Reduce,
}

/// What one class says.
#[derive(Clone, Copy, Debug)]
pub struct ClassAims<'a> {
    /// What tables and metrics call it.
    pub name: &'a Spanned<String>,
    /// 1 goes before 2.
    pub priority: &'a Spanned<u8>,
    /// How long its jobs may take.
    pub target: &'a TargetTable,
    /// Whether all kinds of them are to take the same time.
    pub variability: Option<Variability>,
    /// Its part of the server.
    pub weight: Option<&'a Spanned<NonZeroU32>>,
    /// What bounds it.
    pub bounds: ClassBounds<'a>,
}

/// The priorities there are; 1 goes first.
pub fn priorities() -> RangeInclusive<u8> {
    1..=200
}

/// The priority of a class that says nothing: between those that matter more and those that matter
/// less.
pub fn middle_priority() -> Spanned<u8> {
    Spanned::new(0..0, 100)
}

impl ClassAims<'_> {
    /// The first mistake in what it says by itself.
    pub fn check(&self) -> Result<(), Misconfigured> {
        if !priorities().contains(self.priority.get_ref()) {
            let words = "out of range; write 1 (first) to 200";
            return Err(Misconfigured::at(self.priority, "class.priority", words));
        }
        response_targets(self.target)?;
        self.bounds.check()?;
        match self.weight {
            Some(weight) if self.has_target() => {
                let words = "a class has a weight or a target, not both; remove one of them";
                Err(Misconfigured::at(weight, "class.weight", words))
            }
            _ => Ok(()),
        }
    }

    /// Whether the operator demands something of its response times.
    pub fn has_target(&self) -> bool {
        !self.target.is_empty() || self.variability.is_some()
    }

    /// What its jobs are to get.
    pub fn goal(&self) -> Goal {
        Goal {
            name: self.name.get_ref().clone(),
            priority: self.priority.get_ref() - 1,
            weight: self.weight.map_or(1, |weight| weight.get_ref().get()),
            // They were read before.
            response_targets: response_targets(self.target).unwrap_or_default(),
            evens_out: self.variability.is_some(),
            inside_max: self.bounds.inside_max.map(|cap| cap.get_ref().get()),
        }
    }
}
