//! `order` and `late`: in which order those who wait go in. It follows from the classes where these
//! say something: targets or weights.

use super::{ClassTable, Config};
use serde::Deserialize;
use sooner_admission::{Goal, Lateness, Order};
use sooner_config::Misconfigured;

/// In which order transactions of one class go in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderName {
    /// First come, first served.
    Fifo,
    /// What is expected to be short first.
    Shortest,
    /// What is expected to be long first: what one should not do, for comparison.
    Longest,
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

impl Config {
    pub(super) fn check_order(&self) -> Result<(), Misconfigured> {
        let weighted = self.class.iter().find_map(|class| class.weight.as_ref());
        let has_targets = self.class.iter().any(|class| class.has_target());
        if let Some(weight) = weighted
            && has_targets
        {
            let words = "some classes have weights and some have targets; who goes first follows from the ones or from the others";
            return Err(Misconfigured::at(weight, "class.weight", words));
        }
        let has_priority = |class: &&ClassTable| class.priority.span() != (0..0);
        if let Some(class) = self.class.iter().find(has_priority)
            && weighted.is_some()
        {
            let words = "says nothing where classes have weights: who goes first follows from these alone; leave it out, or leave the weights out";
            return Err(Misconfigured::at(&class.priority, "class.priority", words));
        }
        match &self.order {
            Some(order) if has_targets || weighted.is_some() => {
                let words = "the order follows from the classes' targets or weights; leave it out, or leave those out";
                Err(Misconfigured::at(order, "order", words))
            }
            _ => Ok(()),
        }
    }

    /// In which order those who wait go in.
    pub fn order(&self) -> Order {
        let lateness = match self.late {
            LateName::ByPriority => Lateness::ByPriority,
            LateName::InProportion => Lateness::InProportion,
        };
        if self.class.iter().any(|class| class.has_target()) {
            return Order::Targets(lateness);
        }
        if self.class.iter().any(|class| class.weight.is_some()) {
            return Order::Shares;
        }
        match self.order.as_ref().map(|order| order.get_ref()) {
            None | Some(OrderName::Fifo) => Order::Fcfs,
            Some(OrderName::Shortest) => Order::Expected,
            Some(OrderName::Longest) => Order::Longest,
        }
    }

    /// Whether it matters what transactions say of themselves: for their class, or for how long
    /// they are expected to take.
    pub fn needs_hints(&self) -> bool {
        let needs_hints = self
            .class
            .iter()
            .any(|class| class.needs_hints() || class.has_target());
        needs_hints || matches!(self.order(), Order::Expected | Order::Longest)
    }

    /// What each class is to get, by number; who is in none has the number behind the last, and
    /// goes last.
    pub fn goals(&self) -> Vec<Goal> {
        let none = Goal {
            priority: u8::MAX,
            weight: 1,
            ..Goal::default()
        };
        let classes = self.class.iter().map(|class| class.goal());
        classes.chain([none]).collect()
    }
}
