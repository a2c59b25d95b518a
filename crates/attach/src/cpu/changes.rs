//! What is changed of a server: its workers' nice values, and its weight.

use std::collections::BTreeMap;
use std::io;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use sooner_kernel::process_table;

use super::levels::{LevelValues, Usual};
use super::weight::Weighed;
use crate::process_id::ProcessId;
use crate::record::{Record, patiently};

/// What has to be put back of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The server's first process.
    pub server: ProcessId,
    /// What levels have.
    pub values: LevelValues,
    /// Threads that were on a level, each with what it had before.
    pub workers: Vec<(ProcessId, Usual)>,
    /// Weights.
    pub weights: Vec<Weighed>,
}

impl Record for Changes {
    const NAME_BEGIN: &'static str = "cpu-";
    const KIND: &'static str = "workers of servers";

    fn server(&self) -> u32 {
        self.server.pid
    }

    fn restore(&self) -> io::Result<()> {
        let begin = Instant::now();
        let mut first = Ok(());
        let mut note = |what: String, done: io::Result<()>| {
            let named =
                done.map_err(|error| io::Error::new(error.kind(), format!("{what}: {error}")));
            if first.is_ok() {
                first = named;
            }
        };
        for (worker, usual) in &self.workers {
            let back = || match worker.is_there() {
                true => self.values.put_back(worker.pid, *usual),
                false => Ok(()),
            };
            note(format!("process {}", worker.pid), patiently(begin, back));
        }
        for (child, usual) in self.begun_by_workers() {
            let back = || self.values.put_back(child, usual);
            note(format!("process {child}"), patiently(begin, back));
        }
        for weight in &self.weights {
            note(weight.to_string(), patiently(begin, || weight.put_back()));
        }
        first
    }

    fn without_trust(mut self) -> Self {
        for (_, usual) in &mut self.workers {
            usual.nice = usual.nice.min(0);
            usual.policy = 0;
        }
        self.weights.retain(Weighed::is_harmless);
        self
    }
}

impl Changes {
    /// Processes that a worker has begun, or one of those has, which have its level then.
    fn begun_by_workers(&self) -> Vec<(u32, Usual)> {
        let all = process_table::all().unwrap_or_default();
        let parents = all.iter();
        let parents: BTreeMap<u32, u32> = parents
            .filter_map(|pid| Some((*pid, process_table::parent(*pid).ok()?)))
            .collect();
        let usual_of = |parent: u32| {
            let mut workers = self.workers.iter();
            let found = workers.find(|(worker, _)| worker.pid == parent && worker.is_there());
            found.map(|(_, usual)| *usual)
        };
        let usual_of_line = |pid: u32| {
            let above = |pid: &u32| parents.get(pid).copied();
            let mut line = std::iter::successors(above(&pid), above).take(parents.len());
            line.find_map(usual_of)
        };
        let is_known = |pid: &u32| self.workers.iter().any(|(worker, _)| worker.pid == *pid);
        let begun = all.into_iter().filter(|pid| !is_known(pid));
        begun
            .filter_map(|pid| Some((pid, usual_of_line(pid)?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::weight::Group;
    use std::process::Command;

    fn usual(nice: i32, policy: i32) -> Usual {
        Usual {
            nice,
            policy,
            is_alone: false,
        }
    }

    fn autogroup(process: ProcessId) -> Group {
        Group::Autogroup {
            name: "/autogroup-0".into(),
            process,
        }
    }

    #[test]
    fn a_record_of_another_user_puts_none_behind_others() {
        let own = ProcessId::of(std::process::id()).unwrap();
        let weight = |group, before| Weighed {
            group,
            before,
            set: -6,
        };
        let changes = Changes {
            server: own,
            values: LevelValues::new(true, false),
            workers: vec![(own, usual(19, 5))],
            weights: vec![
                weight(autogroup(own), 0),
                weight(autogroup(own), 19),
                weight(
                    Group::Control {
                        file: "/etc/passwd".into(),
                    },
                    0,
                ),
            ],
        };
        let trusted = changes.without_trust();
        assert_eq!(trusted.workers[0].1, usual(0, 0));
        assert_eq!(trusted.weights.len(), 1);
    }

    #[test]
    fn what_is_gone_is_no_obstacle() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = ProcessId::of(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let changes = Changes {
            server: process,
            values: LevelValues::new(true, false),
            workers: vec![(process, usual(0, 0))],
            weights: vec![Weighed {
                group: autogroup(process),
                before: 0,
                set: -6,
            }],
        };
        changes.restore().unwrap();
    }
}
