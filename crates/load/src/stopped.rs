//! A signal that ended a run before all of its requests had come to their end.

use std::fmt;

/// Where it found the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stopped {
    /// Requests were still to be sent.
    Sending {
        /// How long the run had lasted, s.
        after_s: f64,
        /// How long it should have lasted, s.
        planned_s: f64,
    },
    /// All the time was over, and the last responses were waited for.
    Waiting {
        /// Requests without an answer.
        unanswered: u64,
    },
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sending { after_s, planned_s } => {
                write!(f, "stopped after {after_s:.1} of {planned_s:.1} s")
            }
            Self::Waiting { unanswered: 0 } => f.write_str("stopped while the last visits went on"),
            Self::Waiting { unanswered: 1 } => {
                f.write_str("stopped while 1 request was unanswered")
            }
            Self::Waiting { unanswered } => {
                write!(f, "stopped while {unanswered} requests were unanswered")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_whose_time_was_over_is_told_by_what_it_waited_for() {
        let sending = Stopped::Sending {
            after_s: 3.21,
            planned_s: 60.0,
        };
        assert_eq!(sending.to_string(), "stopped after 3.2 of 60.0 s");
        let waiting = |unanswered| Stopped::Waiting { unanswered }.to_string();
        assert_eq!(waiting(7), "stopped while 7 requests were unanswered");
        assert_eq!(waiting(1), "stopped while 1 request was unanswered");
        assert_eq!(waiting(0), "stopped while the last visits went on");
    }
}
