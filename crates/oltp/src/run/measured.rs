//! What was seen, transaction by transaction.

use std::collections::BTreeMap;
use std::time::Duration;

/// A transaction that came to an end, good or bad.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The class's number.
    pub class: usize,
    /// The kind's number.
    pub kind: usize,
    /// When it ended, from the beginning of what is measured.
    pub ended: Duration,
    /// From when it was wanted until it ended, times that it was tried again included.
    pub response: Duration,
    /// How often it was tried again.
    pub retries: u32,
    /// Whether it was taken back on purpose.
    pub is_rolled_back: bool,
}

/// Everything of a run.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Those that ended well while it was measured.
    pub outcomes: Vec<Outcome>,
    /// Those that did not, by SQLSTATE.
    pub errors: BTreeMap<String, u64>,
    /// For how long it was measured.
    pub duration: Duration,
    /// Transactions, or visits, that were wanted when all sessions were taken: they waited here.
    pub waited_for_session: u64,
    /// How late they began where a session was free, at the worst in a hundred, s.
    pub lag_p99_seconds: f64,
}
