//! Which level of the processor a class gets, and which process is at which level.
//!
//! Priority 100 is the middle, between classes that matter more and those that matter less. What is
//! before the middle is raised; what is behind it is lowered only where the operator chose that.

use std::collections::{BTreeMap, HashSet};

use sooner_pooler::config::ClassTable;

use crate::process_id::ProcessId;

/// The priority in the middle: what is in no class stays with it.
const MIDDLE: u8 = 100;

/// Where a process stands: 0 is as the server's processes are, 1 and more go before, [`LOWERED`]
/// goes behind.
pub type Level = i8;

/// The one level behind the middle.
pub const LOWERED: Level = -1;

/// From priorities to levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    /// Ascending: the first has the highest level, the last is at level 0.
    priorities: Vec<u8>,
    /// Whether a class is behind the middle, and lowered.
    lowers: bool,
}

impl Levels {
    /// Of these classes. The last priority stays as it is, and so do all from the middle on, but
    /// for those behind it where they are lowered; where there is a single one, before the middle,
    /// what is in no class does.
    pub fn of(classes: &[ClassTable], lowers: bool) -> Levels {
        let named = classes.iter().map(|class| *class.priority.get_ref());
        let lowers = lowers && named.clone().any(|priority| priority > MIDDLE);
        let mut priorities: Vec<u8> = named.map(|priority| priority.min(MIDDLE)).collect();
        priorities.sort_unstable();
        priorities.dedup();
        match priorities[..] {
            [only] if only < MIDDLE => priorities.push(MIDDLE),
            [] => priorities.push(MIDDLE),
            _ => {}
        }
        Levels { priorities, lowers }
    }

    /// The level of a priority.
    pub fn level(&self, priority: u8) -> Level {
        if self.lowers && priority > MIDDLE {
            return LOWERED;
        }
        let before = self.priorities.partition_point(|own| *own < priority);
        (self.priorities.len() - 1).saturating_sub(before) as Level
    }

    /// Whether a class is raised.
    pub fn raises(&self) -> bool {
        self.top() > 0
    }

    /// Whether a class is lowered.
    pub fn lowers(&self) -> bool {
        self.lowers
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
    pub level: Level,
    /// The level it has.
    pub from: Level,
}

#[derive(Debug, Default)]
struct Standing {
    own: Level,
    /// The highest of those that wait for it; none where none does.
    inherited: Option<Level>,
    /// What the system has set.
    applied: Level,
    /// What it has refused since the last look.
    refused: Option<Level>,
}

impl Standing {
    fn wanted(&self) -> Level {
        self.inherited.map_or(self.own, |level| level.max(self.own))
    }

    fn change(&self) -> Option<(Level, Level)> {
        let level = self.wanted();
        let is_new = level != self.applied && self.refused != Some(level);
        is_new.then_some((level, self.applied))
    }
}

/// All processes that are, were or are to be at another level than 0.
#[derive(Debug, Default)]
pub struct Standings {
    all: BTreeMap<ProcessId, Standing>,
}

impl Standings {
    /// A process is in a class of this level.
    pub fn set_own(&mut self, process: ProcessId, level: Level) {
        if level != 0 || self.all.contains_key(&process) {
            self.all.entry(process).or_default().own = level;
        }
    }

    /// These, and no others, hold what a process of that level waits for.
    pub fn set_inherited(&mut self, holders: &BTreeMap<ProcessId, Level>) {
        for standing in self.all.values_mut() {
            standing.inherited = None;
        }
        for (process, level) in holders {
            if *level > 0 || self.all.contains_key(process) {
                self.all.entry(*process).or_default().inherited = Some(*level);
            }
        }
    }

    /// Those that have the level of their class or of a waiter not yet.
    pub fn changes(&self) -> Vec<Change> {
        let all = self.all.iter();
        all.filter_map(|(process, standing)| {
            let (level, from) = standing.change()?;
            let process = *process;
            Some(Change {
                process,
                level,
                from,
            })
        })
        .collect()
    }

    /// The same of one process.
    pub fn change(&self, process: ProcessId) -> Option<Change> {
        let (level, from) = self.all.get(&process)?.change()?;
        Some(Change {
            process,
            level,
            from,
        })
    }

