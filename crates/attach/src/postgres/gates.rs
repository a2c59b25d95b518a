//! Which gates tell, of which processes, and which of them stand above what they feed.

use std::collections::{BTreeMap, HashSet};

use crate::process_id::ProcessId;

/// Connections of gates, by number.
#[derive(Debug, Default)]
pub struct Gates {
    all: BTreeMap<u64, Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    process: Option<ProcessId>,
    told: HashSet<ProcessId>,
}

/// What follows when a connection ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Processes of which no gate tells any more.
    pub untold: Vec<ProcessId>,
    /// A gate's process that has told, and has no connection any more.
    pub gate: Option<ProcessId>,
}

impl Gates {
    /// One has come, of this process. It counts when it has told of a process of the server.
    pub fn came(&mut self, number: u64, process: Option<ProcessId>) {
        let told = HashSet::new();
        self.all.insert(number, Gate { process, told });
    }

    /// It tells of a process of the server; gives the gate's own at the first time.
    pub fn told(&mut self, number: u64, of: ProcessId) -> Option<ProcessId> {
        let gate = self.all.get_mut(&number)?;
        let is_first = gate.told.is_empty();
        gate.told.insert(of);
        gate.process.filter(|_| is_first)
    }

    /// Processes of gates that have told of one of the server.
    pub fn telling(&self) -> Vec<ProcessId> {
        let telling = self.all.values().filter(|gate| !gate.told.is_empty());
        telling.filter_map(|gate| gate.process).collect()
    }

    /// A connection has ended.
    pub fn gone(&mut self, number: u64) -> Left {
        let Some(gate) = self.all.remove(&number) else {
            return Left::default();
        };
        let untold = gate.told.into_iter();
        let stays = |process| self.all.values().any(|own| own.process == Some(process));
        Left {
            untold: untold.filter(|process| !self.tell_of(*process)).collect(),
            gate: gate.process.filter(|process| !stays(*process)),
        }
    }

    /// Whether one tells of it.
    pub fn tell_of(&self, process: ProcessId) -> bool {
        self.all.values().any(|gate| gate.told.contains(&process))
    }

    /// Forgets processes that are gone.
    pub fn retain(&mut self, is_there: impl Fn(ProcessId) -> bool) {
        for gate in self.all.values_mut() {
            gate.told.retain(|process| is_there(*process));
        }
    }

    /// How many connections there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pid: u32) -> ProcessId {
        ProcessId { pid, began: 1 }
    }

    #[test]
    fn a_gate_stands_above_from_its_first_word_to_its_last_connection() {
        let (mut gates, gate) = (Gates::default(), of(9));
        gates.came(1, Some(gate));
        assert_eq!(gates.told(1, of(5)), Some(gate));
        assert_eq!(gates.told(1, of(6)), None);
        gates.came(2, Some(gate));
        assert_eq!(
            gates.told(2, of(6)),
            Some(gate),
            "raised already, to no harm"
        );
        let left = gates.gone(1);
        assert_eq!((left.untold, left.gate), (vec![of(5)], None));
        let left = gates.gone(2);
        assert_eq!((left.untold, left.gate), (vec![of(6)], Some(gate)));
        // A connection that only looked whether the socket is in use.
        gates.came(3, Some(of(7)));
        assert_eq!(gates.gone(3).untold, []);
        assert_eq!(gates.gone(4), Left::default());
    }
}
