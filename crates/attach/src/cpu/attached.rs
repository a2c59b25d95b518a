//! What is known of one server while it is attached to, and what follows for its workers.

mod figures;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rustix::process::Pid;
use rustix::thread::sched_getaffinity;
use sooner_kernel::process::cpu_time_ns;
use sooner_kernel::workers::WorkerTold;
use sooner_processor::{Bounds, Next, Order, Rule, RunWait, Settings};

use super::changes::Changes;
use super::levels::{LevelValues, Usual};
use super::options::{Options, WantedRule};
use super::server::{Family, Worker, threads};
use super::source::Source;
use super::trial::Trial;
use super::weight::{Group, Weighed};
use crate::process_id::{ProcessId, is_gone};
use crate::record::Record;
use crate::web::ports::{self, PortsError};

/// Workers that have ended are looked for so often, ns.
const CHECK_NS: u64 = 1_000_000_000;
/// All processes are looked at so often, ns; and where no program tells of new ones.
const FIND_NS: u64 = 10_000_000_000;
const FIND_UNTOLD_NS: u64 = 1_000_000_000;
/// Looks where nothing is told of, ns: processor times in /proc move with the tick.
const UNTOLD_LOOK_NS: u64 = 10_000_000;

/// Why it cannot begin, or ended.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// There is no such server, or no more.
    #[error(transparent)]
    Server(#[from] PortsError),
    /// It has no process that works.
    #[error("the server has no worker; name its first process with --pid, or its port with --port")]
    NoWorker,
    /// It was there, and is gone.
    #[error("none of its processes is left")]
    Gone,
    /// Nice values do not weigh its workers against each other.
    #[error(
        "the workers are in {0} sessions, which the kernel weighs as wholes: nice values order nothing there; kernel.sched_autogroup_enabled=0 or --realtime would"
    )]
    Sessions(usize),
    /// The system refused something.
    #[error("{0}")]
    System(#[from] io::Error),
}

#[derive(Debug)]
struct Watched {
    worker: Worker,
    usual: Usual,
    /// None before the first change.
    level: Option<u8>,
    /// How long it had waited for a processor at the last look.
    waited_ns: u64,
}

/// All of it.
pub struct Attached<'a> {
    options: &'a Options,
    trials: &'a [Trial],
    lacks: Option<String>,
    source: Source,
    order: Order,
    watched: BTreeMap<u32, Watched>,
    processes: BTreeSet<u32>,
    record: Changes,
    began_ns: u64,
    own_began_ns: u64,
    check_ns: u64,
    find_ns: u64,
    /// Those that workers may run on.
    processors: f64,
    waited_ns: u64,
    changes: u64,
    refused: u64,
    looks: u64,
}

