//! All figures of an attachment to a server's workers.

use serde::{Deserialize, Serialize};
use sooner_processor::LEVEL_COUNT;

use super::trial::Trial;

/// At a moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The attachment's process.
    pub pid: u32,
    /// The server's first process.
    pub server_pid: u32,
    /// Its program.
    pub program: String,
    /// Whether the server has ended, and is waited for.
    pub is_waiting: bool,
    /// Since it is attached.
    pub uptime_s: f64,
    /// Whether it only looks.
    pub observes: bool,
    /// Whether programs say what workers do, and what is missing where not.
    pub has_programs: bool,
    /// What is missing for them.
    pub lacks: Option<String>,
    /// The order, in words.
    pub rule: String,
    /// What was tried, and what came of it.
    pub trials: Vec<Trial>,
    /// What the whole server has beside others, in words.
    pub weights: Vec<String>,
    /// Nice values of the levels, the top first.
    pub nice: [i32; LEVEL_COUNT],
    /// Whether the top level has real time instead.
    pub real_time: bool,
    /// Threads that work.
    pub workers: usize,
    /// How many are on each level.
    pub levels: [usize; LEVEL_COUNT],
    /// How many want a processor now.
    pub active: usize,
    /// Whether all are on top, because beginnings are not seen and too few wait for requests.
    pub is_suspended: bool,
    /// Whether requests are counted by the sleeps of workers, because none is seen to begin.
    pub counts_sleeps: bool,
    /// Requests that are over.
    pub requests: u64,
    /// Processor time that half of them used at most, ms; 95 of 100.
    pub used_p50_ms: Option<f64>,
    /// The same for 95 of 100.
    pub used_p95_ms: Option<f64>,
    /// What a request may use on each level but the last, ms; none where requests are so much alike
    /// that all stay on the first.
    pub bounds_ms: Option<[f64; LEVEL_COUNT - 1]>,
    /// How long workers waited for a processor, s; none where it is not known.
    pub waited_s: Option<f64>,
    /// Of that, what they waited for others than workers, 0 to 1.
    pub behind_others_share: Option<f64>,
    /// What the last requests would have taken on average with equal shares, ms.
    pub equal_ms: Option<f64>,
    /// The same by levels, which follow what each has used.
    pub by_levels_ms: Option<f64>,
    /// The same by levels that follow what the like of each used before, where that was known.
    pub by_history_ms: Option<f64>,
    /// The same shortest first, were all known beforehand.
    pub shortest_ms: Option<f64>,
    /// Kinds of requests (a method and a path) that are remembered.
    pub kinds: usize,
    /// Requests that are over and were ordered by what their like used before.
    pub requests_by_history: u64,
    /// Requests that are over and were ordered by what they had used alone.
    pub requests_by_used: u64,
    /// Whether history is left out now, because the last requests would have been sooner without.
    pub is_history_left_out: bool,
    /// Of pairs of the last requests with a history, the share of which the longer was
    /// expected to be longer, 0 to 1; 0.5 is chance.
    pub ranked_rightly_share: Option<f64>,
    /// Changes made.
    pub changes: u64,
    /// Changes that the system refused.
    pub refused: u64,
    /// How often a worker that had waited too long went before all.
    pub favours: u64,
    /// Looks at all workers.
    pub looks: u64,
    /// Processor time of the attachment, of one processor, 0 to 1.
    pub own_share: f64,
}
