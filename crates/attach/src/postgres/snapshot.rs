//! What an attachment to a server does, as values for `attach status` and `attach top`.

use serde::{Deserialize, Serialize};

use super::levels::Level;
use super::mechanism::Mechanism;
use super::trial::Trial;

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
    pub classes: Vec<(String, Level)>,
    /// Whether holders of what a higher one waits for are raised.
    pub inherits: bool,
    /// Processes above level 0 for their class now.
    pub raised: usize,
    /// Processes that are only above it because a higher one waits for them.
    pub inheriting: usize,
    /// By which means classes behind the middle are lowered; none where they are not.
    #[serde(default)]
    pub lowering: Option<Mechanism>,
    /// Processes that are lowered for their class now.
    #[serde(default)]
    pub lowered: usize,
    /// Processes of lowered classes that are not lowered now, as others wait for them.
    #[serde(default)]
    pub spared: usize,
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

/// To which classes the processor goes first and last, and by which means: what follows "the
/// processor".
pub fn order_in_words(
    classes: &[(String, Level)],
    mechanism: Mechanism,
    lowering: Option<Mechanism>,
) -> String {
    let names = |is_own: &dyn Fn(Level) -> bool| {
        let own = classes.iter().filter(|(_, level)| is_own(*level));
        let names: Vec<&str> = own.map(|(name, _)| name.as_str()).collect();
        names.join(", ")
    };
    let (first, last) = (names(&|level| level > 0), names(&|level| level < 0));
    let first = (!first.is_empty()).then(|| format!("goes first to {first}, by {mechanism}"));
    let last = lowering.map(|lowering| format!("goes last to {last}, by {lowering}"));
    let both: Vec<String> = first.into_iter().chain(last).collect();
    both.join("; it ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_a_sentence() {
        let classes = |levels: &[Level]| {
            let named = levels.iter().map(|level| (format!("l{level}"), *level));
            named.collect::<Vec<_>>()
        };
        let words = |levels: &[Level], lowering| {
            order_in_words(&classes(levels), Mechanism::RoundRobin, lowering)
        };
        assert_eq!(
            words(&[2, 1, 0], None),
            "goes first to l2, l1, by round-robin"
        );
        let nice = Some(Mechanism::Nice);
        assert_eq!(words(&[0, -1], nice), "goes last to l-1, by nice");
        assert_eq!(
            words(&[1, -1], nice),
            "goes first to l1, by round-robin; it goes last to l-1, by nice"
        );
    }
}
