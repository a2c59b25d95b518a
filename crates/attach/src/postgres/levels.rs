//! Which level of the processor a class gets, and which process is at which level.
//!
//! Priority 100 is the middle, between classes that matter more and those that matter less. Nothing
//! is ever lowered, so that only what is before the middle is raised.

use std::collections::{BTreeMap, HashSet};

use sooner_pooler::config::ClassTable;

use crate::process_id::ProcessId;

/// The priority in the middle: what is in no class stays with it.
const MIDDLE: u8 = 100;

/// From priorities to levels: 0 is as the server's processes are, 1 and more go before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    /// Ascending: the first has the highest level, the last is at level 0.
    priorities: Vec<u8>,
}

impl Levels {
    /// Of these classes. The last priority stays as it is, and so do all from the middle on; where
    /// there is a single one, before the middle, what is in no class does.
    pub fn of(classes: &[ClassTable]) -> Levels {
        let priorities = classes
            .iter()
            .map(|class| MIDDLE.min(*class.priority.get_ref()));
        let mut priorities: Vec<u8> = priorities.collect();
        priorities.sort_unstable();
        priorities.dedup();
        match priorities[..] {
            [only] if only < MIDDLE => priorities.push(MIDDLE),
            [] => priorities.push(MIDDLE),
            _ => {}
        }
        Levels { priorities }
    }

    /// The level of a priority.
    pub fn level(&self, priority: u8) -> u8 {
        let before = self.priorities.partition_point(|own| *own < priority);
        (self.priorities.len() - 1).saturating_sub(before) as u8
    }

    /// The highest; 0 where no class goes first.
    pub fn top(&self) -> u8 {
        (self.priorities.len() - 1) as u8
    }
}

/// A process that is to be at another level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub process: ProcessId,
    /// The level it is to have.
    pub level: u8,
}

#[derive(Debug, Default)]
struct Standing {
    own: u8,
    inherited: u8,
    /// What the system has set.
    applied: u8,
    /// What it has refused since the last look.
    refused: Option<u8>,
}

impl Standing {
    fn wanted(&self) -> u8 {
        self.own.max(self.inherited)
    }

    fn change(&self) -> Option<u8> {
        let level = self.wanted();
        (level != self.applied && self.refused != Some(level)).then_some(level)
    }
}

/// All processes that are, were or are to be at a level above 0.
#[derive(Debug, Default)]
pub struct Standings {
    all: BTreeMap<ProcessId, Standing>,
}

impl Standings {
    /// A process is in a class of this level.
    pub fn set_own(&mut self, process: ProcessId, level: u8) {
        if level > 0 || self.all.contains_key(&process) {
            self.all.entry(process).or_default().own = level;
        }
    }

    /// These, and no others, hold what a process of that level waits for.
    pub fn set_inherited(&mut self, holders: &BTreeMap<ProcessId, u8>) {
        for standing in self.all.values_mut() {
            standing.inherited = 0;
        }
        for (process, level) in holders {
            self.all.entry(*process).or_default().inherited = *level;
        }
    }

    /// Those that have the level of their class or of a waiter not yet.
    pub fn changes(&self) -> Vec<Change> {
        let all = self.all.iter();
        all.filter_map(|(process, standing)| {
            Some(Change {
                process: *process,
                level: standing.change()?,
            })
        })
        .collect()
    }

    /// The same of one process.
    pub fn change(&self, process: ProcessId) -> Option<Change> {
        let level = self.all.get(&process)?.change()?;
        Some(Change { process, level })
    }

    /// The system has made a change.
    pub fn done(&mut self, change: Change) {
        if let Some(standing) = self.all.get_mut(&change.process) {
            standing.applied = change.level;
            if standing.wanted() == 0 && standing.applied == 0 {
                self.all.remove(&change.process);
            }
        }
    }

    /// The system has refused one: it is tried again after [`Standings::retry`].
    pub fn refused(&mut self, change: Change) {
        if let Some(standing) = self.all.get_mut(&change.process) {
            standing.refused = Some(change.level);
        }
    }

    /// What was refused is tried again.
    pub fn retry(&mut self) {
        for standing in self.all.values_mut() {
            standing.refused = None;
        }
    }

    /// A process is gone.
    pub fn forget(&mut self, process: ProcessId) {
        self.all.remove(&process);
    }

    /// After a look at these: all others are in no class but those that are told of, and those that
    /// are gone are forgotten. What holds something need not be a client's session.
    pub fn keep(
        &mut self,
        seen: &HashSet<ProcessId>,
        is_told_of: impl Fn(ProcessId) -> bool,
        is_there: impl Fn(ProcessId) -> bool,
    ) {
        self.all.retain(|process, standing| {
            if seen.contains(process) {
                return true;
            }
            if !is_told_of(*process) {
                standing.own = 0;
            }
            is_there(*process)
        });
    }

