//! What was decided, and why, in words an operator understands.

use std::fmt;

/// What is believed of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// At the most: nothing is known, or the queue is not ours.
    Open,
    /// A lower rate shows whether the queue is ours.
    Trial,
    /// What waits beyond drains.
    Drain,
    /// A little below what the link carries.
    Hold,
    /// A little above, to see whether there is more.
    Probe,
}

/// Why a rate was chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Why {
    /// All clients wait: this is what the link carries.
    Full,
    /// Clients' delays may have been long from the start.
    Suspected,
    /// So many of the light clients that were heard wait less with a lower rate.
    Ours {
        /// Who wait less.
        fallen: usize,
        /// All.
        heard: usize,
    },
    /// So many do: it is the queue of others, or one of the clients' own.
    NotOurs {
        /// Who wait less.
        fallen: usize,
        /// All.
        heard: usize,
    },
    /// None of the clients was heard of, or one of several: the traffic has ended, and with it the
    /// trial.
    Unheard,
    /// Clients wait although less is sent than the link carried: it carries less now.
    Less,
    /// They still wait.
    StillFull,
    /// They wait no more.
    Drained,
    /// They wait whatever is sent: others fill the link.
    OthersFill,
    /// Is there more?
    Probing,
    /// There was: on to the next step.
    More,
    /// There was not.
    NoMore,
    /// There was more for a while, as where a provider saves what is not used.
    SavedUp,
    /// There is not enough to send to find out.
    NoDemand,
    /// All that may be used is there.
    NoLimit,
    /// Another client sees no queue: the first one waited before its own link.
    AnotherClient,
}

/// A change of the rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// When, ns of the monotonic clock.
    pub at_ns: u64,
    /// What is believed from now on.
    pub state: State,
    /// What may leave from now on, bits a second.
    pub rate_bits_per_sec: u64,
    /// What the link is believed to carry; none: not known.
    pub carries_bits_per_sec: Option<u64>,
    /// What the clients waited for, ms.
    pub waits_ms: f64,
    /// Why.
    pub why: Why,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Open => "open",
            State::Trial => "trial",
            State::Drain => "drain",
            State::Hold => "hold",
            State::Probe => "probe",
        })
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Full => f.write_str("all clients wait: the link is full"),
            Why::Suspected => f.write_str("packets are lost and clients may wait: trying less"),
            Why::Ours { fallen, heard } => {
                write!(
                    f,
                    "{fallen} of {heard} clients wait less: the queue is ours"
                )
            }
            Why::NotOurs { fallen, heard } => {
                write!(
                    f,
                    "{fallen} of {heard} clients wait less: the queue is not ours"
                )
            }
            Why::Unheard => f.write_str("too few clients were heard of: the trial said nothing"),
            Why::Less => f.write_str("clients wait again: the link carries less"),
            Why::StillFull => f.write_str("clients still wait"),
            Why::Drained => f.write_str("the queue beyond is empty"),
            Why::OthersFill => f.write_str("clients wait whatever is sent: others fill the link"),
            Why::Probing => f.write_str("looking for more"),
            Why::More => f.write_str("the link carries more"),
            Why::NoMore => f.write_str("the link carries no more"),
            Why::SavedUp => f.write_str("the link carried more for a while only"),
            Why::NoDemand => f.write_str("not enough to send to find out"),
            Why::NoLimit => f.write_str("no limit found"),
            Why::AnotherClient => f.write_str("another client does not wait: no common queue"),
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.state)?;
        let mbit = |rate: u64| rate as f64 / 1e6;
        match (self.state, crate::limit(self.rate_bits_per_sec)) {
            (State::Open, None) => write!(f, ", not limited")?,
            (State::Open, Some(most)) => write!(f, ", at most {:.2} Mbit/s", mbit(most))?,
            _ => write!(f, " at {:.2} Mbit/s", mbit(self.rate_bits_per_sec))?,
        }
        write!(f, ": {} (clients wait {:.1} ms", self.why, self.waits_ms)?;
        match self.carries_bits_per_sec {
            Some(carries) => write!(f, "; link carries {:.2} Mbit/s)", mbit(carries)),
            None => f.write_str(")"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(state: State, rate_bits_per_sec: u64) -> String {
        let decision = Decision {
            at_ns: 0,
            state,
            rate_bits_per_sec,
            carries_bits_per_sec: None,
            waits_ms: 4.0,
            why: Why::NoLimit,
        };
        decision.to_string()
    }

    #[test]
    fn an_open_link_is_limited_by_what_the_operator_gave_alone() {
        let rest = "no limit found (clients wait 4.0 ms)";
        let open = |rate| words(State::Open, rate);
        assert_eq!(
            open(crate::NO_LIMIT_BITS_PER_SEC),
            format!("open, not limited: {rest}")
        );
        assert_eq!(
            open(3_000_000),
            format!("open, at most 3.00 Mbit/s: {rest}")
        );
        assert_eq!(
            words(State::Hold, 3_000_000),
            format!("hold at 3.00 Mbit/s: {rest}")
        );
    }
}
