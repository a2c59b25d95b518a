//! A snapshot as OpenMetrics text, which Prometheus reads. Names follow Prometheus: seconds and
//! bytes, `_total` for what only grows.

use crate::lock_waits::LockWaitCounts;
use crate::statistics::{BOUNDS_US, Statistics, Sums, Tallies, Tally};
use sooner_operate::metrics::{Families, Labels, Unit, Value};
use std::fmt;

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
    /// Classes, and how many of their clients wait; those in no class have none.
    pub waiting: Vec<(String, u64)>,
    /// Classes with a `wait_target`, and what came of their waits for locks.
    pub lock_waits: Vec<(String, LockWaitCounts)>,
    /// What was measured.
    pub measured: &'a Statistics,
}

/// The text.
pub fn encode(snapshot: &Snapshot<'_>) -> Result<String, fmt::Error> {
    let mut to = Families::default();
    for family in families(snapshot) {
        let name = format!("sooner_gate_{}", family.name);
        let Family {
            help, unit, rows, ..
        } = family;
        match family.kind {
            // A family of which nothing is known is left out.
            _ if rows.is_empty() => {}
            Kind::Counter => to.counters(&name, help, unit, rows),
            Kind::Gauge => to.gauges(&name, help, unit, rows),
            Kind::Histogram => to.histograms(&name, help, rows),
        }
    }
    to.encode()
}

enum Kind {
    Counter,
    Gauge,
    Histogram,
}

struct Family {
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    kind: Kind,
    rows: Vec<(Labels, Value)>,
}

