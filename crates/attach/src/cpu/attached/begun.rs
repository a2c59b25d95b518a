//! Processes that the server's first one has begun while it counts as a worker: workers, which shows
//! that it is none, or programs that do not run yet. Each is looked at once, after a moment.

use std::collections::VecDeque;

use crate::cpu::levels::Usual;
use crate::process_id::ProcessId;

/// After so long a process that was begun runs the program that it is to run, ns.
const RUNS_AFTER_NS: u64 = 50_000_000;

/// Those that were not looked at yet, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Begun {
    all: VecDeque<One>,
}

#[derive(Debug, Clone, Copy)]
struct One {
    process: ProcessId,
    /// What the one that began it had.
    usual: Usual,
    due_ns: u64,
}

impl Begun {
    /// One more was seen at `now_ns`.
    pub(super) fn add(&mut self, process: ProcessId, usual: Usual, now_ns: u64) {
        self.all.push_back(One {
            process,
            usual,
            due_ns: now_ns + RUNS_AFTER_NS,
        });
    }

    /// When the next one is to be looked at; never where there is none.
    pub(super) fn due_ns(&self) -> u64 {
        self.all.front().map_or(u64::MAX, |one| one.due_ns)
    }

    /// The next one that is to be looked at by now, with what the one that began it had.
    pub(super) fn next_due(&mut self, now_ns: u64) -> Option<(ProcessId, Usual)> {
        let due = self.all.pop_front_if(|one| one.due_ns <= now_ns)?;
        Some((due.process, due.usual))
    }

    /// The first process is no worker: all others are found by a look at all.
    pub(super) fn clear(&mut self) {
        self.all.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_looked_at_once_when_it_is_due() {
        let usual = Usual {
            nice: 3,
            policy: 0,
            is_alone: false,
        };
        let [first, second] = [7, 8].map(|pid| ProcessId { pid, began: 1 });
        let mut begun = Begun::default();
        assert_eq!(begun.due_ns(), u64::MAX);
        begun.add(first, usual, 1000);
        begun.add(second, usual, 2000);
        let due_ns = 1000 + RUNS_AFTER_NS;
        assert_eq!(begun.due_ns(), due_ns);
        assert_eq!(begun.next_due(due_ns - 1), None);
        assert_eq!(begun.next_due(due_ns), Some((first, usual)));
        assert_eq!(begun.next_due(due_ns), None);
        assert_eq!(begun.due_ns(), due_ns + 1000);
        begun.clear();
        assert_eq!(begun.next_due(u64::MAX), None);
    }
}
