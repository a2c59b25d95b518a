//! Processes that have to run before those that they serve: the gates, the worker that orders lock
//! queues, and the session that asks.
//!
//! Each time one of them wakes it takes a processor from a session in the middle of its turn, and
//! another one follows there, with nothing of its own in the caches. With 100 sessions that cost
//! 4 to 5 % of the throughput for each. So gates and the worker go first only while a transaction
//! does, and some seconds more.

use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::{priority, process_table};

use super::Attached;
use super::apply::set_one;
use crate::postgres::daemon::WorkError;
use crate::postgres::levels::Change;
use crate::postgres::mechanism::Mechanism;
use crate::process_id::{ProcessId, is_gone};
use crate::record::Record;

/// The nice value of the session that asks, where others have real time.
const OWN_NICE: i32 = -10;
/// What the process of the extension `sooner_locks` is called.
const LOCK_WORKER: &str = "postgres: sooner_locks";
/// The worker is looked for anew after so long, as it may have begun anew.
const WORKER_LOOK_NS: u64 = 10_000_000_000;
/// So long after the last transaction that goes first they are as they were.
const REST_AFTER_NS: u64 = 10_000_000_000;

/// Whether they go first, and since when they need not.
#[derive(Debug, Default)]
pub(super) struct Helpers {
    needs: Needs,
    lock_worker: Option<ProcessId>,
    worker_looked_for_ns: u64,
}

/// When they are needed.
#[derive(Debug, Default)]
struct Needs {
    is_met: bool,
    since_ns: u64,
}

impl Needs {
    /// Whether a transaction goes first now; gives what is to change.
    fn step(&mut self, goes_first: bool, now_ns: u64) -> Option<bool> {
        if goes_first {
            self.since_ns = now_ns;
        }
        let is_recent = now_ns.saturating_sub(self.since_ns) <= REST_AFTER_NS;
        let is_needed = goes_first || self.is_met && is_recent;
        (is_needed != self.is_met).then(|| {
            self.is_met = is_needed;
            is_needed
        })
    }
}

