//! What is known of one server while it is attached to, and what follows for its processes.

mod apply;

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::process_table;
use tokio_postgres::Error;

use super::activity::{Phase, Session, Watcher};
use super::classes::Classifier;
use super::connection::Connection;
use super::daemon::{Options, WorkError};
use super::family::Family;
use super::gate_tasks::FromGate;
use super::gates::Gates;
use super::inherit::Holders;
use super::leftovers::{Leftovers, ProcessId};
use super::levels::{Change, Levels, Standings};
use super::mechanism::{Mechanism, Trial};
use super::meter::Meter;
use super::pace::Pace;
use super::processor::Processes;
use super::snapshot::Snapshot;
use super::told::Told;

/// Looks at sessions are no closer than this.
const LOOK_MIN: Duration = Duration::from_millis(10);
/// Questions who holds what a raised one waits for are no closer than this.
const INHERIT_MIN: Duration = Duration::from_millis(2);

/// What the process of the extension `sooner_locks` is called.
const LOCK_WORKER: &str = "postgres: sooner_locks";
/// Looked for anew after so many looks, as it may have begun anew.
const LOOKS_A_WORKER: u64 = 64;

/// All of it.
pub struct Attached<'a> {
    connection: &'a Connection,
    options: &'a Options,
    levels: &'a Levels,
    trials: &'a [Trial],
    leftovers: &'a mut Leftovers,
    mechanism: Mechanism,
    family: Family,
    watcher: Watcher<'a>,
    holders: Holders<'a>,
    classifier: Classifier,
    standings: Standings,
    processes: Processes,
    gates: Gates,
    lock_worker: Option<ProcessId>,
    meter: Meter,
    look_pace: Pace,
    inherit_pace: Pace,
    began_ns: u64,
    looks: u64,
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
        let each_share = match options.inherits {
            true => options.cost_share / 2.0,
            false => options.cost_share,
        };
        let mut attached = Attached {
            family: Family::new(connection.first_process, connection.numbers.clone()),
            watcher: Watcher::new(&connection.client).await?,
            holders: Holders::new(&connection.client).await?,
            classifier: Classifier::new(options.classes.clone()),
            standings: Standings::default(),
            processes: Processes::default(),
            gates: Gates::default(),
            lock_worker: None,
            meter,
            look_pace: Pace::new(LOOK_MIN, each_share),
            inherit_pace: Pace::new(INHERIT_MIN, each_share),
            began_ns: monotonic_ns(),
            looks: 0,
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
        attached.raise_lock_worker();
        // What it took to prepare is no part of the first look.
        attached.meter.server_since_ns();
        Ok(attached)
    }

    /// Who asks who waits for whom must not wait behind them itself. Not by real time: the server reads
    /// what a session does once more, without a pause, until that has told it whole, and one that was
    /// stopped in the middle of it would have to wait until the kernel's rest for others comes.
    fn raise_own(&mut self) -> Result<(), WorkError> {
        let process = ProcessId::of(self.connection.own_process);
        let process = process.map_err(|_| WorkError::ServerGone("its process is gone".into()))?;
        if self.mechanism != Mechanism::RoundRobin {
            let level = self.levels.top();
            self.apply(Change { process, level });
        }
        Ok(())
    }

    /// Who orders lock queues goes before those that wait there, or comes too late.
    fn raise_lock_worker(&mut self) {
        if self.lock_worker.is_some_and(ProcessId::is_there) {
            return;
        }
        let first = self.connection.first_process;
        let children = process_table::children(first).unwrap_or_default();
        let mut children = children.into_iter();
        let is_it = |pid: &u32| process_table::is_called(*pid, LOCK_WORKER);
        self.lock_worker = children
            .find(is_it)
            .and_then(|pid| ProcessId::of_child(pid, first));
        if let Some(process) = self.lock_worker {
            let level = self.levels.top();
            self.apply(Change { process, level });
        }
    }

    /// Something from a gate.
    pub fn take(&mut self, from: FromGate) {
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
            if let Some(gate) = self.gates.told(number, process) {
                self.raise_gate(gate);
            }
            if self.settle(process) {
                return;
            }
            self.family.forget(told.process_id);
        }
    }

    /// Looks at all sessions: new ones, those that are gone, and what those do that no gate tells
    /// of.
    pub async fn look(&mut self) -> Result<(), Error> {
        let before_ns = self.meter.own_ns();
        let (sessions, workers) = self.watcher.processes().await?;
        self.looks += 1;
        if self.looks.is_multiple_of(LOOKS_A_WORKER) {
            self.raise_lock_worker();
        }
        self.family.begin_look();
        self.standings.retry();
        let mut seen = HashSet::new();
        for session in &sessions {
            let process = self.family.session(session.pid, session.began_us);
            let Some(process) = process else { continue };
            seen.insert(process);
            if !self.gates.tell_of(process) {
                self.classify(session, process);
            }
        }
        for worker in &workers {
            let process = self.family.session(worker.pid, worker.began_us);
            let leader = self.family.process(worker.leader);
            let (Some(process), Some(leader)) = (process, leader) else {
                continue;
            };
            seen.insert(process);
            self.standings
                .set_own(process, self.standings.level(leader));
        }
        self.forget_all_but(&seen);
        let insides: HashSet<i32> = sessions.iter().map(|session| session.pid).collect();
        self.classifier.retain(|pid| insides.contains(&pid));
        self.apply_changes();
        let cost_ns = self.cost_since(before_ns);
        self.look_pace.note(cost_ns);
        Ok(())
    }

    fn classify(&mut self, session: &Session, process: ProcessId) {
        let (user, database) = (self.watcher.user(session), self.watcher.database(session));
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
        let pids: HashSet<u32> = seen.iter().map(|process| process.pid).collect();
        self.processes.retain(|pid| pids.contains(&pid));
    }

    /// What was spent since this thread had spent `before_ns`. The server's process still works when
    /// its answer is here: what it did after the last one is in this.
    fn cost_since(&mut self, before_ns: u64) -> u64 {
        let server_ns = self.meter.server_since_ns();
        self.meter.own_ns().saturating_sub(before_ns) + server_ns
    }

    /// How long until the next look.
    pub fn look_interval(&mut self) -> Duration {
        self.look_pace.interval(&self.meter)
    }

    /// Whether a raised one might wait for one that is not.
    pub fn has_to_inherit(&self) -> bool {
        self.options.inherits && self.standings.counts() != (0, 0)
    }

    /// Raises who holds what a raised one waits for, and no other.
    pub async fn inherit(&mut self) -> Result<(), Error> {
        let before_ns = self.meter.own_ns();
        let raised = self.standings.own();
        let raised: Vec<(i32, u32, u8)> = raised
            .filter_map(|(process, level)| Some((self.family.number(process)?, process.pid, level)))
            .collect();
        let holders = self.holders.of(&raised, &mut self.processes).await?;
        let holders = holders.into_iter();
        let holders: BTreeMap<ProcessId, u8> = holders
            .filter_map(|(pid, level)| Some((self.family.process(pid)?, level)))
            .collect();
        self.standings.set_inherited(&holders);
        self.apply_changes();
        let cost_ns = self.cost_since(before_ns);
        self.inherit_pace.note(cost_ns);
        Ok(())
    }

    /// How long until the next question.
    pub fn inherit_interval(&mut self) -> Duration {
        self.inherit_pace.interval(&self.meter)
    }

    /// All figures.
    pub fn snapshot(&self) -> Snapshot {
        let (raised, inheriting) = self.standings.counts();
        let uptime_s = (monotonic_ns() - self.began_ns) as f64 / 1e9;
        let classes = self.options.classes.iter();
        let classes = classes.map(|class| {
            let level = self.levels.level(*class.priority.get_ref());
            (class.name.get_ref().clone(), level)
        });
        let (late_ns, late) = self.late_ns;
        Snapshot {
            pid: std::process::id(),
            server_pid: self.connection.first_process,
            version: self.connection.version.clone(),
            uptime_s,
            is_waiting: false,
            mechanism: self.mechanism,
            trials: self.trials.to_vec(),
            classes: classes.collect(),
            inherits: self.options.inherits,
            raised,
            inheriting,
            changes: self.changes,
            refused: self.refused,
            gates: self.gates.count(),
            told: self.told,
            looks: self.looks,
            late_ms: (late > 0).then(|| late_ns as f64 / 1e6 / late as f64),
            inherit_looks: self.holders.asked,
            cost_share: self.meter.cost(1, uptime_s).share,
        }
    }
}
