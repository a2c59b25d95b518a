//! What is known of one server while it is attached to, and what follows for its workers.

mod begun;
mod figures;
mod members;
mod unplaced;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::time::Instant;

use rustix::process::Pid;
use rustix::thread::sched_getaffinity;
use sooner_kernel::process::cpu_time_ns;
use sooner_kernel::process_table;
use sooner_processor::{Bounds, Next, Order, Rule, RunWait, Settings};

use super::changes::Changes;
use super::groups::Groups;
use super::levels::{LevelValues, Usual};
use super::options::{Options, WantedRule};
use super::server::{Family, Worker};
use super::source::Source;
use super::trial::Trial;
use super::weight::{Group, Weighed};
use crate::process_id::{ProcessId, is_gone};
use crate::record::{Record, patiently};
use crate::web::ports::{self, PortsError};
use begun::Begun;
use unplaced::Unplaced;

/// Whether the server and its workers are still there is looked at so often, ns.
const CHECK_NS: u64 = 1_000_000_000;
/// All processes are looked at so often, for workers that are new or have ended, ns; and where no
/// program tells of new ones.
const FIND_NS: u64 = 60_000_000_000;
/// So many workers are looked at in a check, which is a read of /proc each.
const CHECKED_AT_ONCE: usize = 64;
const FIND_UNTOLD_NS: u64 = 1_000_000_000;
/// Looks where nothing is told of, ns: processor times in /proc move with the tick.
const UNTOLD_LOOK_NS: u64 = 10_000_000;