fn families(snapshot: &Snapshot<'_>) -> Vec<Family> {
    let clients = snapshot.clients.iter();
    let clients = clients.map(|(doing, count)| {
        (
            vec![("doing", (*doing).to_owned())],
            Value::Number(*count as f64),
        )
    });
    let mut all = vec![Family {
        name: "clients",
        help: "Clients that are here",
        unit: None,
        kind: Kind::Gauge,
        rows: clients.collect(),
    }];
    for (at, (name, help)) in GATES.into_iter().enumerate() {
        let row = |(server, figures): &(String, [u64; 7])| {
            let labels = vec![("server", server.clone())];
            (labels, Value::Number(figures[at] as f64))
        };
        all.push(Family {
            name,
            help,
            unit: None,
            kind: Kind::Gauge,
            rows: snapshot.gates.iter().map(row).collect(),
        });
    }
    all.extend(targets(&snapshot.targets));
    let measured = snapshot.measured;
    all.extend(sums(SUMS, "database", &measured.databases));
    all.push(response_times(
        "response_time",
        "database",
        &measured.databases,
    ));
    all.push(response_times(
        "class_response_time",
        "class",
        &measured.classes,
    ));
    all.extend(sums(CLASS_SUMS, "class", &measured.classes));
    all.push(waiting(&snapshot.waiting));
    all.extend(lock_waits(&snapshot.lock_waits));
    all
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

/// A family by database or class: name, help, unit, and where its values are.
type OfSums = (&'static str, &'static str, Option<Unit>, fn(&Sums) -> f64);

const CONFLICTS: &str =
    "Transactions that failed in the way of others (SQLSTATE class 40), among those that ended";

const OUTSIDE: &str = "Waiting for a turn";

const LOGINS: &str = "Transactions that had to log in to a server first, among those that went in";

const OPENING: &str = "Waiting for a server connection, once let in";

const SUMS: [OfSums; 9] = [
    ("transactions", "Transactions that ended", None, |sums| {
        sums.transactions as f64
    }),
    ("conflicts", CONFLICTS, None, |sums| sums.conflicts as f64),
    ("queries", "Commands that were answered", None, |sums| {
        sums.queries as f64
    }),
    ("received", "From clients", Some(Unit::Bytes), |sums| {
        sums.received_bytes as f64
    }),
    ("sent", "To clients", Some(Unit::Bytes), |sums| {
        sums.sent_bytes as f64
    }),
    ("outside", OUTSIDE, Some(Unit::Seconds), |sums| {
        sums.outside_us as f64 / 1e6
    }),
    ("logins", LOGINS, None, |sums| sums.logins as f64),
    ("opening", OPENING, Some(Unit::Seconds), |sums| {
        sums.opening_us as f64 / 1e6
    }),
    (
        "busy",
        "In which servers had something to do",
        Some(Unit::Seconds),
        |sums| sums.busy_us as f64 / 1e6,
    ),
];

const CLASS_SUMS: [OfSums; 8] = [
    ("class_conflicts", CONFLICTS, None, |sums| {
        sums.conflicts as f64
    }),
    ("class_outside", OUTSIDE, Some(Unit::Seconds), |sums| {
        sums.outside_us as f64 / 1e6
    }),
    ("class_logins", LOGINS, None, |sums| sums.logins as f64),
    ("class_opening", OPENING, Some(Unit::Seconds), |sums| {
        sums.opening_us as f64 / 1e6
    }),
    (
        "class_inside",
        "With a server connection",
        Some(Unit::Seconds),
        |sums| sums.inside_us as f64 / 1e6,
    ),
    (
        "class_preempted",
        "Transactions rolled back because one that matters more waited for their locks",
        None,
        |sums| sums.preempted as f64,
    ),
    (
        "class_preempted_inside",
        "With a server connection, of transactions that were rolled back so",
        Some(Unit::Seconds),
        |sums| sums.preempted_us as f64 / 1e6,
    ),
    (
        "class_repeats",
        "Statements sent again behind a transaction that matters more",
        None,
        |sums| sums.repeats as f64,
    ),
];

fn sums<const N: usize>(of: [OfSums; N], label: &'static str, tallies: &Tallies) -> [Family; N] {
    of.map(|(name, help, unit, value)| Family {
        name,
        help,
        unit,
        kind: Kind::Counter,
        rows: rows(label, tallies, |tally| Value::Number(value(&tally.sums))),
    })
}

fn lock_waits(classes: &[(String, LockWaitCounts)]) -> [Family; 2] {
    let late = |(class, counts): &(String, LockWaitCounts)| {
        let labels = vec![("class", class.clone())];
        (labels, Value::Number(counts.late as f64))
    };
    let taken = |(class, counts): &(String, LockWaitCounts)| {
        let class = class.clone();
        counts.by_way().map(|(way, count)| {
            let labels = vec![("class", class.clone()), ("way", way.to_owned())];
            (labels, Value::Number(count as f64))
        })
    };
    [
        Family {
            name: "lock_waits_late",
            help: "Transactions of a class that waited for a lock beyond wait_target",
            unit: None,
            kind: Kind::Counter,
            rows: classes.iter().map(late).collect(),
        },
        Family {
            name: "lock_waits_taken",
            help: "Transactions that were to make room for one of this class; with preempt = \"track\" those that would have been",
            unit: None,
            kind: Kind::Counter,
            rows: classes.iter().flat_map(taken).collect(),
        },
    ]
}

fn waiting(classes: &[(String, u64)]) -> Family {
    let row = |(class, count): &(String, u64)| {
        let labels = vec![("class", class.clone())];
        (labels, Value::Number(*count as f64))
    };
    Family {
        name: "class_waiting_clients",
        help: "Clients of a class that wait for a turn",
        unit: None,
        kind: Kind::Gauge,
        rows: classes.iter().map(row).collect(),
    }
}

/// The target and what was achieved: their quotient is above 1 where a class is late.
fn targets(rows: &[([String; 3], [f64; 2])]) -> [Family; 2] {
    let family = |name, help, at: usize| Family {
        name,
        help,
        unit: Some(Unit::Seconds),
        kind: Kind::Gauge,
        rows: rows
            .iter()
            .map(|(of, figures)| {
                let labels = ["server", "class", "target"].into_iter();
                let labels = labels.zip(of.iter().cloned()).collect();
                (labels, Value::Number(figures[at]))
            })
            .collect(),
    };
    [
        family("class_target", "Response time that a class is to have", 0),
        family("class_achieved", "Response time that it had recently", 1),
    ]
}

fn rows(
    label: &'static str,
    tallies: &Tallies,
    value: impl Fn(&Tally) -> Value,
) -> Vec<(Labels, Value)> {
    let row = |(of, tally): (&str, &Tally)| (vec![(label, of.to_owned())], value(tally));
    tallies.iter().map(row).collect()
}

fn response_times(name: &'static str, label: &'static str, tallies: &Tallies) -> Family {
    Family {
        name,
        help: "From when a transaction came until it was over, its waiting included",
        unit: Some(Unit::Seconds),
        kind: Kind::Histogram,
        rows: rows(label, tallies, histogram),
    }
}

fn histogram(tally: &Tally) -> Value {
    let sums = &tally.sums;
    let mut before = 0;
    let mut classes: Vec<(f64, u64)> = Vec::new();
    for (bound_us, at_most) in BOUNDS_US.into_iter().zip(tally.total_at_most) {
        classes.push((bound_us as f64 / 1e6, at_most - before));
        before = at_most;
    }
    classes.push((f64::MAX, sums.transactions - before));
    Value::Histogram(tally.total_us as f64 / 1e6, sums.transactions, classes)
}

#[cfg(test)]
mod tests;
