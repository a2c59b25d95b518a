//! The numbers that a server has for its processes, and those of this PID namespace.

use std::collections::{HashMap, HashSet};

use sooner_kernel::process_table;

/// From the numbers that the server has for its processes to those of this PID namespace: they
/// differ where it runs in a container.
#[derive(Debug, Clone)]
pub struct ProcessNumbers {
    first: u32,
    /// None where they are the same.
    inside: Option<HashMap<i32, u32>>,
    /// Looked for in vain: not again before the next look.
    unknown: HashSet<i32>,
}

impl ProcessNumbers {
    /// Of the server with this first process, one session of which has number `own` there. None
    /// where no such process is seen.
    pub fn of(first: u32, own: i32) -> Option<ProcessNumbers> {
        let is_child =
            process_table::parent(own.cast_unsigned()).is_ok_and(|parent| parent == first);
        let mut numbers = ProcessNumbers {
            first,
            inside: (!is_child).then(HashMap::new),
            unknown: HashSet::new(),
        };
        numbers.outside(own).map(|_| numbers)
    }

    /// The number here; none where the process is gone.
    pub fn outside(&mut self, pid: i32) -> Option<u32> {
        let Some(known) = &mut self.inside else {
            return u32::try_from(pid).ok();
        };
        if !known.contains_key(&pid) && !self.unknown.contains(&pid) {
            *known = children(self.first);
            if !known.contains_key(&pid) {
                self.unknown.insert(pid);
            }
        }
        known.get(&pid).copied()
    }

    /// What was not found may be there now.
    pub fn begin_look(&mut self) {
        self.unknown.clear();
    }

    /// The process of this number is gone: another one may have it.
    pub fn forget(&mut self, pid: i32) {
        if let Some(known) = &mut self.inside {
            known.remove(&pid);
        }
    }
}

/// The children of a process by their innermost number.
fn children(first: u32) -> HashMap<i32, u32> {
    let own = process_table::children(first)
        .unwrap_or_default()
        .into_iter();
    own.filter_map(|pid| Some((process_table::innermost_number(pid).ok()?, pid)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_not_there_is_looked_for_once_a_look() {
        let own = std::process::id();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let mut numbers = ProcessNumbers {
            first: own,
            inside: Some(HashMap::new()),
            unknown: HashSet::new(),
        };
        let inside = child.id().cast_signed();
        assert_eq!(numbers.outside(inside), Some(child.id()));
        assert_eq!(numbers.outside(-7), None);
        numbers.forget(inside);
        assert_eq!(numbers.outside(inside), Some(child.id()));
        assert!(numbers.unknown.contains(&-7));
        numbers.begin_look();
        assert!(numbers.unknown.is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
