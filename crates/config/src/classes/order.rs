//! `order` and `late`: in which order those who wait go in. It follows from the classes where these
//! say something: targets or weights.

use super::aims::ClassAims;
use crate::{Misconfigured, Spanned};
use serde::Deserialize;
use sooner_admission::{Goal, Lateness, Order, Within};

/// In which order jobs of one class go in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderName {
    /// First come, first served.
    #[serde(alias = "fcfs")]
    Fifo,
    /// What is expected to be short first.
    #[serde(alias = "expected")]
    Shortest,
    /// What is expected to be long first: what one should not do, for comparison.
    Longest,
    /// Who came first, where what is expected to be short counts as if it had come earlier.
    Boost,
    /// Who has waited longest for what it is expected to take.
    Hrrn,
    /// Who came first, but what is expected to be short passes what is long among the last few.
    Nudge,
    /// The one of `fifo`, `shortest` and `boost` under which the last would have done best.
    Auto,
}

/// Which classes are late where there is more load than targets allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LateName {
    /// That of the less important classes.
    #[default]
    ByPriority,
    /// That of all, in proportion to their targets.
    InProportion,
}

impl From<OrderName> for Within {
    fn from(name: OrderName) -> Self {
        match name {
            OrderName::Fifo => Self::Fcfs,
            OrderName::Shortest => Self::Expected,
            OrderName::Longest => Self::Longest,
            OrderName::Boost => Self::Boost,
            OrderName::Hrrn => Self::Hrrn,
            OrderName::Nudge => Self::Nudge,
            OrderName::Auto => Self::Auto,
        }
    }
}

impl From<LateName> for Lateness {
    fn from(name: LateName) -> Self {
        match name {
            LateName::ByPriority => Self::ByPriority,
            LateName::InProportion => Self::InProportion,
        }
    }
}

/// The first thing that classes say and that cannot hold together, or beside an order that the file
/// names, which it calls `key`.
pub fn check_order(
    classes: &[ClassAims<'_>],
    order: Option<&Spanned<OrderName>>,
    key: &str,
) -> Result<(), Misconfigured> {
    let weighted = classes.iter().find_map(|class| class.weight);
    let has_targets = classes.iter().any(ClassAims::has_target);
    if let Some(weight) = weighted
        && has_targets
    {
        let words =
            "some classes have weights and others have targets; use either weights or targets";
        return Err(Misconfigured::at(weight, "class.weight", words));
    }
    let has_priority = |class: &&ClassAims<'_>| class.priority.span() != (0..0);
    if let Some(class) = classes.iter().find(has_priority)
        && weighted.is_some()
    {
        let words =
            "has no effect where classes have weights; leave it out, or leave the weights out";
        return Err(Misconfigured::at(class.priority, "class.priority", words));
    }
    match order {
        Some(order) if has_targets || weighted.is_some() => {
            let words = "has no effect where classes have targets or weights, which set the order; leave it out, or leave those out";
            Err(Misconfigured::at(order, key, words))
        }
        _ => Ok(()),
    }
}

/// In which order those who wait go in: `otherwise` where classes do not say it, among those that
/// are charged where `is_shared`.
pub fn order(
    classes: &[ClassAims<'_>],
    otherwise: OrderName,
    late: LateName,
    is_shared: bool,
) -> Order {
    if classes.iter().any(ClassAims::has_target) {
        return Order::Targets(late.into());
    }
    if classes.iter().any(|class| class.weight.is_some()) {
        return Order::Shares;
    }
    let within = Within::from(otherwise);
    match is_shared {
        true => Order::LeastUsed(within),
        false => within.into(),
    }
}

/// Whether `share_by` may stand beside these classes.
pub fn check_share_by<T>(
    classes: &[ClassAims<'_>],
    share_by: Option<&Spanned<T>>,
    key: &str,
) -> Result<(), Misconfigured> {
    let says_it = |class: &ClassAims<'_>| class.has_target() || class.weight.is_some();
    match share_by {
        Some(share_by) if classes.iter().any(says_it) => {
            let words = "has no effect where classes have targets or weights, which set the order; leave it out, or leave those out";
            Err(Misconfigured::at(share_by, key, words))
        }
        _ => Ok(()),
    }
}

/// Whether `late` says something beside these classes.
pub fn check_late(
    classes: &[ClassAims<'_>],
    late: Option<&Spanned<LateName>>,
) -> Result<(), Misconfigured> {
    match late {
        Some(late) if !classes.iter().any(ClassAims::has_target) => {
            let words = "has no effect where no class has a target; leave it out, or write target = { mean = \"30ms\" } in a [[class]]";
            Err(Misconfigured::at(late, "late", words))
        }
        _ => Ok(()),
    }
}

/// What each class is to get, by number; what is in none has the number behind the last, and goes
/// last.
pub fn goals(classes: &[ClassAims<'_>]) -> Vec<Goal> {
    let none = Goal {
        priority: u8::MAX,
        weight: 1,
        ..Goal::default()
    };
    classes.iter().map(ClassAims::goal).chain([none]).collect()
}
