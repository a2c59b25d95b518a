//! What is known of one server while it is attached to, and what follows for its processes.

mod apply;
mod helpers;

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use sooner_kernel::clock::monotonic_ns;
use tokio_postgres::Error;

use super::activity::{Phase, Processes, Session, Watcher};
use super::asking::{Answer, Asker, Asking, Question};
use super::classes::Classifier;
use super::connection::Connection;
use super::daemon::{Options, WorkError};
use super::family::Family;
use super::gate_tasks::FromGate;
use super::gates::Gates;
use super::leftovers::Leftovers;
use super::levels::{Level, Levels, Standings};
use super::mechanism::Mechanism;
use super::meter::Meter;
use super::pace::Pace;
use super::session::named;
use super::snapshot::Snapshot;
use super::told::Told;
use super::trial::Trial;
use crate::process_id::ProcessId;
use helpers::Helpers;

/// Looks at sessions are no closer than this.
const LOOK_MIN: Duration = Duration::from_millis(10);
/// Questions who holds what a raised one waits for are no closer than this.
const INHERIT_MIN: Duration = Duration::from_millis(2);
/// Looks at sessions are no further apart where gates tell of all of them and none goes first.
const LOOK_RESTING: Duration = Duration::from_millis(500);

/// All of it.
pub struct Attached<'a> {
    connection: &'a Connection,
    options: &'a Options,
    levels: &'a Levels,
    trials: &'a [Trial],
    leftovers: &'a mut Leftovers,
    mechanism: Mechanism,
    family: Family,
    /// None while a question is under way.
    asker: Option<Asker<'a>>,
    /// What this thread had spent when that began, and on what gates told since.
    asked_at_ns: (u64, u64),
    asked_for_holders: u64,
    classifier: Classifier,
    standings: Standings,
    gates: Gates,
    helpers: Helpers,
    meter: Meter,
    look_pace: Pace,
    busy_interval: Duration,
    inherit_pace: Pace,
    began_ns: u64,
    looks: u64,
    /// Whether gates told of all sessions at the last look.
    all_are_told: bool,
    /// Parallel workers at the last look, each with the process that it helps.
    helping: Vec<(ProcessId, ProcessId)>,
    /// What waited for a lock at the last look, where some are lowered.
    waiting: BTreeMap<i32, Level>,
    late_ns: (u64, u64),
    told: u64,
    changes: u64,
    refused: u64,
}