/// Why it cannot begin, or ended.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// There is no such server, or no more.
    #[error(transparent)]
    Server(#[from] PortsError),
    /// No control group of version 2 has this name, and the machine has others of version 1.
    #[error(
        "no control group `{0}` of version 2: groups of version 1, which this machine uses, cannot be named here; name the server with --port or --pid"
    )]
    Version1(String),
    /// It has no process that works.
    #[error("the server has no worker; name its first process with --pid, or its port with --port")]
    NoWorker,
    /// It was there, and is gone.
    #[error("all of its processes have ended")]
    Gone,
    /// Nice values do not weigh its workers against each other.
    #[error(
        "the workers are in {0} sessions, and the kernel weighs each session as a whole, so nice values have no effect between them; set kernel.sched_autogroup_enabled=0, or give --realtime"
    )]
    Sessions(usize),
    /// Real time is refused.
    #[error(
        "--realtime: the system refuses it to workers of this server; their control group may have no budget (cpu.rt_runtime_us); leave --realtime out"
    )]
    NoRealTime,
    /// What an earlier one changed is not put back.
    #[error(
        "cannot restore what an earlier `sooner attach cpu` changed of this server; {} records it: run `sooner attach remove --cpu --killed`, or remove the file", .0.display()
    )]
    Left(PathBuf),
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
    /// The server's program.
    program: String,
    /// Why nice values do not order all workers, where they do not.
    objection: Option<String>,
    source: Source,
    order: Order,
    watched: BTreeMap<u32, Watched>,
    processes: BTreeSet<u32>,
    /// What those had that were taken for workers before they had begun some.
    masters: BTreeMap<u32, Usual>,
    /// Threads that have real time or a deadline, and are left out.
    left_out: BTreeSet<u32>,
    unplaced: Unplaced,
    begun: Begun,
    record: Changes,
    began_ns: u64,
    own_began_ns: u64,
    check_ns: u64,
    find_ns: u64,
    /// The worker at which the next check begins.
    check_from: u32,
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
        let groups = Groups::of(options, &workers)?;
        let objection = groups.objection().filter(|_| !options.real_time);
        let rule = match options.rule {
            WantedRule::Used => Rule::Used,
            WantedRule::History => Rule::History(Box::default()),
            WantedRule::RunWait { changes, long } => {
                let long_ns = long.map(|long| long.as_nanos() as u64);
                Rule::RunWait(RunWait::new(changes, long_ns))
            }
        };
        let bounds = options
            .bounds
            .map(|bounds| bounds.map(|one| one.as_nanos() as u64));
        let processors = processors_of(first.thread.pid);
        let order = Order::new(Settings {
            rule,
            bounds: bounds.map_or_else(Bounds::default, Bounds::fixed),
            wait_max_ns: options.wait_max.as_nanos() as u64,
            processors,
            has_programs: matches!(source, Source::Programs(_)),
        });
        let mut attached = Attached {
            options,
            trials,
            lacks,
            program: process_table::name(server.pid).unwrap_or_default(),
            objection,
            source,
            order,
            watched: BTreeMap::new(),
            processes: BTreeSet::new(),
            masters: BTreeMap::new(),
            left_out: BTreeSet::new(),
            unplaced: Unplaced::default(),
            begun: Begun::default(),
            record: Changes {
                server,
                values: LevelValues::new(groups.hold_all(), options.real_time),
                workers: Vec::new(),
                weights: Vec::new(),
            },
            began_ns: now_ns,
            own_began_ns: cpu_time_ns(),
            check_ns: now_ns + CHECK_NS,
            find_ns: 0,
            check_from: 0,
            processors,
            waited_ns: 0,
            changes: 0,
            refused: 0,
            looks: 0,
        };
        attached.take_processes(&family);
        attached.record.weights = attached.weights(groups.into_groups())?;
        Ok(attached)
    }

    /// The server's first process.
    pub fn server(&self) -> ProcessId {
        self.record.server
    }

    /// Changes what there is to change, from now on. Gives what could not be, a line each.
    pub fn begin(&mut self, now_ns: u64) -> Result<Vec<String>, AttachError> {
        let mut problems = Vec::new();
        if let Some(unseen) = ports::unseen_of(&self.options.front_ports) {
            problems.push(format!("--front-port: {unseen}"));
        }
        if !self.options.observes {
            self.record.write()?;
            let begin = Instant::now();
            self.record.weights.retain(|weight| {
                // Without CAP_SYS_ADMIN the kernel takes one of an autogroup in 100 ms.
                let applied = patiently(begin, || weight.apply());
                applied.inspect_err(|error| problems.push(format!(
                    "{weight} is refused ({error}): the server has no more beside others than before; --share 50 does not try"
                ))).is_ok()
            });
            self.record.write()?;
        }
        self.find(now_ns)?;
        if self.options.real_time && self.refused > self.left_out.len() as u64 {
            return Err(AttachError::NoRealTime);
        }
        problems.extend(self.objection.take());
        problems.extend(self.without_workers());
        problems.extend(self.without_place());
        Ok(problems)
    }

    /// That some workers are more than can be watched, once.
    pub fn without_place(&mut self) -> Option<String> {
        self.unplaced.told_once(self.watched.len())
    }

    /// Why not all workers are ordered, where not all are.
    fn without_workers(&self) -> Option<String> {
        let (left_out, watched) = (self.left_out.len(), self.watched.len());
        if watched > 0 && left_out > 0 {
            let all = left_out + watched;
            return Some(format!(
                "{left_out} of {all} workers are not ordered: they have real time, a deadline or SCHED_IDLE already, where nice values have no effect"
            ));
        }
        if watched > 0 {
            return None;
        }
        Some(match self.refused {
            0 => "the server has no worker yet; each is ordered once it begins".into(),
            _ => "nothing is ordered: each worker has real time, a deadline or SCHED_IDLE already, where nice values have no effect".into(),
        })
    }

    /// What is to be changed of weights: the server's, and those of what hands requests on to it.
    pub(super) fn weights(&self, own: Vec<Group>) -> io::Result<Vec<Weighed>> {
        let Some(share) = self.options.share else {
            return Ok(Vec::new());
        };
        let mut groups = own;
        for pid in ports::processes(&self.options.front_ports) {
            groups.extend(Group::of(pid));
        }
        let mut planned: Vec<Weighed> = Vec::new();
        for group in groups {
            if planned.iter().any(|one| one.group.is_same(&group)) {
                continue;
            }
            match group.plan(share) {
                Ok(plan) => planned.extend(plan),
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(planned)
    }

    /// Looks at all workers, and gives each the level that it is to have.
    pub fn look(&mut self, now_ns: u64) -> Result<Next, AttachError> {
        self.looks += 1;
        self.take_told(now_ns)?;
        self.look_at_begun(now_ns);
        if now_ns >= self.find_ns {
            self.find(now_ns)?;
        } else if now_ns >= self.check_ns {
            self.check(now_ns)?;
        }
        while let Some(ended) = self.source.next_ended() {
            self.order.finish(&ended);
        }
        self.order.begin_look();
        let mut gone = Vec::new();
        let places: Vec<u32> = self.watched.keys().copied().collect();
        for place in places {
            let Ok((reading, waited_ns)) = self.source.read(place, now_ns) else {
                let watched = self.watched.get(&place);
                if watched.is_none_or(|watched| !watched.worker.thread.is_there()) {
                    gone.push(place);
                }
                // For want of descriptors it stays as it is.
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
        for start in self.order.take_starts() {
            self.source.set_start(start);
        }
        let due_ns = self.due_ns();
        Ok(match (self.order.end_look(now_ns), &self.source) {
            (_, Source::Proc(_)) => Next::At(now_ns + UNTOLD_LOOK_NS),
            (Next::At(at_ns), _) => Next::At(at_ns),
            (Next::WhenTold, _) if due_ns <= now_ns => Next::At(now_ns),
            (Next::WhenTold, _) => Next::WhenTold,
        })
    }

    /// Whether a worker that wants a processor could change a level by that.
    pub fn has_levels(&self) -> bool {
        self.order.has_levels()
    }

    /// What a request may use before it falls from the top level, ns.
    pub fn first_bound_ns(&self) -> u64 {
        self.order.bounds().bounds_ns()[0]
    }

    /// When workers are to be looked for, whatever is told.
    pub fn due_ns(&self) -> u64 {
        let due_ns = self.check_ns.min(self.find_ns);
        due_ns.min(self.begun.due_ns())
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
            // /proc is read only where no program sees its end.
            let is_there = self.source.is_there(place);
            let done = match is_there.unwrap_or_else(|| thread.is_there()) {
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

    fn write_record(&self) -> Result<(), AttachError> {
        if !self.options.observes {
            self.record.write()?;
        }
        Ok(())
    }

    fn forget(&mut self, place: u32) {
        self.order.forget(place);
        if let Some(watched) = self.watched.remove(&place) {
            self.find_ns = self.unplaced.after_freed(self.find_ns, self.check_ns);
            let thread = watched.worker.thread;
            self.source.remove(thread.pid, place);
            self.record.workers.retain(|(known, _)| *known != thread);
            // Another process may have its number next.
            if !thread.is_there() {
                self.forget_process(watched.worker.process);
            }
        }
    }

    /// A thread of it has ended: so has it, unless others are there.
    fn forget_process(&mut self, process: u32) {
        let mut watched = self.watched.values();
        let is_there = watched.any(|watched| watched.worker.process == process);
        if !is_there && self.processes.remove(&process) {
            self.source.set_processes([process].iter(), [].iter());
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

/// On how many processors a thread may run.
fn processors_of(thread: u32) -> f64 {
    let allowed = sched_getaffinity(Pid::from_raw(thread.cast_signed()));
    allowed.map_or(1.0, |allowed| f64::from(allowed.count().max(1)))
}