impl<'a> Attached<'a> {
    /// Changes nothing yet. `lacks`: what is missing for programs.
    pub fn new(
        options: &'a Options,
        trials: &'a [Trial],
        (source, lacks): (Source, Option<String>),
        now_ns: u64,
    ) -> Result<Attached<'a>, AttachError> {
        let family = Family::find(&options.server)?;
        let workers = family.workers(&BTreeSet::new());
        let server = *family.roots().first().ok_or(AttachError::NoWorker)?;
        let first = workers.first().ok_or(AttachError::NoWorker)?;
        let group = Group::of(first.process);
        if let (Some(Group::Autogroup { .. }), false) = (&group, options.real_time) {
            one_session(&workers)?;
        }
        let rule = match options.rule {
            WantedRule::Used => Rule::Used,
            WantedRule::RunWait { changes, long } => {
                let long_ns = long.map(|long| long.as_nanos() as u64);
                Rule::RunWait(RunWait::new(changes, long_ns))
            }
        };
        let bounds = options
            .bounds
            .map(|bounds| bounds.map(|one| one.as_nanos() as u64));
        let order = Order::new(Settings {
            rule,
            bounds: bounds.map_or_else(Bounds::default, Bounds::fixed),
            wait_max_ns: options.wait_max.as_nanos() as u64,
        });
        let mut attached = Attached {
            options,
            trials,
            lacks,
            source,
            order,
            watched: BTreeMap::new(),
            processes: BTreeSet::new(),
            record: Changes {
                server,
                values: LevelValues::new(group.is_some(), options.real_time),
                workers: Vec::new(),
                weights: Vec::new(),
            },
            began_ns: now_ns,
            own_began_ns: cpu_time_ns(),
            check_ns: now_ns + CHECK_NS,
            find_ns: 0,
            processors: processors_of(first.thread.pid),
            waited_ns: 0,
            changes: 0,
            refused: 0,
            looks: 0,
        };
        attached.take_processes(&family)?;
        attached.record.weights = attached.weights(group)?;
        Ok(attached)
    }

    /// The server's first process.
    pub fn server(&self) -> ProcessId {
        self.record.server
    }

    /// Changes what there is to change, from now on.
    pub fn begin(&mut self, now_ns: u64) -> Result<(), AttachError> {
        if !self.options.observes {
            self.record.write()?;
            for weight in &self.record.weights {
                weight.apply()?;
            }
        }
        self.find(now_ns)?;
        Ok(())
    }

    /// What is to be changed of weights: the server's, and those of what hands requests on to it.
    fn weights(&self, own: Option<Group>) -> io::Result<Vec<Weighed>> {
        let Some(share) = self.options.share else {
            return Ok(Vec::new());
        };
        let mut groups: Vec<Group> = own.into_iter().collect();
        for pid in ports::processes(&self.options.front_ports) {
            groups.extend(Group::of(pid));
        }
        let mut planned: Vec<Weighed> = Vec::new();
        for group in groups {
            if planned.iter().any(|one| one.group.is_same(&group)) {
                continue;
            }
            planned.extend(group.plan(share)?);
        }
        Ok(planned)
    }

    /// Looks at all workers, and gives each the level that it is to have.
    pub fn look(&mut self, now_ns: u64) -> Result<Next, AttachError> {
        self.looks += 1;
        self.take_told(now_ns)?;
        if now_ns >= self.find_ns {
            self.find(now_ns)?;
        } else if now_ns >= self.check_ns {
            self.check(now_ns)?;
        }
        self.order.begin_look();
        let mut gone = Vec::new();
        let places: Vec<u32> = self.watched.keys().copied().collect();
        for place in places {
            let Ok((reading, waited_ns)) = self.source.read(place, now_ns) else {
                gone.push(place);
                continue;
            };
            if let Some(watched) = self.watched.get_mut(&place) {
                let before_ns = std::mem::replace(&mut watched.waited_ns, waited_ns);
                self.waited_ns += waited_ns.saturating_sub(before_ns);
            }
            if let Some(level) = self.order.look(place, &reading, now_ns)
                && !self.set_level(place, level)
            {
                gone.push(place);
            }
        }
        gone.into_iter().for_each(|place| self.forget(place));
        let due_ns = self.check_ns.min(self.find_ns);
        Ok(match (self.order.end_look(now_ns), &self.source) {
            (_, Source::Proc(_)) => Next::At(now_ns + UNTOLD_LOOK_NS),
            (Next::At(at_ns), _) => Next::At(at_ns),
            (Next::WhenTold, _) if due_ns <= now_ns => Next::At(now_ns),
            (Next::WhenTold, _) => Next::WhenTold,
        })
    }

    /// When workers are to be looked for, whatever is told.
    pub fn due_ns(&self) -> u64 {
        self.check_ns.min(self.find_ns)
    }

    /// What says what workers do.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Gives a worker a level; whether it is there.
    fn set_level(&mut self, place: u32, level: u8) -> bool {
        let Some(watched) = self.watched.get_mut(&place) else {
            return false;
        };
        let before = watched.level;
        if !self.options.observes {
            let thread = watched.worker.thread;
            let done = match thread.is_there() {
                true => self.record.values.apply(thread.pid, level, watched.usual),
                false => Err(io::ErrorKind::NotFound.into()),
            };
            match done {
                Ok(()) => self.changes += 1,
                Err(error) if is_gone(&error) => return false,
                Err(_) => {
                    self.refused += 1;
                    self.order.set_level(place, before.unwrap_or(0));
                    return true;
                }
            }
        }
        watched.level = Some(level);
        self.source.set_level(place, level);
        true
    }

    fn take_told(&mut self, now_ns: u64) -> Result<(), AttachError> {
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
        let of_new = |thread: u32| Worker::of_new(thread, &self.processes, &known);
        let workers: Vec<Worker> = new.into_iter().filter_map(of_new).collect();
        let new: BTreeSet<u32> = workers.iter().map(|worker| worker.process).collect();
        self.source
            .set_processes([].iter(), new.difference(&self.processes))?;
        self.processes.extend(new);
        self.adopt(workers, now_ns)
    }

    fn worker_processes(&self) -> BTreeSet<u32> {
        let all = self.watched.values();
        all.map(|watched| watched.worker.process).collect()
    }

    /// Forgets workers that have ended.
    fn check(&mut self, now_ns: u64) -> Result<(), AttachError> {
        self.check_ns = now_ns + CHECK_NS;
        let all = self.watched.iter();
        let gone: Vec<u32> = all
            .filter(|(_, watched)| !watched.worker.thread.is_there())
            .map(|(place, _)| *place)
            .collect();
        if gone.is_empty() {
            return Ok(());
        }
        if !self.record.server.is_there() {
            return Err(AttachError::Gone);
        }
        gone.into_iter().for_each(|place| self.forget(place));
        self.write_record()
    }

    /// Looks for all workers; an error where the server is gone.
    fn find(&mut self, now_ns: u64) -> Result<(), AttachError> {
        self.check(now_ns)?;
        self.find_ns = now_ns
            + match self.source {
                Source::Programs(_) => FIND_NS,
                Source::Proc(_) => FIND_UNTOLD_NS,
            };
        if !self.record.server.is_there() {
            return Err(AttachError::Gone);
        }
        let family = Family::find(&self.options.server).map_err(|_| AttachError::Gone)?;
        self.take_processes(&family)?;
        self.raise_fronts()?;
        let workers = family.workers(&self.worker_processes());
        self.adopt(workers, now_ns)
    }

    fn take_processes(&mut self, family: &Family) -> io::Result<()> {
        let now = family.processes();
        let gone = self.processes.difference(&now);
        let new = now.difference(&self.processes);
        self.source.set_processes(gone, new)?;
        self.processes = now;
        Ok(())
    }

    /// What hands requests on goes before workers that have real time, or nothing would come to
    /// them.
    fn raise_fronts(&mut self) -> Result<(), AttachError> {
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

    /// Watches those that are new, and puts them on top.
    fn adopt(&mut self, workers: Vec<Worker>, now_ns: u64) -> Result<(), AttachError> {
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
            let usual = match Usual::of(worker.thread.pid) {
                Ok(usual) => usual,
                Err(error) if is_gone(&error) => continue,
                Err(_) => {
                    // One with real time is above all by itself.
                    self.refused += 1;
                    continue;
                }
            };
            let Some(place) = self.source.add(worker.thread.pid, now_ns)? else {
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

    fn write_record(&self) -> Result<(), AttachError> {
        if !self.options.observes {
            self.record.write()?;
        }
        Ok(())
    }

    fn forget(&mut self, place: u32) {
        self.order.forget(place);
        if let Some(watched) = self.watched.remove(&place) {
            let thread = watched.worker.thread;
            self.source.remove(thread.pid, place);
            self.record.workers.retain(|(known, _)| *known != thread);
        }
    }

    /// Puts everything back.
    pub fn end(self) -> io::Result<()> {
        match self.options.observes {
            true => Ok(()),
            false => self.record.put_back(),
        }
    }
}

/// Nice values order only what is in one session.
fn one_session(workers: &[Worker]) -> Result<(), AttachError> {
    let name = |worker: &Worker| sooner_kernel::priority::autogroup_name(worker.process).ok();
    let sessions: BTreeSet<String> = workers.iter().filter_map(name).collect();
    match sessions.len() {
        0 | 1 => Ok(()),
        many => Err(AttachError::Sessions(many)),
    }
}

/// On how many processors a thread may run.
fn processors_of(thread: u32) -> f64 {
    let allowed = sched_getaffinity(Pid::from_raw(thread.cast_signed()));
    allowed.map_or(1.0, |allowed| f64::from(allowed.count().max(1)))
}