impl<'a> Attached<'a> {
    /// Nothing is changed yet, but the own session goes before those that it looks at.
    pub async fn new(
        connection: &'a Connection,
        options: &'a Options,
        (levels, trials): (&'a Levels, &'a [Trial]),
        leftovers: &'a mut Leftovers,
    ) -> Result<Attached<'a>, WorkError> {
        let meter = Meter::start(connection.own_process);
        let meter = meter.map_err(|error| WorkError::Daemon(error.into()))?;
        let mechanism = leftovers.mechanism;
        let each_share = match options.inherits || options.lowers {
            true => options.cost_share / 2.0,
            false => options.cost_share,
        };
        let mut attached = Attached {
            family: Family::new(connection.first_process, connection.numbers.clone()),
            asker: Some(Asker::new(&connection.client).await?),
            asked_at_ns: (0, 0),
            asked_for_holders: 0,
            classifier: Classifier::new(options.classes.clone()),
            standings: Standings::default(),
            gates: Gates::default(),
            helpers: Helpers::default(),
            meter,
            look_pace: Pace::new(LOOK_MIN, each_share),
            busy_interval: LOOK_MIN,
            inherit_pace: Pace::new(INHERIT_MIN, each_share),
            began_ns: monotonic_ns(),
            looks: 0,
            all_are_told: false,
            helping: Vec::new(),
            waiting: BTreeMap::new(),
            late_ns: (0, 0),
            told: 0,
            changes: 0,
            refused: 0,
            mechanism,
            connection,
            options,
            levels,
            trials,
            leftovers,
        };
        attached.raise_own()?;
        attached.find_lock_worker();
        // What it took to prepare is no part of the first look.
        attached.meter.server_since_ns();
        Ok(attached)
    }

    /// Something from a gate.
    pub fn take(&mut self, from: FromGate) {
        let before_ns = self.meter.own_ns();
        self.hear_gate(from);
        self.asked_at_ns.1 += self.meter.own_ns().saturating_sub(before_ns);
    }

    fn hear_gate(&mut self, from: FromGate) {
        match from {
            FromGate::Came(number, pid) => {
                let process = pid.and_then(|pid| ProcessId::of(pid).ok());
                self.gates.came(number, process);
            }
            FromGate::Told(number, told) => {
                for one in told {
                    self.told += 1;
                    self.hear(number, one);
                }
            }
            FromGate::Gone(number) => {
                // Its sessions have to be looked at.
                self.all_are_told = false;
                let left = self.gates.gone(number);
                for process in left.untold {
                    self.standings.set_own(process, 0);
                    self.settle(process);
                }
                if let Some(gate) = left.gate {
                    self.put_gate_back(gate);
                }
            }
            FromGate::Nothing => {}
        }
    }

    /// One process gets a transaction of another priority.
    fn hear(&mut self, number: u64, told: Told) {
        let level = match told.priority {
            0 => 0,
            priority => self.levels.level(priority),
        };
        // Another process may have got the number since it was learnt.
        for _ in 0..2 {
            let Some(process) = self.family.process(told.process_id) else {
                return;
            };
            self.standings.set_own(process, level);
            let new_gate = self.gates.told(number, process);
            let is_there = self.settle(process);
            if level > 0 {
                self.keep_helpers(true);
            }
            if let Some(gate) = new_gate {
                self.raise_new_gate(gate);
            }
            if is_there {
                return;
            }
            self.family.forget(told.process_id);
        }
    }

    /// Asks the server; nothing where another question is under way.
    pub fn ask(&mut self, question: Question) -> Option<Asking<'a>> {
        let asker = self.asker.take()?;
        self.asked_at_ns = (self.meter.own_ns(), 0);
        Some(match question {
            Question::Sessions => asker.sessions(),
            Question::Holders => {
                let raised = self.standings.own().filter(|_| self.options.inherits);
                let raised = raised.filter_map(|(process, level)| {
                    Some((self.family.number(process)?, process.pid, level))
                });
                asker.holders(raised.collect(), self.waiting.clone())
            }
        })
    }

    /// The server has answered.
    pub fn answered(
        &mut self,
        mut asker: Asker<'a>,
        answer: Result<Answer, Error>,
    ) -> Result<(), Error> {
        self.asked_for_holders = asker.asked_for_holders();
        let done = answer.map(|answer| match answer {
            Answer::Sessions(processes) => {
                asker.keep(&self.look(&asker.watcher, &processes));
                let cost_ns = self.cost();
                self.look_pace.note(cost_ns);
            }
            Answer::Holders(holders) => {
                self.inherit(holders);
                let cost_ns = self.cost();
                self.inherit_pace.note(cost_ns);
            }
        });
        self.asker = Some(asker);
        done
    }

    /// Looks at all sessions: new ones, those that are gone, and what those do that no gate tells
    /// of. Gives the processes of all.
    fn look(&mut self, watcher: &Watcher<'_>, processes: &Processes) -> HashSet<u32> {
        let Processes {
            sessions,
            workers,
            waiting,
        } = processes;
        self.looks += 1;
        self.family.begin_look();
        self.standings.retry();
        let mut seen = HashSet::new();
        self.all_are_told = workers.is_empty() && !sessions.is_empty();
        for session in sessions {
            let process = self.family.session(session.pid, session.began_us);
            let Some(process) = process else { continue };
            seen.insert(process);
            if !self.gates.tell_of(process) {
                self.all_are_told = false;
                self.classify(watcher, session, process);
            }
        }
        self.note_waiting(waiting);
        self.helping.clear();
        for worker in workers {
            let process = self.family.session(worker.pid, worker.began_us);
            let leader = self.family.process(worker.leader);
            let (Some(process), Some(leader)) = (process, leader) else {
                continue;
            };
            seen.insert(process);
            self.helping.push((process, leader));
            self.standings
                .set_own(process, self.standings.level(leader));
        }
        self.forget_all_but(&seen);
        let insides: HashSet<i32> = sessions.iter().map(|session| session.pid).collect();
        self.classifier.retain(|pid| insides.contains(&pid));
        self.apply_changes();
        self.look_at_helpers();
        seen.iter().map(|process| process.pid).collect()
    }

    fn classify(&mut self, watcher: &Watcher<'_>, session: &Session, process: ProcessId) {
        let (user, database) = (watcher.user(session), watcher.database(session));
        let told = self.classifier.told(session, user, database);
        let level = match self.options.classes.get(told.class) {
            Some(class) => self.levels.level(*class.priority.get_ref()),
            None => 0,
        };
        let is_new = self.standings.level(process) != level;
        self.standings.set_own(process, level);
        if is_new && session.phase == Phase::Active {
            let late_us = (session.now_us - session.statement_us).max(0);
            self.late_ns.0 += 1000 * late_us.cast_unsigned();
            self.late_ns.1 += 1;
        }
    }

    /// Notes what waits for a lock, so that its holder is asked for: one that is lowered is spared.
    fn note_waiting(&mut self, waiting: &[i32]) {
        self.waiting.clear();
        if self.standings.lowered() == (0, 0) {
            return;
        }
        for pid in waiting {
            let process = self.family.process(*pid);
            let own = process.map_or(0, |process| self.standings.level(process));
            // What a lowered one waits for is spared as well: others may wait for it in turn.
            let level = if self.options.inherits { own.max(0) } else { 0 };
            self.waiting.insert(*pid, level);
        }
    }

    /// What is none of these may still be a process of the server.
    fn forget_all_but(&mut self, seen: &HashSet<ProcessId>) {
        let family = &self.family;
        let is_there = |process| seen.contains(&process) || family.has(process);
        self.gates.retain(is_there);
        let gates = &self.gates;
        self.standings
            .keep(seen, |process| gates.tell_of(process), is_there);
        let standings = &self.standings;
        let keeps = |process| seen.contains(&process) || standings.has(process);
        self.family.retain(keeps);
    }

    /// What the question cost. The server's process still works when its answer is here: what it did
    /// after the last one is in this.
    fn cost(&mut self) -> u64 {
        let server_ns = self.meter.server_since_ns();
        let (before_ns, told_ns) = self.asked_at_ns;
        self.meter.own_ns().saturating_sub(before_ns + told_ns) + server_ns
    }

    /// How long until the next look.
    pub fn look_interval(&mut self) -> Duration {
        self.busy_interval = self.look_pace.interval(&self.meter);
        match self.rests() {
            true => self.busy_interval.max(LOOK_RESTING),
            false => self.busy_interval,
        }
    }

    /// The same where one goes first.
    pub fn busy_interval(&self) -> Duration {
        self.busy_interval
    }

    /// Whether a look would change nothing but for sessions that no gate has told of: the parallel
    /// workers of one that goes first have to be looked for, and those that wait for one that is
    /// lowered.
    pub fn rests(&self) -> bool {
        self.all_are_told && self.standings.counts() == (0, 0) && self.standings.lowered() == (0, 0)
    }

    /// Whether a raised one might wait for one that is not, or anyone for one that is lowered.
    pub fn has_to_inherit(&self) -> bool {
        let (_, spared) = self.standings.lowered();
        let inherits = self.options.inherits && self.standings.counts() != (0, 0);
        inherits || spared > 0 || !self.waiting.is_empty()
    }

    /// Raises who holds what a raised one waits for, and no other; who holds what anyone waits for is
    /// not lowered.
    fn inherit(&mut self, mut holders: BTreeMap<i32, Level>) {
        // None of those that were asked about goes first or waits any more.
        if self.waiting.is_empty() && self.standings.own().next().is_none() {
            holders.clear();
        }
        let holders = holders.into_iter();
        let mut holders: BTreeMap<ProcessId, Level> = holders
            .filter_map(|(pid, level)| Some((self.family.process(pid)?, level)))
            .collect();
        // A holder waits for those that help it.
        for (worker, leader) in &self.helping {
            if let Some(level) = holders.get(leader).copied() {
                holders.insert(*worker, level);
            }
        }
        self.standings.set_inherited(&holders);
        self.apply_changes();
    }

    /// How long until the next question.
    pub fn inherit_interval(&mut self) -> Duration {
        self.inherit_pace.interval(&self.meter)
    }

    /// All figures.
    pub fn snapshot(&self) -> Snapshot {
        let (raised, inheriting) = self.standings.counts();
        let uptime_s = (monotonic_ns() - self.began_ns) as f64 / 1e9;
        let (lowered, spared) = self.standings.lowered();
        let (late_ns, late) = self.late_ns;
        Snapshot {
            pid: std::process::id(),
            server_pid: self.connection.first_process,
            version: self.connection.version.clone(),
            uptime_s,
            is_waiting: false,
            mechanism: self.mechanism,
            trials: self.trials.to_vec(),
            classes: named(self.options, self.levels),
            inherits: self.options.inherits,
            raised,
            inheriting,
            lowering: self.leftovers.lowering.map(|lowering| lowering.mechanism),
            lowered,
            spared,
            changes: self.changes,
            refused: self.refused,
            gates: self.gates.count(),
            told: self.told,
            looks: self.looks,
            late_ms: (late > 0).then(|| late_ns as f64 / 1e6 / late as f64),
            inherit_looks: self.asked_for_holders,
            cost_share: self.meter.cost(1, uptime_s).share,
        }
    }
}
