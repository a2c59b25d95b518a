//! The last decisions, and which of them an operator wants to hear of.

use std::collections::VecDeque;

use crate::decision::{Decision, State, Why};

/// Decisions kept.
const DECISIONS_MAX: usize = 100;
/// Between two lines about a link that changes, ns.
const NEWS_EVERY_NS: u64 = 10_000_000_000;

/// What was decided.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    last: VecDeque<Decision>,
    count: u64,
    told_ns: Option<u64>,
}

impl Journal {
    /// Adds one; whether it is worth a line in a log: probes come every few seconds, and each is
    /// only where it changes something.
    pub fn note(&mut self, decision: Decision) -> bool {
        // A probe begins with several rates.
        let last = self.last.back().map(|last| last.why);
        if (last, decision.why) == (Some(Why::Probing), Why::Probing) {
            return false;
        }
        if self.last.len() == DECISIONS_MAX {
            self.last.pop_front();
        }
        self.last.push_back(decision);
        self.count += 1;
        let is_due = || {
            let told_ns = self.told_ns;
            told_ns.is_none_or(|told_ns| told_ns + NEWS_EVERY_NS < decision.at_ns)
        };
        let is_news = match decision.why {
            Why::Full | Why::Ours { .. } | Why::NotOurs { .. } => true,
            Why::OthersFill | Why::NoLimit | Why::AnotherClient => true,
            Why::Less | Why::SavedUp => is_due(),
            _ => decision.state == State::Open,
        };
        if is_news {
            self.told_ns = Some(decision.at_ns);
        }
        is_news
    }

    /// The last hundred, oldest first.
    pub fn last(&self) -> impl DoubleEndedIterator<Item = &Decision> {
        self.last.iter()
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }
}
