//! Which processes and threads of a server are its workers.
//!
//! A worker is a thread of a process that has begun no other one: the processes above only begin
//! workers and end them. What a worker begins (a program that a script runs) is none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

use sooner_kernel::process_table;

use super::attached::AttachError;
use crate::process_id::ProcessId;
use crate::web::config::Servers;
use crate::web::ports::{self, PortsError};

/// Its processes at a moment.
#[derive(Debug, Default)]
pub struct Family {
    /// Each with its parent.
    parents: BTreeMap<u32, u32>,
}

/// Whether there is such a server; an error says what would be right.
pub fn exists(servers: &Servers) -> Result<(), AttachError> {
    ports::exists(servers).map_err(|error| match error {
        PortsError::NoGroup(name) if uses_version_1() => AttachError::Version1(name),
        error => error.into(),
    })
}

/// Whether this machine orders its processes with control groups of version 1, beside an empty
/// tree of version 2.
fn uses_version_1() -> bool {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    has_controllers_of_version_1(&text)
}

/// Whether a line of /proc/PID/cgroup has controllers: those of version 2 have none, and those of
/// systemd's own tree have a name instead.
fn has_controllers_of_version_1(text: &str) -> bool {
    let controllers = text.lines().filter_map(|line| line.split(':').nth(1));
    controllers
        .filter(|own| !own.is_empty())
        .any(|own| !own.starts_with("name="))
}

impl Family {
    /// Looks at all processes; an error where the server has none.
    pub fn find(servers: &Servers) -> Result<Family, AttachError> {
        exists(servers)?;
        let all = ports::family(servers);
        if let (true, Some(unseen)) = (all.is_empty(), ports::unseen(servers)) {
            return Err(unseen.into());
        }
        // One that has ended is there until its parent asks for it, and does not count: its parent is
        // a worker all the same.
        let parent = |pid: u32| Some((pid, process_table::birth(pid).ok()?.parent));
        Ok(Family {
            parents: all.into_iter().filter_map(parent).collect(),
        })
    }

    /// All of them.
    pub fn processes(&self) -> BTreeSet<u32> {
        self.parents.keys().copied().collect()
    }

    /// Those that none of the others has begun.
    pub fn roots(&self) -> Vec<ProcessId> {
        let roots = self
            .parents
            .iter()
            .filter(|(_, parent)| !self.parents.contains_key(parent));
        roots
            .filter_map(|(pid, _)| ProcessId::of(*pid).ok())
            .collect()
    }

    /// The threads of workers. What `workers` have begun are no workers.
    pub fn workers(&self, workers: &BTreeSet<u32>) -> Vec<Worker> {
        let begun: BTreeSet<u32> = self.parents.values().copied().collect();
        let is_worker = |pid: &u32| workers.contains(pid) || !begun.contains(pid);
        let of_none = |pid: &u32| !self.ancestors(*pid).any(|one| workers.contains(&one));
        let processes = self
            .parents
            .keys()
            .filter(|pid| is_worker(pid) && of_none(pid));
        processes
            .flat_map(|pid| threads(*pid).unwrap_or_default())
            .collect()
    }

    /// Those that a process comes from, the nearest first.
    pub fn ancestors(&self, pid: u32) -> impl Iterator<Item = u32> {
        let parent = |pid: &u32| self.parents.get(pid).copied();
        // As many as there are, whatever numbers were used anew between two looks.
        std::iter::successors(parent(&pid), parent).take(self.parents.len())
    }

    /// Of these processes those that were taken for workers and have begun some: the server's first
    /// one, before its workers were there.
    pub fn masters(&self, workers: &BTreeSet<u32>) -> BTreeSet<u32> {
        let is_root = |pid: &u32| {
            let parent = self.parents.get(pid);
            parent.is_some_and(|parent| !self.parents.contains_key(parent))
        };
        let begun = self
            .parents
            .iter()
            .filter(|(_, parent)| workers.contains(parent) && is_root(parent));
        let alike = begun.filter(|(pid, parent)| is_same_program(**pid, **parent));
        alike.map(|(_, parent)| *parent).collect()
    }
}

/// A thread that works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worker {
    /// It, by its own number.
    pub thread: ProcessId,
    /// The process it is of.
    pub process: u32,
}

impl Worker {
    /// The thread of this number, if its process is one of a worker's kind: a child of the server's
    /// other processes, or of the same process as a worker.
    pub fn of_new(
        thread: u32,
        processes: &BTreeSet<u32>,
        workers: &BTreeSet<u32>,
    ) -> Option<Worker> {
        let process = process_of(thread).ok()?;
        let parent = process_table::parent(process).ok()?;
        let is_thread = workers.contains(&process);
        let is_child = processes.contains(&parent) && !comes_from(parent, processes, workers);
        (is_thread || is_child).then_some(Worker {
            thread: ProcessId::of(thread).ok()?,
            process,
        })
    }
}

/// The threads of a process.
pub fn threads(process: u32) -> io::Result<Vec<Worker>> {
    let entries = fs::read_dir(format!("/proc/{process}/task"))?;
    let worker = |entry: io::Result<fs::DirEntry>| {
        let number = entry.ok()?.file_name().to_str()?.parse().ok()?;
        Some(Worker {
            thread: ProcessId::of(number).ok()?,
            process,
        })
    };
    Ok(entries.filter_map(worker).collect())
}