    /// Whether it is above level 0, or is to be.
    pub fn has(&self, process: ProcessId) -> bool {
        self.all.contains_key(&process)
    }

    /// The level of a process's class.
    pub fn level(&self, process: ProcessId) -> u8 {
        self.all.get(&process).map_or(0, |standing| standing.own)
    }

    /// Processes in classes above level 0, with their levels.
    pub fn own(&self) -> impl Iterator<Item = (ProcessId, u8)> {
        let own = self.all.iter();
        let own = own.map(|(process, standing)| (*process, standing.own));
        own.filter(|(_, level)| *level > 0)
    }

    /// How many are above level 0 for their class, and how many only for a waiter.
    pub fn counts(&self) -> (usize, usize) {
        let inherited = self.all.values();
        let inherited = inherited.filter(|own| own.inherited > own.own).count();
        (self.own().count(), inherited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_pooler::config::Config;

    fn levels(priorities: &[u8]) -> Levels {
        let tables = priorities.iter().enumerate();
        let tables = tables.map(|(at, priority)| {
            format!("[[class]]\nname = \"c{at}\"\npriority = {priority}\nuser = [\"u{at}\"]\n")
        });
        Levels::of(&Config::parse(&tables.collect::<String>()).unwrap().class)
    }

    #[test]
    fn the_last_priority_stays_where_it_is() {
        for (priorities, expected) in [
            (&[][..], [0, 0, 0]),
            (&[1], [1, 0, 0]),
            (&[1, 2], [1, 0, 0]),
            (&[2, 1, 2], [1, 0, 0]),
            (&[1, 2, 100], [2, 1, 0]),
            (&[150], [0, 0, 0]),
            (&[150, 200], [0, 0, 0]),
            (&[1, 150, 200], [1, 0, 0]),
            (&[1, 2, 150], [2, 1, 0]),
        ] {
            let levels = levels(priorities);
            let found = [1, 2, 100].map(|priority| levels.level(priority));
            assert_eq!([150, 200].map(|priority| levels.level(priority)), [0, 0]);
            assert_eq!(found, expected, "{priorities:?}");
        }
    }

    fn of(pid: u32) -> ProcessId {
        ProcessId { pid, began: 1 }
    }

    /// What is to be changed, all of which the system does.
    fn step(standings: &mut Standings) -> String {
        let changes = standings.changes();
        let words = changes.iter().map(|one| {
            standings.done(*one);
            format!("{}:{}", one.process.pid, one.level)
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_process_has_the_higher_of_two_levels_for_as_long_as_it_needs_it() {
        let mut standings = Standings::default();
        let mut words = Vec::new();
        standings.set_own(of(7), 2);
        standings.set_own(of(8), 0);
        words.push(step(&mut standings));
        standings.set_inherited(&BTreeMap::from([(of(8), 2), (of(9), 1)]));
        words.push(step(&mut standings));
        standings.set_own(of(8), 1);
        words.push(step(&mut standings));
        standings.set_inherited(&BTreeMap::new());
        words.push(step(&mut standings));
        standings.set_own(of(7), 0);
        standings.set_own(of(8), 0);
        words.push(step(&mut standings));
        words.push(step(&mut standings));
        assert_eq!(words, ["7:2", "8:2 9:1", "", "8:1 9:0", "7:0 8:0", ""]);
        assert_eq!(standings.counts(), (0, 0));
    }

    #[test]
    fn what_the_system_refuses_is_tried_again_after_a_look() {
        let mut standings = Standings::default();
        standings.set_own(of(7), 1);
        let change = standings.change(of(7)).unwrap();
        standings.refused(change);
        assert_eq!(standings.changes(), []);
        standings.retry();
        assert_eq!(step(&mut standings), "7:1");
        // To be put back as well.
        standings.set_own(of(7), 0);
        let change = standings.change(of(7)).unwrap();
        standings.refused(change);
        standings.retry();
        assert_eq!(step(&mut standings), "7:0");
        assert!(!standings.has(of(7)));
    }

    #[test]
    fn who_is_no_clients_session_is_put_back_when_nobody_waits_for_it() {
        let mut standings = Standings::default();
        standings.set_own(of(1), 1);
        standings.set_inherited(&BTreeMap::from([(of(2), 1), (of(3), 1)]));
        step(&mut standings);
        // 2 is a worker of the server, 3 has gone.
        let seen = HashSet::from([of(1)]);
        standings.keep(&seen, |_| false, |process| process == of(2));
        standings.set_inherited(&BTreeMap::new());
        assert_eq!(step(&mut standings), "2:0");
    }

    #[test]
    fn a_session_that_shows_nothing_any_more_is_in_no_class() {
        let mut standings = Standings::default();
        standings.set_own(of(1), 1);
        standings.set_own(of(2), 1);
        step(&mut standings);
        standings.keep(&HashSet::new(), |process| process == of(2), |_| true);
        assert_eq!(step(&mut standings), "1:0");
    }
}
