//! What is told of the sums of databases and classes.

use crate::statistics::Sums;
use sooner_operate::metrics::Unit;

/// What sums are told by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The name that clients use.
    Database,
    /// The name of a class.
    Class,
}

impl By {
    /// The label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Class => "class",
        }
    }

    /// What a family is called by it.
    pub fn named(self, name: &str) -> String {
        match self {
            Self::Database => name.to_owned(),
            Self::Class => format!("class_{name}"),
        }
    }
}

/// A family of sums: name, help, unit, what it is told by, and where its values are. Times are in
/// us there, and in seconds here.
pub type OfSums = (
    &'static str,
    &'static str,
    Option<Unit>,
    &'static [By],
    fn(&Sums) -> u64,
);

const DATABASES: &[By] = &[By::Database];
const CLASSES: &[By] = &[By::Class];
const BOTH: &[By] = &[By::Database, By::Class];
const BYTES: Option<Unit> = Some(Unit::Bytes);
const SECONDS: Option<Unit> = Some(Unit::Seconds);

/// All, in the order in which they are told.
pub const SUMS: [OfSums; 13] = [
    (
        "transactions",
        "Transactions that ended",
        None,
        DATABASES,
        |sums| sums.transactions,
    ),
    (
        "conflicts",
        "Transactions that failed in the way of others (SQLSTATE class 40), among those that ended",
        None,
        BOTH,
        |sums| sums.conflicts,
    ),
    (
        "queries",
        "Commands that were answered",
        None,
        DATABASES,
        |sums| sums.queries,
    ),
    ("received", "From clients", BYTES, DATABASES, |sums| {
        sums.received_bytes
    }),
    ("sent", "To clients", BYTES, DATABASES, |sums| {
        sums.sent_bytes
    }),
    ("outside", "Waiting for a turn", SECONDS, BOTH, |sums| {
        sums.outside_us
    }),
    (
        "logins",
        "Transactions that had to log in to a server first, among those that went in",
        None,
        BOTH,
        |sums| sums.logins,
    ),
    (
        "opening",
        "Waiting for a server connection, once let in",
        SECONDS,
        BOTH,
        |sums| sums.opening_us,
    ),
    (
        "busy",
        "In which servers had something to do",
        SECONDS,
        DATABASES,
        |sums| sums.busy_us,
    ),
    (
        "inside",
        "With a server connection",
        SECONDS,
        CLASSES,
        |sums| sums.inside_us,
    ),
    (
        "preempted",
        "Transactions rolled back because one that matters more waited for their locks",
        None,
        CLASSES,
        |sums| sums.preempted,
    ),
    (
        "preempted_inside",
        "With a server connection, of transactions that were rolled back so",
        SECONDS,
        CLASSES,
        |sums| sums.preempted_us,
    ),
    (
        "repeats",
        "Statements sent again behind a transaction that matters more",
        None,
        CLASSES,
        |sums| sums.repeats,
    ),
];
