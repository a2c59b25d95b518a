//! What an attachment to a server does, as values for `attach status` and `attach top`.

use serde::{Deserialize, Serialize};

use super::mechanism::{Mechanism, Trial};

/// All of it, since it began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The process that is attached.
    pub pid: u32,
    /// The server's first process.
    pub server_pid: u32,
    /// Its version.
    pub version: String,
    /// For how long.
    pub uptime_s: f64,
    /// Whether the server is gone, and waited for.
    #[serde(default)]
    pub is_waiting: bool,
    /// By which means the processor goes to some first.
    pub mechanism: Mechanism,
    /// What came of the test at the start.
    pub trials: Vec<Trial>,
    /// Classes and their levels; 0 is as the server's processes are.
    pub classes: Vec<(String, u8)>,
    /// Whether holders of what a higher one waits for are raised.
    pub inherits: bool,
    /// Processes above level 0 for their class now.
    pub raised: usize,
    /// Processes that are only above it because a higher one waits for them.
    pub inheriting: usize,
    /// Changes of levels.
    pub changes: u64,
    /// Changes that the system refused.
    pub refused: u64,
    /// Gates that tell.
    pub gates: usize,
    /// What they told.
    pub told: u64,
    /// Looks at the server's sessions.
    pub looks: u64,
    /// How late a session's level followed its statement where only looks tell, on average, ms.
    pub late_ms: Option<f64>,
    /// Questions who holds what a higher one waits for.
    pub inherit_looks: u64,
    /// Processor time of all that, of all processors', 0 to 1.
    pub cost_share: f64,
}
