//! What is known of one server while it is attached to, and what follows for its processes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::{priority, process_table};
use tokio_postgres::Error;

use super::activity::{Phase, Watcher};
use super::classes::Classifier;
use super::connection::Connection;
use super::daemon::{FromGate, INHERIT_INTERVAL, Options, WorkError};
use super::inherit::Holders;
use super::leftovers::{Leftovers, ProcessId};
use super::levels::{Levels, Standings};
use super::mechanism::{Mechanism, Trial};
use super::meter::Meter;
use super::processor::Processes;
use super::server::ProcessNumbers;
use super::snapshot::Snapshot;

/// Looks at sessions are no closer and no further apart than this.
const LOOK_MIN: Duration = Duration::from_millis(10);
const LOOK_MAX: Duration = Duration::from_secs(1);
/// Questions are no further apart than this.
const INHERIT_MAX: Duration = Duration::from_millis(50);

/// All of it.
pub struct Attached<'a> {
    connection: &'a Connection,
    options: &'a Options,
    levels: &'a Levels,
    trials: &'a [Trial],
    leftovers: &'a mut Leftovers,
    mechanism: Mechanism,
    numbers: ProcessNumbers,
    watcher: Watcher<'a>,
    holders: Holders<'a>,
    classifier: Classifier,
    standings: Standings,
    processes: Processes,
    /// By the number here, that of the server.
    inside: HashMap<u32, i32>,
    /// Gates, and the processes of which they tell.
    gates: BTreeMap<u64, HashSet<u32>>,
    meter: Meter,
    began_ns: u64,
    looks: u64,
    look_cost_ns: u64,
    inherit_cost_ns: u64,
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
        let mut attached = Attached {
            numbers: connection.numbers.clone(),
            watcher: Watcher::new(&connection.client).await?,
            holders: Holders::new(&connection.client).await?,
            classifier: Classifier::new(options.classes.clone()),
            standings: Standings::default(),
            processes: Processes::default(),
            inside: HashMap::new(),
            gates: BTreeMap::new(),
            meter,
            began_ns: monotonic_ns(),
            looks: 0,
            look_cost_ns: 0,
            inherit_cost_ns: 0,
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
        attached.apply(connection.own_process, levels.top());
        Ok(attached)
    }

    /// Something from a gate.
    pub fn take(&mut self, from: FromGate) {
        match from {
            FromGate::Came(number, pid) => {
                self.gates.insert(number, HashSet::new());
                if let Some(pid) = pid {
                    self.raise_gate(pid);
                }
            }
            FromGate::Told(number, told) => {
                for one in told {
                    self.told += 1;
                    let level = match one.priority {
                        0 => 0,
                        priority => self.levels.level(priority),
                    };
                    if let Some(pid) = self.of_this_server(one.process_id) {
                        self.gates.entry(number).or_default().insert(pid);
                        self.standings.set_own(pid, level);
                    }
                }
                self.apply_changes();
            }
            FromGate::Gone(number) => {
                for pid in self.gates.remove(&number).unwrap_or_default() {
                    self.standings.set_own(pid, 0);
                }
                self.apply_changes();
            }
            FromGate::Nothing => {}
        }
    }

    /// Looks at all sessions: new ones, those that are gone, and what those do that no gate tells
    /// of.
    pub async fn look(&mut self) -> Result<(), Error> {
        let before_ns = self.meter.cost_ns();
        let sessions = self.watcher.sessions().await?;
        self.looks += 1;
        let mut there = HashSet::new();
        for session in &sessions {
            let Some(pid) = self.numbers.outside(session.pid) else {
                continue;
            };
            there.insert(pid);
            self.inside.insert(pid, session.pid);
            if self.gates.values().any(|told| told.contains(&pid)) {
                continue;
            }
            let user = self.watcher.user(session);
            let database = self.watcher.database(session);
            let told = self.classifier.told(session, user, database);
            let level = match self.options.classes.get(told.class) {
                Some(class) => self.levels.level(*class.priority.get_ref()),
                None => 0,
            };
            let is_new = self.standings.level(pid) != level;
            self.standings.set_own(pid, level);
            if is_new && session.phase == Phase::Active {
                let late_us = (session.now_us - session.statement_us).max(0);
                self.late_ns.0 += 1000 * late_us.cast_unsigned();
                self.late_ns.1 += 1;
            }
        }
        self.standings.retain(|pid| there.contains(&pid));
        self.inside.retain(|pid, _| there.contains(pid));
        self.processes.retain(|pid| there.contains(&pid));
        for told in self.gates.values_mut() {
            told.retain(|pid| there.contains(pid));
        }
        let insides: HashSet<i32> = sessions.iter().map(|session| session.pid).collect();
        self.classifier.retain(|pid| insides.contains(&pid));
        self.apply_changes();
        self.look_cost_ns += self.meter.cost_ns() - before_ns;
        Ok(())
    }

    /// How long until the next look.
    pub fn look_interval(&self) -> Duration {
        let each = Duration::from_nanos(self.look_cost_ns / self.looks.max(1));
        self.meter
            .spread(each, self.options.cost_share)
            .clamp(LOOK_MIN, LOOK_MAX)
    }

    /// Whether a raised one might wait for one that is not.
    pub fn has_to_inherit(&self) -> bool {
        self.options.inherits && self.standings.counts() != (0, 0)
    }

    /// Raises who holds what a raised one waits for, and no other.
    pub async fn inherit(&mut self) -> Result<(), Error> {
        let before_ns = self.meter.cost_ns();
        let raised = self.standings.own();
        let raised: Vec<(i32, u32, u8)> = raised
            .filter_map(|(pid, level)| Some((*self.inside.get(&pid)?, pid, level)))
            .collect();
        let holders = self.holders.of(&raised, &mut self.processes).await?;
        let holders = holders.into_iter();
        let holders: BTreeMap<u32, u8> = holders
            .filter_map(|(pid, level)| Some((self.of_this_server(pid)?, level)))
            .collect();
        self.standings.set_inherited(&holders);
        self.apply_changes();
        self.inherit_cost_ns += self.meter.cost_ns() - before_ns;
        Ok(())
    }

    /// How long until the next question.
    pub fn inherit_interval(&self) -> Duration {
        let each = Duration::from_nanos(self.inherit_cost_ns / self.holders.asked.max(1));
        self.meter
            .spread(each, self.options.cost_share)
            .clamp(INHERIT_INTERVAL, INHERIT_MAX)
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
            mechanism: self.mechanism,
            trials: self.trials.to_vec(),
            classes: classes.collect(),
            inherits: self.options.inherits,
            raised,
            inheriting,
            changes: self.changes,
            refused: self.refused,
            gates: self.gates.len(),
            told: self.told,
            looks: self.looks,
            late_ms: (late > 0).then(|| late_ns as f64 / 1e6 / late as f64),
            inherit_looks: self.holders.asked,
            cost_share: self.meter.cost(1, uptime_s).share,
        }
    }

    /// The number here of a process that is one of this server's.
    fn of_this_server(&mut self, inside: i32) -> Option<u32> {
        let pid = self.numbers.outside(inside)?;
        if !self.inside.contains_key(&pid) {
            let parent = process_table::parent(pid).ok()?;
            if parent != self.connection.first_process {
                return None;
            }
            self.inside.insert(pid, inside);
        }
        Some(pid)
    }

    /// A gate goes before what it feeds: nothing would come to the others.
    fn raise_gate(&mut self, pid: u32) {
        let Ok(gate) = ProcessId::of(pid) else { return };
        if self.leftovers.gates.iter().all(|(known, _)| *known != gate) {
            let nice = priority::nice(pid).unwrap_or(0);
            self.leftovers.gates.push((gate, nice));
            if self.leftovers.write().is_err() {
                return;
            }
        }
        self.apply(pid, self.levels.top() + 1);
    }

    fn apply_changes(&mut self) {
        for change in self.standings.changes() {
            self.apply(change.pid, change.level);
        }
    }

    fn apply(&mut self, pid: u32, level: u8) {
        let nice = self.leftovers.nice;
        let top = self.levels.top();
        match self.mechanism.apply(pid, level, top, nice) {
            Ok(()) => self.changes += 1,
            // One that has gone is forgotten at the next look.
            Err(_) => self.refused += 1,
        }
    }
}
