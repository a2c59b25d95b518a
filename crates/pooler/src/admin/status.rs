//! `/status.json`: everything the live page shows, as data. Times are in seconds; what is not known
//! is `null`.

use super::history::{ClassFigures, Done, History, Series, ServerFigures};
use crate::pool::idle_holders::{IdleHolders, idle_holders};
use crate::pooler::Pooler;
use crate::readings::{self, ClassReading, ServerReading, TargetReading};
use crate::statistics::Phase;
use serde::Serialize;
use sooner_admission::WouldWait;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The gate at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// The form of this object; a field once published keeps its name and meaning.
    pub schema: u32,
    /// When it was made, seconds since 1970.
    pub time_unix_seconds: f64,
    /// Since the gate began.
    pub uptime_seconds: f64,
    /// The version of the program.
    pub version: &'static str,
    /// Whether it takes no more clients and is about to end.
    pub is_stopping: bool,
    /// Whether every database is paused.
    pub is_paused: bool,
    /// Whether nothing is held back.
    pub is_observing: bool,
    /// What matters most, in words.
    pub headline: String,
    /// What holds others up, in words, one for each server where something does.
    pub held_up: Vec<String>,
    /// Clients that are here.
    pub clients: ClientStatus,
    /// Servers of databases that were requested.
    pub servers: Vec<ServerStatus>,
    /// Classes in the order of the configuration, and behind the last what is in none.
    pub classes: Vec<ClassStatus>,
    /// Targets, in each server.
    pub targets: Vec<TargetStatus>,
    /// The last five minutes.
    pub per_second: PerSecond,
}

/// Clients by what they do.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ClientStatus {
    /// Nothing.
    pub idle: usize,
    /// They wait for a turn.
    pub waiting: usize,
    /// They have a server connection.
    pub active: usize,
}

/// A server.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ServerStatus {
    /// Where it is.
    pub address: String,
    /// Transactions that may be inside.
    pub limit_transactions: usize,
    /// That might be, where nothing is held.
    pub observed_limit_transactions: Option<usize>,
    /// That are.
    pub inside_transactions: usize,
    /// That wait.
    pub waiting_transactions: usize,
    /// Open to it, idle ones included.
    pub connections: usize,
    /// That there may be.
    pub limit_connections: usize,
    /// That no client has.
    pub idle_connections: usize,
    /// That clients keep and do not use.
    pub kept_connections: usize,
    /// That are open and do nothing.
    pub idle_transactions: usize,
}

/// A class.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ClassStatus {
    /// Its name; empty for what is in none.
    pub name: String,
    /// `null` for what is in none.
    pub priority: Option<u8>,
    /// Clients that are here.
    pub clients: usize,
    /// Of these, that wait for a turn.
    pub waiting_clients: usize,
    /// Transactions with a server connection.
    pub inside_transactions: usize,
    /// That may be inside.
    pub limit_transactions: Option<usize>,
    /// Since the start.
    pub transactions_total: u64,
    /// In the last ten seconds.
    pub transactions_per_second: Option<f64>,
    /// Means of the last minute: waiting for a turn.
    pub mean_outside_seconds: Option<f64>,
    /// Then for a connection.
    pub mean_opening_seconds: Option<f64>,
    /// With a connection.
    pub mean_inside_seconds: Option<f64>,
    /// All of it.
    pub mean_response_seconds: Option<f64>,
    /// 95 in a hundred of the last one to two minutes took no longer.
    pub p95_outside_seconds: Option<f64>,
    /// The same.
    pub p95_inside_seconds: Option<f64>,
    /// The same.
    pub p95_response_seconds: Option<f64>,
    /// Ran for longer than they may, since the start.
    pub overlong_total: u64,
    /// Of these, that were cancelled.
    pub cancelled_total: u64,
    /// Where nothing is held.
    pub would_wait: Option<WouldWaitStatus>,
}

/// What would become of a class where nothing is held; since the start.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct WouldWaitStatus {
    /// That would have gone in.
    pub transactions_total: u64,
    /// Of these, that would have waited.
    pub would_wait_total: u64,
    /// Of all.
    pub mean_would_wait_seconds: Option<f64>,
    /// The longest.
    pub max_would_wait_seconds: f64,
    /// That would wait now.
    pub would_wait_transactions: u64,
}