impl Attached<'_> {
    /// Who asks who waits for whom must not wait behind them itself. Not by real time: the server reads
    /// what a session does once more, without a pause, until that has told it whole, and one that was
    /// stopped in the middle of it would have to wait until the kernel's rest for others comes. So it
    /// comes early among ordinary ones, with a share that leaves most to them.
    pub(super) fn raise_own(&mut self) -> Result<(), WorkError> {
        let own = self.connection.own_process;
        let process = ProcessId::of(own);
        let process = process.map_err(|_| WorkError::ServerGone("its process is gone".into()))?;
        match self.mechanism {
            Mechanism::RoundRobin if self.family.has(process) => {
                // Whichever counts here. Both end with the session, which is ours alone.
                let _ = priority::set_nice(own, OWN_NICE);
                let _ = priority::set_autogroup(own, OWN_NICE);
            }
            Mechanism::RoundRobin => {}
            // Also before those that are only not lowered.
            mechanism if !self.levels.raises() => {
                let raised = mechanism.apply(own, 1, 1, self.leftovers.usual);
                self.count(&raised);
            }
            _ => drop(self.apply(Change {
                process,
                level: self.levels.top().cast_signed(),
                from: 0,
            })),
        }
        Ok(())
    }

    /// Whether a transaction goes first now: so do they, and for a while after it.
    pub(super) fn keep_helpers(&mut self, goes_first: bool) {
        match self.helpers.needs.step(goes_first, monotonic_ns()) {
            Some(true) => {
                for gate in self.gates.telling() {
                    self.raise_gate(gate);
                }
                self.raise_lock_worker();
            }
            Some(false) => {
                let raised = self.leftovers.gates.iter();
                let raised: Vec<ProcessId> = raised.map(|(gate, _)| *gate).collect();
                for gate in raised {
                    self.put_gate_back(gate);
                }
                if let Some(process) = self.helpers.lock_worker {
                    self.apply(Change {
                        process,
                        level: 0,
                        from: self.levels.top().cast_signed(),
                    });
                }
            }
            None => {}
        }
    }

    /// After a look.
    pub(super) fn look_at_helpers(&mut self) {
        self.keep_helpers(self.standings.counts() != (0, 0));
        let now_ns = monotonic_ns();
        if now_ns.saturating_sub(self.helpers.worker_looked_for_ns) > WORKER_LOOK_NS {
            // It is no part of what a look costs: that comes a thousand times as often.
            let before_ns = self.meter.own_ns();
            if self.find_lock_worker() && self.helpers.needs.is_met {
                self.raise_lock_worker();
            }
            self.asked_at_ns.1 += self.meter.own_ns().saturating_sub(before_ns);
        }
    }

    /// A gate has told for the first time.
    pub(super) fn raise_new_gate(&mut self, gate: ProcessId) {
        if self.helpers.needs.is_met {
            self.raise_gate(gate);
        }
    }

    /// Who orders lock queues goes before those that wait there, or comes too late.
    fn raise_lock_worker(&mut self) {
        // It may have begun anew since the last look.
        self.find_lock_worker();
        if let Some(process) = self.helpers.lock_worker {
            self.apply(Change {
                process,
                level: self.levels.top().cast_signed(),
                from: 0,
            });
        }
    }

    /// Whether there is another one than before.
    pub(super) fn find_lock_worker(&mut self) -> bool {
        self.helpers.worker_looked_for_ns = monotonic_ns();
        if self.helpers.lock_worker.is_some_and(ProcessId::is_there) {
            return false;
        }
        let first = self.connection.first_process;
        let children = process_table::children(first).unwrap_or_default();
        let mut children = children.into_iter();
        let is_it = |pid: &u32| process_table::is_called(*pid, LOCK_WORKER);
        self.helpers.lock_worker = children
            .find(is_it)
            .and_then(|pid| ProcessId::of_child(pid, first));
        self.helpers.lock_worker.is_some()
    }

    /// A gate goes before what it feeds: nothing would come to the others. No nice value is above that
    /// of the top level: by these a gate is as that is.
    fn raise_gate(&mut self, gate: ProcessId) {
        if self.leftovers.gates.iter().any(|(known, _)| *known == gate) {
            return;
        }
        // What could not be put back, or is above all by itself, stays as it is.
        let Ok(usual) = self.mechanism.usual_of(gate.pid) else {
            return;
        };
        self.leftovers.gates.push((gate, usual));
        if self.leftovers.write().is_err() {
            self.leftovers.gates.pop();
            return;
        }
        let (top, mechanism) = (self.levels.top(), self.mechanism);
        let raised = set_one(true, &|| gate.is_there(), &|is_up| {
            let level = if is_up { top + 1 } else { 0 };
            mechanism.apply(gate.pid, level, top, usual)
        });
        self.count(&raised);
    }

    /// A gate tells no more: its process is as it was.
    pub(super) fn put_gate_back(&mut self, gate: ProcessId) {
        let mut raised = self.leftovers.gates.iter();
        let Some(at) = raised.position(|(known, _)| *known == gate) else {
            return;
        };
        let (_, usual) = self.leftovers.gates[at];
        let back = match gate.is_there() {
            true => self.mechanism.put_back(gate.pid, self.levels.top(), usual),
            false => Ok(()),
        };
        // What stays written down is put back at the end.
        if back.as_ref().err().is_none_or(is_gone) {
            self.leftovers.gates.remove(at);
            let _ = self.leftovers.write();
        }
        self.count(&back);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_go_first_while_a_transaction_does_and_ten_seconds_more() {
        let mut needs = Needs::default();
        let mut step = |goes_first, at_s: u64| needs.step(goes_first, at_s * 1_000_000_000);
        let steps = [
            (false, 1, None),
            (true, 20, Some(true)),
            (true, 25, None),
            (false, 26, None),
            (false, 35, None),
            (false, 36, Some(false)),
            (false, 99, None),
            (true, 100, Some(true)),
        ];
        for (goes_first, at_s, change) in steps {
            assert_eq!(step(goes_first, at_s), change, "at {at_s} s");
        }
    }
}
