//! What a gate is doing at the moment, as values: once for the console's tables, for metrics and for
//! the live page.

use crate::client::handle::{Activity, ClassCount};
use crate::config::{ClassTable, Limits};
use crate::pool::overtime::{counts, would_wait};
use crate::pool::upstream::Upstream;
use crate::pooler::Pooler;
use crate::statistics::{Statistics, Tally};
use sooner_admission::WouldWait;
use sooner_config::classes::name_of;
use std::time::Duration;

/// A server.
pub struct ServerReading {
    pub address: String,
    /// Transactions that may be inside.
    pub limit: usize,
    /// How many would be, where nothing is held.
    pub observed_limit: Option<usize>,
    pub inside: usize,
    pub waiting: usize,
    /// Since the start.
    pub admitted: u64,
    /// Idle ones included.
    pub connections: usize,
    pub idle_connections: usize,
    pub limit_connections: usize,
    /// Transactions that have given their places up.
    pub yielded: usize,
}

impl ServerReading {
    /// That of `upstream`.
    pub fn of(upstream: &Upstream, limits: &Limits) -> Self {
        let status = upstream.limiter.status();
        let pool = upstream.pool.borrow();
        Self {
            address: upstream.address.to_string(),
            limit: status.limit,
            observed_limit: upstream.limiter.rehearsed().map(|(limit, _)| limit),
            inside: status.inside,
            waiting: upstream.waiting(),
            admitted: status.admitted,
            connections: pool.open(),
            idle_connections: pool.idle().count(),
            limit_connections: upstream.connections(limits),
            yielded: upstream.places.yielded(),
        }
    }
}

/// All servers of databases that were requested.
pub fn servers(pooler: &Pooler) -> Vec<ServerReading> {
    let configuration = pooler.configuration();
    let limits = &configuration.config.limits;
    let upstreams = pooler.upstreams();
    let all = upstreams.iter();
    all.map(|upstream| ServerReading::of(upstream, limits))
        .collect()
}

/// A class, or with an empty name what is in none.
pub struct ClassReading<'a> {
    pub name: String,
    pub priority: Option<u8>,
    /// The most of its transactions that may be inside.
    pub inside_max: Option<usize>,
    /// For how long one keeps its place.
    pub longest: Option<Duration>,
    pub present: ClassCount,
    /// What its transactions took, from the first one on.
    pub tally: Option<&'a Tally>,
    /// Transactions that ran for longer than they may.
    pub overlong: u64,
    /// Those of them that were cancelled.
    pub cancelled: u64,
    /// Where nothing is held: what would become of its transactions.
    pub would_wait: Option<WouldWait>,
}

/// All classes in the order of the configuration, and behind the last what is in none.
pub fn classes<'a>(pooler: &Pooler, measured: &'a Statistics) -> Vec<ClassReading<'a>> {
    let configuration = pooler.configuration();
    let tables = configuration.config.class.iter().map(Some).chain([None]);
    let (overlong, would) = (counts(pooler), would_wait(pooler));
    let present = pooler.class_counts();
    let all = tables.zip(present).enumerate();
    let reading = |(number, (table, present)): (usize, (Option<&ClassTable>, _))| {
        let bounds = table.map(|table| table.bounds()).unwrap_or_default();
        let name = table.map_or_else(String::new, |table| table.name.get_ref().clone());
        let [overlong, cancelled] = overlong.get(number).copied().unwrap_or_default();
        let key = u8::try_from(number).ok();
        ClassReading {
            priority: table.map(|table| *table.priority.get_ref()),
            inside_max: bounds.inside_max.map(|cap| cap.get_ref().get()),
            longest: bounds.longest().map(|longest| longest.time),
            present,
            tally: measured.classes.get(&name),
            overlong,
            cancelled,
            would_wait: key.and_then(|key| would.get(&key).copied()),
            name,
        }
    };
    all.map(reading).collect()
}

/// A target of a class in a server.
pub struct TargetReading {
    pub server: String,
    pub class: String,
    /// `mean`, or a percentile.
    pub target: String,
    pub target_ns: u64,
    /// What was achieved of it recently; `None` before the first transaction.
    pub achieved_ns: Option<u64>,
    /// The class's mean time inside.
    pub inside_ns: Option<u64>,
    /// Its transactions that are there, waiting or inside.
    pub present: usize,
}

impl TargetReading {
    /// Whether it is not met.
    pub fn is_late(&self) -> bool {
        self.achieved_ns.is_some_and(|ns| ns > self.target_ns)
    }
}

/// All targets in all servers.
pub fn targets(pooler: &Pooler) -> Vec<TargetReading> {
    let mut targets = Vec::new();
    for upstream in pooler.upstreams() {
        for class in upstream.limiter.class_statuses() {
            for (target, achieved_ns) in class.achieved {
                targets.push(TargetReading {
                    server: upstream.address.to_string(),
                    class: class.name.clone(),
                    target: name_of(target),
                    target_ns: target.target_ns(),
                    achieved_ns,
                    inside_ns: class.inside_ns,
                    present: class.present,
                });
            }
        }
    }
    targets
}

/// Clients by what they do.
#[derive(Clone, Copy, Default)]
pub struct ClientCounts {
    pub idle: usize,
    pub waiting: usize,
    pub active: usize,
}

/// All clients that are here.
pub fn clients(pooler: &Pooler) -> ClientCounts {
    let mut counts = ClientCounts::default();
    for handle in pooler.clients.borrow().values() {
        match handle.shown_activity() {
            Activity::Idle => counts.idle += 1,
            Activity::Waiting => counts.waiting += 1,
            Activity::Active => counts.active += 1,
        }
    }
    counts
}