    /// The system has made a change.
    pub fn done(&mut self, change: Change) {
        if let Some(standing) = self.all.get_mut(&change.process) {
            standing.applied = change.level;
            let is_wanted = standing.own != 0 || standing.wanted() != 0;
            if !is_wanted && standing.applied == 0 {
                self.all.remove(&change.process);
            }
        }
    }

    /// The system has made a part of a change: the process is at this level now.
    pub fn done_in_part(&mut self, process: ProcessId, level: Level) {
        if let Some(standing) = self.all.get_mut(&process) {
            standing.applied = level;
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

    /// Whether it is at another level than 0, or is to be.
    pub fn has(&self, process: ProcessId) -> bool {
        self.all.contains_key(&process)
    }

    /// The level of a process's class.
    pub fn level(&self, process: ProcessId) -> Level {
        self.all.get(&process).map_or(0, |standing| standing.own)
    }

    /// Processes in classes above level 0, with their levels.
    pub fn own(&self) -> impl Iterator<Item = (ProcessId, Level)> {
        let own = self.all.iter();
        let own = own.map(|(process, standing)| (*process, standing.own));
        own.filter(|(_, level)| *level > 0)
    }

    /// How many are above level 0 for their class, and how many only for a waiter.
    pub fn counts(&self) -> (usize, usize) {
        let inherits = |one: &&Standing| one.inherited.is_some_and(|level| level > one.own.max(0));
        let inherited = self.all.values().filter(inherits).count();
        (self.own().count(), inherited)
    }

    /// How many are in a class that is lowered, and how many of these are not, as one waits for
    /// them.
    pub fn lowered(&self) -> (usize, usize) {
        let own = self.all.values().filter(|one| one.own < 0);
        let spared = own.clone().filter(|one| one.inherited.is_some()).count();
        (own.count() - spared, spared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_pooler::config::Config;

    fn levels(priorities: &[u8], lowers: bool) -> Levels {
        let tables = priorities.iter().enumerate();
        let tables = tables.map(|(at, priority)| {
            format!("[[class]]\nname = \"c{at}\"\npriority = {priority}\nuser = [\"u{at}\"]\n")
        });
        let config = Config::parse(&tables.collect::<String>()).unwrap();
        Levels::of(&config.class, lowers)
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
            let levels = levels(priorities, false);
            let found = [1, 2, 100].map(|priority| levels.level(priority));
            assert_eq!([150, 200].map(|priority| levels.level(priority)), [0, 0]);
            assert_eq!(found, expected, "{priorities:?}");
        }
    }

    #[test]
    fn what_is_behind_the_middle_is_lowered_where_that_was_chosen() {
        for (priorities, expected, lowers) in [
            (&[1][..], [1, 0, 0], false),
            (&[150], [0, 0, -1], true),
            (&[1, 150], [1, 0, -1], true),
            (&[50, 60, 200], [2, 0, -1], true),
            (&[100, 101], [0, 0, -1], true),
        ] {
            let levels = levels(priorities, true);
            let found = [1, 100, 150].map(|priority| levels.level(priority));
            assert_eq!(
                (found, levels.lowers()),
                (expected, lowers),
                "{priorities:?}"
            );
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
    fn what_is_lowered_is_not_for_as_long_as_one_waits_for_it() {
        let mut standings = Standings::default();
        let mut words = Vec::new();
        standings.set_own(of(7), LOWERED);
        standings.set_own(of(8), LOWERED);
        words.push(step(&mut standings));
        // One in the middle waits for 7, and for 9, which is there anyway.
        standings.set_inherited(&BTreeMap::from([(of(7), 0), (of(9), 0)]));
        words.push(step(&mut standings));
        assert_eq!(standings.lowered(), (1, 1));
        standings.set_inherited(&BTreeMap::from([(of(7), 2)]));
        words.push(step(&mut standings));
        standings.set_inherited(&BTreeMap::new());
        words.push(step(&mut standings));
        standings.set_own(of(7), 0);
        standings.set_own(of(8), 1);
        words.push(step(&mut standings));
        assert_eq!(words, ["7:-1 8:-1", "7:0", "7:2", "7:-1", "7:0 8:1"]);
        assert_eq!((standings.counts(), standings.lowered()), ((1, 0), (0, 0)));
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
