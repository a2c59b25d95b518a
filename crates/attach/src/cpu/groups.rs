//! What weighs a server's workers: one group, or several, between which nice values have no effect.

use std::collections::BTreeSet;

use super::attached::AttachError;
use super::options::Options;
use super::server::Worker;
use super::weight::Group;
use crate::process_id::ProcessId;

/// The groups of a server's workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups {
    groups: Vec<Group>,
    /// Whether a worker is in none, which competes with every group of the machine.
    has_outside: bool,
}

impl Groups {
    /// Those of these workers; an error where nice values cannot order them.
    pub fn of(options: &Options, workers: &[Worker]) -> Result<Groups, AttachError> {
        if workers.is_empty() {
            return Err(AttachError::NoWorker);
        }
        let processes: BTreeSet<u32> = workers.iter().map(|worker| worker.process).collect();
        let groups = processes.into_iter().filter_map(|process| {
            let group = Group::of(process);
            // One that has ended meanwhile is in no group, and needs none.
            (group.is_some() || ProcessId::of(process).is_ok()).then_some(group)
        });
        let groups = Groups::from(groups);
        match groups.sessions() {
            0 | 1 => Ok(groups),
            _ if options.real_time => Ok(groups),
            many => Err(AttachError::Sessions(many)),
        }
    }

    fn from(each: impl Iterator<Item = Option<Group>>) -> Groups {
        let mut groups = Groups {
            groups: Vec::new(),
            has_outside: false,
        };
        for group in each {
            match group {
                None => groups.has_outside = true,
                Some(group) if groups.groups.iter().any(|one| one.is_same(&group)) => {}
                Some(group) => groups.groups.push(group),
            }
        }
        groups
    }

    /// How many sessions they are in: what is in none beside them is as another one.
    fn sessions(&self) -> usize {
        let is_session = |group: &&Group| matches!(group, Group::Autogroup { .. });
        match self.groups.iter().filter(is_session).count() {
            0 => 0,
            sessions => sessions + usize::from(self.has_outside),
        }
    }

    /// Whether each worker is in one.
    pub fn hold_all(&self) -> bool {
        !self.has_outside && !self.groups.is_empty()
    }

    /// What follows from there being several, in one line; none where there are not.
    pub fn objection(&self) -> Option<String> {
        let outside = self.has_outside.then(|| "no group".to_owned());
        let names: Vec<String> = self.groups.iter().map(Group::name).chain(outside).collect();
        if names.len() < 2 {
            return None;
        }
        let names = names.join(", ");
        Some(format!(
            "the kernel weighs workers in several groups ({names}): short requests go first only inside each; put them in one, or attach to each server by itself"
        ))
    }

    /// Each of them.
    pub fn into_groups(self) -> Vec<Group> {
        self.groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(name: &str) -> Option<Group> {
        let file = format!("/sys/fs/cgroup/cpu/{name}/cpu.shares").into();
        Some(Group::Control { file })
    }

    fn session(number: u32) -> Option<Group> {
        Some(Group::Autogroup {
            name: format!("/autogroup-{number}"),
            process: ProcessId::of(std::process::id()).unwrap(),
        })
    }

    #[test]
    fn each_group_counts_once() {
        let of = |each: Vec<Option<Group>>| {
            let groups = Groups::from(each.into_iter());
            let several = groups.objection().is_some();
            (groups.sessions(), groups.hold_all(), several)
        };
        assert_eq!(of(vec![session(1), session(1)]), (1, true, false));
        assert_eq!(of(vec![session(1), session(2)]), (2, true, true));
        // As the machine's first process, which is in no session, before others.
        assert_eq!(of(vec![None, session(1)]), (2, false, true));
        assert_eq!(of(vec![control("a"), control("a")]), (0, true, false));
        assert_eq!(of(vec![control("a"), control("b")]), (0, true, true));
        assert_eq!(of(vec![None, control("b")]), (0, false, true));
        assert_eq!(of(vec![None, None]), (0, false, false));
    }
}
