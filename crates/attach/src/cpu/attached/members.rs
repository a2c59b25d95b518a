//! Which threads are workers, as they come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use sooner_kernel::workers::WorkerTold;
use sooner_kernel::{priority, process_table};

use super::{AttachError, Attached, CHECK_NS, CHECKED_AT_ONCE, FIND_NS, FIND_UNTOLD_NS, Watched};
use crate::cpu::levels::{LevelValues, Usual};
use crate::cpu::server::{Family, Worker, is_same_program, process_of, threads};
use crate::cpu::source::Source;
use crate::process_id::{ProcessId, is_gone};
use crate::web::ports;

impl Attached<'_> {
    pub(super) fn take_told(&mut self, now_ns: u64) -> Result<(), AttachError> {
        let mut new = Vec::new();
        while let Some(told) = self.source.next_told() {
            if let WorkerTold::Forked(thread) = told {
                new.push(thread);
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        let known: BTreeSet<u32> = self.worker_processes();
        new.iter()
            .for_each(|thread| self.begun_by_worker(*thread, now_ns));
        let of_new = |thread: u32| Worker::of_new(thread, &self.processes, &known);
        let workers: Vec<Worker> = new.into_iter().filter_map(of_new).collect();
        let new: BTreeSet<u32> = workers.iter().map(|worker| worker.process).collect();
        self.source
            .set_processes([].iter(), new.difference(&self.processes));
        self.processes.extend(new);
        self.adopt(workers, now_ns)
    }

    pub(super) fn worker_processes(&self) -> BTreeSet<u32> {
        let all = self.watched.values();
        all.map(|watched| watched.worker.process).collect()
    }

    /// Whether the server is still there; an error where it is not. Workers that have ended are
    /// forgotten, some at a time.
    pub(super) fn check(&mut self, now_ns: u64) -> Result<(), AttachError> {
        self.check_ns = now_ns + CHECK_NS;
        if !self.record.server.is_there() {
            return Err(AttachError::Gone);
        }
        let next = self.watched.range(self.check_from..);
        let mut next = next.map(|(place, _)| *place);
        let some: Vec<u32> = next.by_ref().take(CHECKED_AT_ONCE).collect();
        self.check_from = next.next().unwrap_or(0);
        self.forget_ended(&some)
    }

    /// Forgets those of these workers that have ended.
    fn forget_ended(&mut self, places: &[u32]) -> Result<(), AttachError> {
        let all = places
            .iter()
            .filter_map(|at| Some((at, self.watched.get(at)?)));
        let gone: Vec<u32> = all
            .filter(|(_, watched)| !watched.worker.thread.is_there())
            .map(|(place, _)| *place)
            .collect();
        if gone.is_empty() {
            return Ok(());
        }
        gone.into_iter().for_each(|place| self.forget(place));
        self.write_record()
    }

    /// Looks for all workers; an error where the server is gone.
    pub(super) fn find(&mut self, now_ns: u64) -> Result<(), AttachError> {
        self.check(now_ns)?;
        self.find_ns = now_ns
            + match self.source {
                Source::Programs(_) => FIND_NS,
                Source::Proc(_) => FIND_UNTOLD_NS,
            };
        self.unplaced.count_anew();
        let all: Vec<u32> = self.watched.keys().copied().collect();
        self.forget_ended(&all)?;
        let family = Family::find(&self.options.server).map_err(|_| AttachError::Gone)?;
        self.leave_levels_untold(&family);
        self.take_processes(&family);
        self.raise_fronts()?;
        self.weigh_new_fronts()?;
        self.leave_masters(&family)?;
        let workers = family.workers(&self.worker_processes());
        let there: BTreeSet<u32> = workers.iter().map(|one| one.thread.pid).collect();
        self.left_out.retain(|thread| there.contains(thread));
        self.adopt(workers, now_ns)
    }

    pub(super) fn take_processes(&mut self, family: &Family) {
        let now = family.processes();
        let gone = self.processes.difference(&now);
        let new = now.difference(&self.processes);
        self.source.set_processes(gone, new);
        self.masters.retain(|master, _| now.contains(master));
        self.processes = now;
    }

    /// A worker has begun a process: a program is as the worker was, whatever level that has now. What
    /// is like the server's first process may be about to run a program.
    fn begun_by_worker(&mut self, thread: u32, now_ns: u64) {
        let Ok(process) = process_of(thread) else {
            return;
        };
        let Ok(parent) = process_table::parent(process) else {
            return;
        };
        let mut watched = self.watched.values();
        let Some(parent) = watched.find(|watched| watched.worker.process == parent) else {
            return;
        };
        if self.is_like_root(process, parent.worker.process) {
            if let Ok(process) = ProcessId::of(process) {
                self.begun.add(process, parent.usual, now_ns);
            }
            return;
        }
        if process == thread {
            self.leave_levels(process, parent.usual);
        }
    }

    /// A first process that has begun its like is no worker after all, which a look at all finds.
    pub(super) fn look_at_begun(&mut self, now_ns: u64) {
        while let Some((process, usual)) = self.begun.next_due(now_ns) {
            if !process.is_there() {
                continue;
            }
            match self.is_like_root(process.pid, self.record.server.pid) {
                true => self.find_ns = self.find_ns.min(now_ns),
                false => self.leave_levels(process.pid, usual),
            }
        }
    }

    /// Whether a worker is the server's first process, and what it has begun its like: then it is no
    /// worker after all.
    fn is_like_root(&self, process: u32, worker: u32) -> bool {
        self.record.server.pid == worker && is_same_program(process, worker)
    }

    /// Whether what has this nice value may have it from a process with a level: 0 is what the kernel
    /// gives to what one above that begins.
    fn has_level(&self, nice: i32) -> bool {
        nice == 0 || self.record.values.nice.contains(&nice)
    }

    /// A process that a worker has begun, and what that has begun before this was seen, are as the
    /// worker was.
    fn leave_levels(&self, process: u32, usual: Usual) {
        if self.options.observes {
            return;
        }
        let mut line = vec![process];
        while let Some(process) = line.pop() {
            self.leave_level(process, usual);
            line.extend(process_table::children(process).unwrap_or_default());
        }
    }

    fn leave_level(&self, process: u32, usual: Usual) {
        let nice = priority::nice(process);
        if nice.is_ok_and(|nice| nice != usual.nice && self.has_level(nice)) {
            // One that has ended needs nothing.
            let _ = priority::set_nice(process, usual.nice);
        }
    }

    /// The same of all that workers have begun since the last look, where nothing told of it.
    fn leave_levels_untold(&self, family: &Family) {
        if matches!(self.source, Source::Programs(_)) || self.options.observes {
            return;
        }
        let usual: BTreeMap<u32, Usual> = self
            .watched
            .values()
            .map(|watched| (watched.worker.process, watched.usual))
            .collect();
        let now = family.processes();
        let new = now.difference(&self.processes);
        for process in new.filter(|process| !usual.contains_key(process)) {
            let mut ancestors = family.ancestors(*process);
            let Some((worker, usual)) = ancestors.find_map(|one| usual.get_key_value(&one)) else {
                continue;
            };
            // What this one has begun is new as well.
            if !self.is_like_root(*process, *worker) {
                self.leave_level(*process, *usual);
            }
        }
    }

    /// The server's first process was taken for a worker, before it had begun some.
    fn leave_masters(&mut self, family: &Family) -> Result<(), AttachError> {
        let masters = family.masters(&self.worker_processes());
        let of_masters =
            |(_, watched): &(&u32, &Watched)| masters.contains(&watched.worker.process);
        let places: Vec<u32> = self
            .watched
            .iter()
            .filter(of_masters)
            .map(|(at, _)| *at)
            .collect();
        for place in &places {
            let watched = &self.watched[place];
            self.masters.insert(watched.worker.process, watched.usual);
            if !self.options.observes {
                let thread = watched.worker.thread.pid;
                match self.record.values.put_back(thread, watched.usual) {
                    Err(error) if !is_gone(&error) => return Err(error.into()),
                    _ => {}
                }
            }
            self.forget(*place);
        }
        match places.is_empty() {
            true => Ok(()),
            false => {
                self.begun.clear();
                self.write_record()
            }
        }
    }

    /// What hands requests on goes before workers that have real time, or nothing would come to
    /// them.
    pub(super) fn raise_fronts(&mut self) -> Result<(), AttachError> {
        if !self.options.real_time || self.options.observes {
            return Ok(());
        }
        let threads: Vec<ProcessId> = ports::processes(&self.options.front_ports)
            .into_iter()
            .flat_map(|process| threads(process).unwrap_or_default())
            .map(|worker| worker.thread)
            .collect();
        let is_new = |thread: &ProcessId| {
            let mut known = self.record.workers.iter();
            !known.any(|(known, _)| known == thread)
        };
        let new: Vec<(ProcessId, Usual)> = threads
            .into_iter()
            .filter(is_new)
            .filter_map(|thread| Some((thread, Usual::of(thread.pid).ok()?)))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        self.record.workers.extend(&new);
        self.write_record()?;
        for (thread, _) in new {
            match LevelValues::apply_front(thread.pid) {
                Ok(()) => self.changes += 1,
                Err(_) => self.refused += 1,
            }
        }
        Ok(())
    }

    /// What hands requests on may have begun again since the last look, in a session of its own.
    fn weigh_new_fronts(&mut self) -> Result<(), AttachError> {
        if self.options.observes || self.options.front_ports.is_empty() {
            return Ok(());
        }
        for planned in self.weights(Vec::new())? {
            let mut known = self.record.weights.iter();
            if known.any(|one| one.group.is_same(&planned.group)) {
                continue;
            }
            self.record.weights.push(planned.clone());
            self.write_record()?;
            match planned.apply() {
                Ok(()) => self.changes += 1,
                // The next look tries again.
                Err(_) => drop(self.record.weights.pop()),
            }
        }
        Ok(())
    }

    /// What a new worker had: one that was begun by a process which had a level then has something of
    /// that.
    fn usual_of(&self, worker: Worker) -> io::Result<Usual> {
        let usual = Usual::of(worker.thread.pid)?;
        let parent = process_table::parent(worker.process)?;
        let Some(of_master) = self.masters.get(&parent) else {
            return Ok(usual);
        };
        Ok(match self.has_level(usual.nice) {
            true => *of_master,
            false => usual,
        })
    }

    /// Watches those that are new, and puts them on top.
    pub(super) fn adopt(&mut self, workers: Vec<Worker>, now_ns: u64) -> Result<(), AttachError> {
        let known: BTreeSet<u32> = self
            .watched
            .values()
            .map(|watched| watched.worker.thread.pid)
            .collect();
        let mut places = Vec::new();
        for worker in workers {
            if known.contains(&worker.thread.pid) {
                continue;
            }
            // What a thread of a worker begins has its level then.
            let mut watched = self.watched.values();
            let sibling = watched.find(|watched| watched.worker.process == worker.process);
            let usual = match sibling.map_or_else(|| self.usual_of(worker), |one| Ok(one.usual)) {
                Err(error) if is_gone(&error) => continue,
                Ok(usual) if usual.policy != priority::IDLE || self.options.real_time => usual,
                // Nice values have no effect on what is idle; what has real time is above them.
                Ok(_) | Err(_) => {
                    self.refused += u64::from(self.left_out.insert(worker.thread.pid));
                    continue;
                }
            };
            let Some(place) = self.source.add(worker.thread.pid, now_ns)? else {
                // Those that have ended may still hold places, and leave them at the next check.
                self.unplaced.add();
                continue;
            };
            let watched = Watched {
                worker,
                usual,
                level: None,
                waited_ns: 0,
            };
            self.watched.insert(place, watched);
            self.record.workers.push((worker.thread, usual));
            places.push(place);
        }
        if places.is_empty() {
            return Ok(());
        }
        self.write_record()?;
        for place in places {
            if !self.set_level(place, 0) {
                self.forget(place);
            }
        }
        Ok(())
    }
}
