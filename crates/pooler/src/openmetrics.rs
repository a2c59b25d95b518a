//! A snapshot as OpenMetrics text, which Prometheus reads. Names follow Prometheus: seconds and
//! bytes, `_total` for what only grows.

mod sums;

use crate::lock_waits::LockWaitCounts;
use crate::statistics::{BOUNDS_US, Statistics, Tallies, Tally};
use sooner_operate::metrics::{Families, Labels, Unit, Value};
use std::fmt;
use sums::{By, SUMS};

/// What is told.
pub struct Snapshot<'a> {
    /// Clients by what they do.
    pub clients: [(&'static str, u64); 3],
    /// Servers: how many transactions may be inside, are, and wait, server connections,
    /// how many there may be, those that clients keep and do not use, and transactions that are
    /// open and idle.
    pub gates: Vec<(String, [u64; 7])>,
    /// Targets: server, class, `mean` or a percentile; the target and what was achieved of it
    /// recently, s.
    pub targets: Vec<([String; 3], [f64; 2])>,
    /// Orders: server, name; what the last transactions would have taken under it, mean and 99th
    /// percentile, s.
    pub orders: Vec<([String; 2], [f64; 2])>,
    /// Classes, and how many of their clients wait; those in no class have none.
    pub waiting: Vec<(String, u64)>,
    /// Classes, how many of their transactions are inside, how many ran for longer than they may,
    /// and how many of these were cancelled.
    pub bounded: Vec<(String, [u64; 3])>,
    /// Where nothing is held: how many of each class would have gone in, would have waited, and for
    /// how long in all, s.
    pub would_wait: Vec<(String, [f64; 3])>,
    /// Classes with a `wait_target`, and what came of their waits for locks.
    pub lock_waits: Vec<(String, LockWaitCounts)>,
    /// What was measured.
    pub measured: &'a Statistics,
}

/// The text.
pub fn encode(snapshot: &Snapshot<'_>) -> Result<String, fmt::Error> {
    let mut told = Told::default();
    let clients = snapshot.clients.iter();
    let clients = clients.map(|(doing, count)| one("doing", doing, *count as f64));
    told.gauges("clients", "Clients that are here", None, clients);
    for (at, (name, help)) in GATES.into_iter().enumerate() {
        let gates = snapshot.gates.iter();
        let gates = gates.map(|(server, figures)| one("server", server, figures[at] as f64));
        told.gauges(name, help, None, gates);
    }
    // The quotient of both is above 1 where a class is late.
    for (at, (name, help)) in TARGETS.into_iter().enumerate() {
        let row = |(of, figures): &([String; 3], [f64; 2])| {
            let labels = ["server", "class", "target"].into_iter();
            let labels = labels.zip(of.iter().cloned()).collect();
            (labels, Value::Number(figures[at]))
        };
        let rows = snapshot.targets.iter().map(row);
        told.gauges(name, help, Some(Unit::Seconds), rows);
    }
    for (at, (name, help)) in ORDERS.into_iter().enumerate() {
        let row = |(of, figures): &([String; 2], [f64; 2])| {
            let labels = ["server", "order"].into_iter();
            let labels = labels.zip(of.iter().cloned()).collect();
            (labels, Value::Number(figures[at]))
        };
        let rows = snapshot.orders.iter().map(row);
        told.gauges(name, help, Some(Unit::Seconds), rows);
    }
    let Statistics {
        databases, classes, ..
    } = snapshot.measured;
    told.sums(By::Database, databases);
    told.response_times(By::Database, databases);
    told.response_times(By::Class, classes);
    told.sums(By::Class, classes);
    let waiting = snapshot.waiting.iter();
    let waiting = waiting.map(|(class, count)| one("class", class, *count as f64));
    let help = "Clients of a class that wait for a turn";
    told.gauges("class_waiting_clients", help, None, waiting);
    for (at, (name, help)) in BOUNDED.into_iter().enumerate() {
        let all = snapshot.bounded.iter();
        let rows = all.map(|(class, figures)| one("class", class, figures[at] as f64));
        if at == 0 {
            told.gauges(name, help, None, rows);
        } else {
            told.counters(name, help, None, rows);
        }
    }
    for (at, (name, help, unit)) in WOULD_WAIT.into_iter().enumerate() {
        let all = snapshot.would_wait.iter();
        let rows = all.map(|(class, figures)| one("class", class, figures[at]));
        told.counters(name, help, unit, rows);
    }
    told.lock_waits(&snapshot.lock_waits);
    told.0.encode()
}

const GATES: [(&str, &str); 7] = [
    ("limit_transactions", "Transactions that may be in a server"),
    ("inside_transactions", "Transactions in a server"),
    (
        "waiting_transactions",
        "Transactions that wait for a server",
    ),
    ("server_connections", "Connections to a server"),
    (
        "limit_connections",
        "Connections that there may be to a server",
    ),
    (
        "kept_connections",
        "Connections to a server that clients keep and do not use",
    ),
    (
        "idle_transactions",
        "Transactions in a server that are open and idle",
    ),
];

const BOUNDED: [(&str, &str); 3] = [
    (
        "class_inside_transactions",
        "Transactions of a class in servers",
    ),
    (
        "class_overlong_transactions",
        "Transactions of a class that ran for longer than they may",
    ),
    (
        "class_cancelled_transactions",
        "Those of them that were cancelled",
    ),
];

const WOULD_WAIT: [(&str, &str, Option<Unit>); 3] = [
    (
        "class_rehearsed_transactions",
        "Transactions of a class that would have gone in, where nothing is held",
        None,
    ),
    (
        "class_would_wait_transactions",
        "Those of them that would have waited",
        None,
    ),
    (
        "class_would_wait",
        "How long these would have waited",
        Some(Unit::Seconds),
    ),
];

const TARGETS: [(&str, &str); 2] = [
    ("class_target", "Response time that a class is to have"),
    ("class_achieved", "Response time that it had recently"),
];

const ORDERS: [(&str, &str); 2] = [
    (
        "order_mean",
        "Mean time, waiting included, that the last transactions would have taken in this order",
    ),
    ("order_p99", "99 of 100 of them would have taken no longer"),
];

/// Families that something is known of.
#[derive(Default)]
struct Told(Families);

impl Told {
    fn gauges(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        rows: impl Iterator<Item = Row>,
    ) {
        let mut rows = rows.peekable();
        if rows.peek().is_some() {
            self.0.gauges(&full(name), help, unit, rows);
        }
    }

    fn counters(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        rows: impl Iterator<Item = Row>,
    ) {
        let mut rows = rows.peekable();
        if rows.peek().is_some() {
            self.0.counters(&full(name), help, unit, rows);
        }
    }

    fn sums(&mut self, by: By, tallies: &Tallies) {
        for (name, help, unit, told_by, value) in SUMS {
            if !told_by.contains(&by) {
                continue;
            }
            let is_time = matches!(unit, Some(Unit::Seconds));
            let rows = tallies.iter().map(|(of, tally)| {
                let value = value(&tally.sums) as f64;
                one(by.label(), of, if is_time { value / 1e6 } else { value })
            });
            self.counters(&by.named(name), help, unit, rows);
        }
    }

    fn response_times(&mut self, by: By, tallies: &Tallies) {
        let mut rows = tallies
            .iter()
            .map(|(of, tally)| (vec![(by.label(), of.to_owned())], histogram(tally)))
            .peekable();
        if rows.peek().is_some() {
            let help = "From when a transaction came until it was over, its waiting included";
            let name = full(&by.named("response_time"));
            self.0.histograms(&name, help, rows);
        }
    }

    fn lock_waits(&mut self, classes: &[(String, LockWaitCounts)]) {
        let late = classes.iter();
        let late = late.map(|(class, counts)| one("class", class, counts.late as f64));
        let help = "Transactions of a class that waited for a lock beyond wait_target";
        self.counters("lock_waits_late", help, None, late);
        let taken = classes.iter().flat_map(|(class, counts)| {
            counts.by_way().map(|(way, count)| {
                let labels = vec![("class", class.clone()), ("way", way.to_owned())];
                (labels, Value::Number(count as f64))
            })
        });
        let help = "Transactions that were to make room for one of this class; \
                    with preempt = \"track\" those that would have been";
        self.counters("lock_waits_taken", help, None, taken);
    }
}

/// Labels, and what has them.
type Row = (Labels, Value);

fn full(name: &str) -> String {
    format!("sooner_gate_{name}")
}

/// A row with one label.
fn one(label: &'static str, of: &str, figure: f64) -> Row {
    (vec![(label, of.to_owned())], Value::Number(figure))
}

fn histogram(tally: &Tally) -> Value {
    let sums = &tally.sums;
    let mut before = 0;
    let mut classes: Vec<(f64, u64)> = Vec::new();
    for (bound_us, at_most) in BOUNDS_US.into_iter().zip(tally.total_at_most) {
        classes.push((bound_us as f64 / 1e6, at_most - before));
        before = at_most;
    }
    classes.push((f64::INFINITY, sums.transactions - before));
    Value::Histogram(tally.total_us as f64 / 1e6, sums.transactions, classes)
}

#[cfg(test)]
mod tests;
