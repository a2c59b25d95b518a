//! Users who carry out transactions, and what they see.
//!
//! Closed: so many users, each asking again after its answer, perhaps after a while. Open:
//! transactions are wanted at random times, whatever became of the others; each is measured from
//! when it was wanted, so one that had to wait for a session has waited. Partly-open: visits begin
//! at random times, and inside one each transaction waits for the one before it (Schroeder, Wierman
//! and Harchol-Balter 2006). When the time is over nothing more is begun, what runs is waited for
//! until [`WIND_DOWN`] is over too, and what waited is told.
//!
//! Connections are opened before the clock starts. Classes are drawn by lot for each transaction,
//! or follow from its kind; a class has its own connection of each user, which calls itself by the
//! class's name, so that a program that orders transactions can tell them apart.

mod arrivals;
mod free;
mod measured;
mod report;
mod user;
mod users;

use std::time::Duration;

use crate::{Isolation, Statements};

pub use measured::{Measured, Outcome};
pub use report::{Group, Report};
pub use users::run;

/// How long the transactions that run at the end of the time are waited for. No figure depends on
/// it, because what ends after the time is incomplete; so it is far longer than one takes that will
/// end at all.
pub const WIND_DOWN: Duration = Duration::from_secs(60);

/// Who triggers a transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// So many users, thinking for so long on average (exponential) between transactions.
    Closed {
        /// Users.
        users: u32,
        /// Mean time between an answer and the next question.
        think: Duration,
    },
    /// So many transactions a second, wanted at random times, on at most so many sessions.
    Open {
        /// A second.
        rate_per_sec: f64,
        /// At a time.
        sessions: u32,
    },
    /// So many visits a second, each of a random number of transactions.
    PartlyOpen {
        /// Visits a second.
        rate_per_sec: f64,
        /// The mean number of transactions of a visit (geometric).
        transactions: f64,
        /// Mean time between an answer and the next question of a visit.
        think: Duration,
        /// Visits at a time.
        sessions: u32,
    },
}

/// A class of transactions.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// What its connections call themselves.
    pub name: String,
    /// Its share of all transactions, 0 to 1; where kinds are named, of nothing.
    pub share: f64,
    /// Kinds that are always of this class.
    pub kinds: Vec<String>,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who triggers transactions.
    pub model: Model,
    /// Classes; what is in none of them is in the last one.
    pub classes: Vec<Class>,
    /// What transactions see of each other.
    pub isolation: Isolation,
    /// How statements are sent.
    pub statements: Statements,
    /// Not measured at the beginning.
    pub warm_up: Duration,
    /// Measured.
    pub measured: Duration,
    /// Of everything that is drawn.
    pub seed: u64,
    /// Whether the first statement of a transaction says its class and kind in a comment.
    pub remarks: bool,
}

impl Options {
    /// The class of a transaction of this kind, drawn by `lot` from 0 to 1.
    fn class(&self, kind: &str, lot: f64) -> usize {
        let is_named = |class: &Class| class.kinds.iter().any(|own| own == kind);
        if let Some(at) = self.classes.iter().position(is_named) {
            return at;
        }
        let mut left = lot;
        for (at, class) in self.classes.iter().enumerate() {
            if left < class.share {
                return at;
            }
            left -= class.share;
        }
        self.classes.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_drawn_unless_the_kind_says_it() {
        let class = |name: &str, share: f64, kinds: &[&str]| Class {
            name: name.into(),
            share,
            kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
        };
        let options = Options {
            model: Model::Closed {
                users: 1,
                think: Duration::ZERO,
            },
            classes: vec![
                class("high", 0.1, &[]),
                class("buys", 0.0, &["payment"]),
                class("rest", 0.0, &[]),
            ],
            isolation: Isolation::default(),
            statements: Statements::default(),
            warm_up: Duration::ZERO,
            measured: Duration::from_secs(1),
            seed: 1,
            remarks: false,
        };
        assert_eq!(options.class("new_order", 0.05), 0);
        assert_eq!(options.class("payment", 0.05), 1);
        assert_eq!(options.class("new_order", 0.1), 2);
    }
}
