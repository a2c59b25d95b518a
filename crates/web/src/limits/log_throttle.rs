//! A line in the log at most once a minute, with the number of times it stands for.

use sooner_policy::Time;

/// The time between two lines, ns.
const PAUSE_NS: u64 = 60_000_000_000;

/// One kind of event that may come very often.
#[derive(Debug, Default)]
pub struct LogThrottle {
    said_at: Option<Time>,
    unsaid: u64,
}

impl LogThrottle {
    /// It has happened again; gives the number of times since the last line when a line is due.
    pub fn note(&mut self, now: Time) -> Option<u64> {
        self.unsaid += 1;
        if self.said_at.is_some_and(|at| now.since(at) < PAUSE_NS) {
            return None;
        }
        self.said_at = Some(now);
        Some(std::mem::take(&mut self.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_at_once_the_others_together() {
        let mut log_throttle = LogThrottle::default();
        let mut note = |seconds: u64| log_throttle.note(Time::from_ns(seconds * 1_000_000_000));
        assert_eq!(note(5), Some(1));
        assert_eq!(note(6), None);
        assert_eq!(note(64), None);
        assert_eq!(note(65), Some(3));
        assert_eq!(note(1000), Some(1));
    }
}