/// Whether a process of the server is a worker, or comes from one.
fn comes_from(process: u32, processes: &BTreeSet<u32>, workers: &BTreeSet<u32>) -> bool {
    let parent = |pid: &u32| process_table::parent(*pid).ok();
    let mut line = std::iter::successors(Some(process), parent).take(processes.len() + 1);
    line.any(|one| workers.contains(&one))
}

/// Whether two processes run the same program.
pub fn is_same_program(one: u32, other: u32) -> bool {
    let program = |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).ok();
    program(one).is_some_and(|own| Some(own) == program(other))
}

/// The process that a thread is of.
pub fn process_of(thread: u32) -> io::Result<u32> {
    let text = fs::read_to_string(format!("/proc/{thread}/status"))?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tgid:"));
    let number = lines.next().and_then(|value| value.trim().parse().ok());
    number.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    /// A shell that has begun two others and waits.
    fn server() -> Child {
        let script = "sleep 60 & sleep 60 & echo begun; wait";
        let mut shell = Command::new("sh");
        shell
            .args(["-c", script])
            .stdout(std::process::Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let mut line = [0; 6];
        io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut line).unwrap();
        shell
    }

    #[test]
    fn children_work_and_their_parent_does_not() {
        let mut shell = server();
        let family = Family::find(&Servers::Process(shell.id())).unwrap();
        let workers = family.workers(&BTreeSet::new());
        let processes: BTreeSet<u32> = workers.iter().map(|worker| worker.process).collect();
        assert_eq!((family.processes().len(), processes.len()), (3, 2));
        assert!(!processes.contains(&shell.id()));
        let roots: Vec<u32> = family.roots().iter().map(|root| root.pid).collect();
        assert_eq!(roots, [shell.id()]);
        // What a worker begins is none.
        let none = family.workers(&BTreeSet::from([shell.id()]));
        assert_eq!(none.len(), 1, "only the shell itself");
        let child = *processes.first().unwrap();
        let of = |workers: &[u32]| {
            let workers = workers.iter().copied().collect();
            Worker::of_new(child, &family.processes(), &workers)
        };
        assert!(of(&[]).is_some() && of(&[shell.id()]).is_none());
        for pid in processes {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        shell.wait().unwrap();
    }

    #[test]
    fn a_worker_with_a_program_that_is_over_is_a_worker() {
        // What it begins ends, and it never asks for it: so does one that a script has begun.
        let script = "true & exec sleep 60";
        let mut worker = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let has_ended = |child: &u32| {
            process_table::parent(*child).is_ok_and(|parent| parent == worker.id())
                && process_table::birth(*child).is_err()
        };
        let begin = std::time::Instant::now();
        while !process_table::all().unwrap().iter().any(has_ended) {
            assert!(begin.elapsed().as_secs() < 30, "it does not end");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let family = Family::find(&Servers::Process(worker.id())).unwrap();
        let workers = family.workers(&BTreeSet::new());
        let processes: Vec<u32> = workers.iter().map(|worker| worker.process).collect();
        assert_eq!(processes, [worker.id()]);
        worker.kill().unwrap();
        worker.wait().unwrap();
    }

    /// The processes below one, the nearest first, once there are so many.
    fn below(first: u32, wanted: usize) -> Vec<u32> {
        loop {
            let mut found = vec![first];
            while let Some(child) = process_table::children(*found.last().unwrap())
                .unwrap()
                .first()
            {
                found.push(*child);
            }
            if found.len() == wanted {
                return found;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    fn end(line: &[u32], child: &mut Child) {
        for pid in line.iter().rev() {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        child.wait().unwrap();
    }

    #[test]
    fn what_comes_from_a_worker_is_none_however_far() {
        let script = "sh -c 'sh -c \"sleep 60; true\"; true'; true";
        let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let line = below(child.id(), 4);
        let family = Family::find(&Servers::Process(child.id())).unwrap();
        let worker = BTreeSet::from([line[1]]);
        let found: Vec<u32> = family
            .workers(&worker)
            .iter()
            .map(|one| one.process)
            .collect();
        assert_eq!(found, [line[1]]);
        let is_new = |pid: u32| Worker::of_new(pid, &family.processes(), &worker).is_some();
        assert_eq!([line[2], line[3]].map(is_new), [false, false]);
        // A first process that has begun its like was no worker; one that has begun a program was.
        assert_eq!(
            family.masters(&BTreeSet::from([line[0]])),
            BTreeSet::from([line[0]])
        );
        assert_eq!(family.masters(&BTreeSet::from([line[1]])), BTreeSet::new());
        end(&line, &mut child);
    }

    #[test]
    fn a_group_that_is_not_of_version_2_is_refused_with_the_reason() {
        let pure = "0::/user.slice/session-1.scope\n";
        assert!(!has_controllers_of_version_1(pure));
        assert!(!has_controllers_of_version_1(&format!(
            "1:name=systemd:/\n{pure}"
        )));
        assert!(has_controllers_of_version_1(
            "2:cpu,cpuacct:/try3\n1:name=systemd:/\n0::/\n"
        ));
        let missing = Servers::Group("no/such".into());
        let Err(error) = Family::find(&missing) else {
            panic!("there is a group no/such");
        };
        let said = error.to_string();
        assert!(said.starts_with("no control group `no/such`"), "{said}");
        assert!(!uses_version_1() || said.contains("version 2"), "{said}");
    }

    #[test]
    fn a_process_alone_works_itself() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let family = Family::find(&Servers::Process(child.id())).unwrap();
        assert_eq!(family.workers(&BTreeSet::new()).len(), 1);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(Family::find(&Servers::Process(u32::MAX)).is_err());
    }
}
