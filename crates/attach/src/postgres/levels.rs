//! Which level of the processor a class gets, and which process is at which level.

use std::collections::BTreeMap;

use sooner_pooler::config::ClassTable;

/// Priority of what is in no class.
const NO_CLASS: u8 = 100;

/// From priorities to levels: 0 is as the server's processes are, 1 and more go before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    /// Ascending: the first has the highest level, the last is at level 0.
    priorities: Vec<u8>,
}

impl Levels {
    /// Of these classes. The last priority stays as it is; where there is a single one, before what
    /// is in no class, that does.
    pub fn of(classes: &[ClassTable]) -> Levels {
        let priorities = classes.iter().map(|class| *class.priority.get_ref());
        let mut priorities: Vec<u8> = priorities.collect();
        priorities.sort_unstable();
        priorities.dedup();
        match priorities[..] {
            [only] if only < NO_CLASS => priorities.push(NO_CLASS),
            [] => priorities.push(NO_CLASS),
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
    pub pid: u32,
    /// The level it is to have.
    pub level: u8,
}

#[derive(Debug, Default)]
struct Standing {
    own: u8,
    inherited: u8,
    applied: u8,
}

/// All processes that are, were or are to be at a level above 0.
#[derive(Debug, Default)]
pub struct Standings {
    all: BTreeMap<u32, Standing>,
}

impl Standings {
    /// A process is in a class of this level.
    pub fn set_own(&mut self, pid: u32, level: u8) {
        if level > 0 || self.all.contains_key(&pid) {
            self.all.entry(pid).or_default().own = level;
        }
    }

    /// These, and no others, hold what a process of that level waits for.
    pub fn set_inherited(&mut self, holders: &BTreeMap<u32, u8>) {
        for standing in self.all.values_mut() {
            standing.inherited = 0;
        }
        for (pid, level) in holders {
            self.all.entry(*pid).or_default().inherited = *level;
        }
    }

    /// Those that have the level of their class or of a waiter not yet; they count as done.
    pub fn changes(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        for (pid, standing) in &mut self.all {
            let level = standing.own.max(standing.inherited);
            if level != standing.applied {
                standing.applied = level;
                changes.push(Change { pid: *pid, level });
            }
        }
        self.all
            .retain(|_, own| own.own > 0 || own.inherited > 0 || own.applied > 0);
        changes
    }

    /// Forgets processes that are gone.
    pub fn retain(&mut self, is_there: impl Fn(u32) -> bool) {
        self.all.retain(|pid, _| is_there(*pid));
    }

    /// The level of a process's class.
    pub fn level(&self, pid: u32) -> u8 {
        self.all.get(&pid).map_or(0, |standing| standing.own)
    }

    /// Processes in classes above level 0, with their levels.
    pub fn own(&self) -> impl Iterator<Item = (u32, u8)> {
        let own = self.all.iter().map(|(pid, standing)| (*pid, standing.own));
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
        ] {
            let levels = levels(priorities);
            let found = [1, 2, 100].map(|priority| levels.level(priority));
            assert_eq!(found, expected, "{priorities:?}");
        }
    }

    #[test]
    fn a_process_has_the_higher_of_two_levels_for_as_long_as_it_needs_it() {
        let mut standings = Standings::default();
        let mut words = Vec::new();
        let mut step = |standings: &mut Standings| {
            let changes = standings.changes();
            let text: Vec<String> = changes
                .iter()
                .map(|one| format!("{}:{}", one.pid, one.level))
                .collect();
            words.push(text.join(" "));
        };
        standings.set_own(7, 2);
        standings.set_own(8, 0);
        step(&mut standings);
        standings.set_inherited(&BTreeMap::from([(8, 2), (9, 1)]));
        step(&mut standings);
        standings.set_own(8, 1);
        step(&mut standings);
        standings.set_inherited(&BTreeMap::new());
        step(&mut standings);
        standings.set_own(7, 0);
        standings.set_own(8, 0);
        step(&mut standings);
        step(&mut standings);
        assert_eq!(words, ["7:2", "8:2 9:1", "", "8:1 9:0", "7:0 8:0", ""]);
        assert_eq!(standings.counts(), (0, 0));
    }
}