/// A target of a class in a server.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TargetStatus {
    /// Where the server is.
    pub server: String,
    /// The class.
    pub class: String,
    /// `mean`, or a percentile.
    pub target: String,
    /// What it is to be, waiting included.
    pub target_seconds: f64,
    /// What it was recently.
    pub achieved_seconds: Option<f64>,
    /// Whether that is more.
    pub is_late: bool,
}

/// The last five minutes, oldest first, a value a second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PerSecond {
    /// Servers.
    pub servers: Vec<ServerSeconds>,
    /// Classes.
    pub classes: Vec<ClassSeconds>,
}

/// A server, second by second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ServerSeconds {
    /// Where it is.
    pub address: String,
    /// Transactions that waited.
    pub waiting_transactions: Vec<usize>,
    /// That were inside.
    pub inside_transactions: Vec<usize>,
}

/// A class, second by second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ClassSeconds {
    /// Its name.
    pub name: String,
    /// Clients that waited.
    pub waiting_clients: Vec<usize>,
    /// Transactions that were inside.
    pub inside_transactions: Vec<usize>,
    /// That ended.
    pub transactions: Vec<u64>,
    /// What these took, their waiting included.
    pub mean_response_seconds: Vec<Option<f64>>,
}

impl Status {
    /// Reads everything, at `now`.
    pub fn read(pooler: &Pooler, history: &History, uptime: Duration, now: SystemTime) -> Self {
        let configuration = pooler.configuration();
        let config = &configuration.config;
        let clients = readings::clients(pooler);
        let measured = pooler.statistics.borrow();
        let (mut servers, mut held_up) = (Vec::new(), Vec::new());
        for upstream in pooler.upstreams() {
            let held = idle_holders(pooler, &upstream);
            let reading = ServerReading::of(&upstream, &config.limits);
            servers.push(ServerStatus::new(reading, held));
            held_up.extend(held.held_up(&upstream));
        }
        let mut status = Self {
            schema: 1,
            time_unix_seconds: now
                .duration_since(UNIX_EPOCH)
                .map_or(0.0, |since| since.as_secs_f64()),
            uptime_seconds: uptime.as_secs_f64(),
            version: env!("CARGO_PKG_VERSION"),
            is_stopping: pooler.is_stopping(),
            is_paused: pooler.is_paused(),
            is_observing: config.observe,
            headline: String::new(),
            held_up,
            clients: ClientStatus {
                idle: clients.idle,
                waiting: clients.waiting,
                active: clients.active,
            },
            servers,
            classes: readings::classes(pooler, &measured)
                .into_iter()
                .map(|class| {
                    let seconds = history.class(&class.name);
                    ClassStatus::new(class, seconds)
                })
                .collect(),
            targets: readings::targets(pooler)
                .into_iter()
                .map(TargetStatus::new)
                .collect(),
            per_second: PerSecond::new(history),
        };
        status.headline = status.headline_now();
        status
    }

    /// What an operator wants to know first.
    fn headline_now(&self) -> String {
        let late = self.targets.iter().filter(|target| target.is_late);
        let late: BTreeSet<&str> = late.map(|target| target.class.as_str()).collect();
        let waiting: usize = (self.servers.iter())
            .map(|server| server.waiting_transactions)
            .sum();
        match (late.len(), late.first(), waiting) {
            _ if self.is_stopping => "The gate is about to end".into(),
            _ if self.is_paused => "Every database is paused".into(),
            _ if self.is_observing => "Only observed: nothing is held back".into(),
            (1, Some(class), _) => format!("Class {class} is late"),
            (classes @ 2.., _, _) => format!("{classes} classes are late"),
            (_, _, 0) => "No transaction waits".into(),
            (_, _, 1) => "1 transaction waits".into(),
            (_, _, waiting) => format!("{waiting} transactions wait"),
        }
    }
}

