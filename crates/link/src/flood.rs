//! When handshakes may not go first any more: far more of them begin than clients complete
//! (Schroeder 2005, 3.2.3).
//!
//! Pure: counts of one second after another come in. SYN-ACKs go before everything else, because a
//! client that waits for one loses a second; but a flood of SYNs would then fill the link with
//! them. A crowd of real clients completes its handshakes, however large it is.

/// Fewer unanswered handshakes a second are never a flood: what a network loses.
const UNANSWERED_MIN: u64 = 100;
/// So many unanswered ones come on each that is completed.
const UNANSWERED_FACTOR: u64 = 4;

/// Handshakes so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshakes {
    /// SYN-ACKs that had to be sent again, and SYN cookies.
    pub unanswered: u64,
    /// Connections that clients opened.
    pub completed: u64,
}

/// Looks at the counts of every second.
#[derive(Debug, Default)]
pub struct FloodWatch {
    last: Option<Handshakes>,
    is_flood: bool,
}

impl FloodWatch {
    /// The counts are now these; says whether there is a flood, if that has changed.
    pub fn note(&mut self, now: Handshakes) -> Option<bool> {
        let last = self.last.replace(now)?;
        let unanswered = now.unanswered.saturating_sub(last.unanswered);
        let completed = now.completed.saturating_sub(last.completed);
        let is_flood = unanswered > UNANSWERED_MIN && unanswered / UNANSWERED_FACTOR > completed;
        let has_changed = is_flood != self.is_flood;
        self.is_flood = is_flood;
        has_changed.then_some(is_flood)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_told_from_a_crowd_and_from_a_bad_network() {
        let mut watch = FloodWatch::default();
        let mut counts = Handshakes::default();
        let mut second = |unanswered, completed| {
            counts.unanswered += unanswered;
            counts.completed += completed;
            watch.note(counts)
        };
        assert_eq!(second(5000, 0), None, "it is not known since when");
        assert_eq!(second(0, 0), None);
        assert_eq!(second(50, 0), None, "a bad network");
        assert_eq!(second(400, 10_000), None, "a crowd");
        assert_eq!(second(5000, 200), Some(true));
        assert_eq!(second(5000, 200), None);
        assert_eq!(second(0, 200), Some(false));
    }
}