impl ServerStatus {
    fn new(server: ServerReading, held: IdleHolders) -> Self {
        Self {
            address: server.address,
            limit_transactions: server.limit,
            observed_limit_transactions: server.observed_limit,
            inside_transactions: server.inside,
            waiting_transactions: server.waiting,
            connections: server.connections,
            limit_connections: server.limit_connections,
            idle_connections: server.idle_connections,
            kept_connections: held.connections,
            idle_transactions: held.transactions,
        }
    }
}

impl ClassStatus {
    fn new(class: ClassReading<'_>, seconds: Option<&Series<ClassFigures>>) -> Self {
        let quantile = |phase| {
            let us = class.tally?.quantile_us(phase, 0.95)?;
            Some(us as f64 / 1e6)
        };
        let recent = seconds.map(Series::recent).unwrap_or_default();
        let mean = |us: fn(Done) -> u64| mean_seconds(us(recent), recent.turns);
        Self {
            priority: class.priority,
            clients: class.present.clients,
            waiting_clients: class.present.waiting,
            inside_transactions: class.present.active,
            limit_transactions: class.inside_max,
            transactions_total: class.tally.map_or(0, |tally| tally.sums.transactions),
            transactions_per_second: seconds.and_then(Series::transactions_per_second),
            mean_outside_seconds: mean(|done| done.outside_us),
            mean_opening_seconds: mean(|done| done.opening_us),
            mean_inside_seconds: mean(|done| done.inside_us),
            mean_response_seconds: mean_seconds(recent.response_us, recent.transactions),
            p95_outside_seconds: quantile(Phase::Outside),
            p95_inside_seconds: quantile(Phase::Inside),
            p95_response_seconds: quantile(Phase::Total),
            overlong_total: class.overlong,
            cancelled_total: class.cancelled,
            would_wait: class.would_wait.map(WouldWaitStatus::new),
            name: class.name,
        }
    }
}

impl WouldWaitStatus {
    fn new(would: WouldWait) -> Self {
        let seconds = |ns: u64| ns as f64 / 1e9;
        Self {
            transactions_total: would.jobs,
            would_wait_total: would.waited,
            mean_would_wait_seconds: would.mean_ns().map(seconds),
            max_would_wait_seconds: seconds(would.wait_max_ns),
            would_wait_transactions: would.waiting,
        }
    }
}

impl TargetStatus {
    fn new(target: TargetReading) -> Self {
        let seconds = |ns: u64| ns as f64 / 1e9;
        Self {
            is_late: target.is_late(),
            target_seconds: seconds(target.target_ns),
            achieved_seconds: target.achieved_ns.map(seconds),
            server: target.server,
            class: target.class,
            target: target.target,
        }
    }
}

impl PerSecond {
    fn new(history: &History) -> Self {
        Self {
            servers: history.servers.iter().map(ServerSeconds::new).collect(),
            classes: history.classes.iter().map(ClassSeconds::new).collect(),
        }
    }
}

impl ServerSeconds {
    fn new(series: &Series<ServerFigures>) -> Self {
        let of = |value: fn(&ServerFigures) -> usize| series.seconds().map(value).collect();
        Self {
            address: series.name.clone(),
            waiting_transactions: of(|second| second.waiting),
            inside_transactions: of(|second| second.inside),
        }
    }
}

impl ClassSeconds {
    fn new(series: &Series<ClassFigures>) -> Self {
        let of = |value: fn(&ClassFigures) -> usize| series.seconds().map(value).collect();
        let mean = |second: &ClassFigures| {
            let done = second.done;
            mean_seconds(done.response_us, done.transactions)
        };
        Self {
            name: series.name.clone(),
            waiting_clients: of(|second| second.waiting),
            inside_transactions: of(|second| second.inside),
            transactions: (series.seconds())
                .map(|second| second.done.transactions)
                .collect(),
            mean_response_seconds: series.seconds().map(mean).collect(),
        }
    }
}

/// The mean in whole microseconds, which keeps the text short, as s; `None` of none.
fn mean_seconds(sum_us: u64, count: u64) -> Option<f64> {
    sum_us.checked_div(count).map(|us| us as f64 / 1e6)
}

#[cfg(test)]
pub(super) mod tests;
