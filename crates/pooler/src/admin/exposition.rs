//! What `/metrics` says of a gate.

use crate::lock_waits::LockWaitCounts;
use crate::openmetrics::{Snapshot, encode};
use crate::pool::idle_holders::idle_holders;
use crate::pool::upstream::Upstream;
use crate::pooler::Pooler;
use crate::readings::{self, ClassReading, ServerReading, TargetReading};
use sooner_admission::{OrderFigures, WouldWait};
use std::fmt;
use std::rc::Rc;

/// The text.
pub fn exposition(pooler: &Pooler) -> Result<String, fmt::Error> {
    let upstreams = pooler.upstreams();
    let clients = readings::clients(pooler);
    let measured = pooler.statistics.borrow();
    let classes = readings::classes(pooler, &measured);
    let waiting = |class: &ClassReading<'_>| (class.name.clone(), class.present.waiting as u64);
    let bounded = |class: &ClassReading<'_>| {
        let figures = [class.present.active as u64, class.overlong, class.cancelled];
        (class.name.clone(), figures)
    };
    encode(&Snapshot {
        clients: [
            ("idle", clients.idle as u64),
            ("waiting", clients.waiting as u64),
            ("active", clients.active as u64),
        ],
        gates: gates(pooler, &upstreams),
        targets: targets(pooler),
        orders: orders(&upstreams),
        waiting: classes.iter().map(waiting).collect(),
        bounded: classes.iter().map(bounded).collect(),
        would_wait: would_wait(&classes),
        lock_waits: lock_waits(pooler),
        measured: &measured,
    })
}

fn gates(pooler: &Pooler, upstreams: &[Rc<Upstream>]) -> Vec<(String, [u64; 7])> {
    let configuration = pooler.configuration();
    let row = |upstream: &Rc<Upstream>| {
        let server = ServerReading::of(upstream, &configuration.config.limits);
        let held = idle_holders(pooler, upstream);
        let figures = [
            server.limit,
            server.inside,
            server.waiting,
            server.connections,
            server.limit_connections,
            held.connections,
            held.transactions,
        ];
        (server.address, figures.map(|figure| figure as u64))
    };
    upstreams.iter().map(row).collect()
}

/// Nothing is told of a class before it has done something.
fn targets(pooler: &Pooler) -> Vec<([String; 3], [f64; 2])> {
    let row = |target: TargetReading| {
        let times = [target.target_ns, target.achieved_ns?];
        let of = [target.server, target.class, target.target];
        Some((of, times.map(|ns| ns as f64 / 1e9)))
    };
    readings::targets(pooler)
        .into_iter()
        .filter_map(row)
        .collect()
}

fn would_wait(classes: &[ClassReading<'_>]) -> Vec<(String, [f64; 3])> {
    let figures = |would: WouldWait| {
        let seconds = would.wait_sum_ns as f64 / 1e9;
        [would.jobs as f64, would.waited as f64, seconds]
    };
    let row = |class: &ClassReading<'_>| Some((class.name.clone(), figures(class.would_wait?)));
    classes.iter().filter_map(row).collect()
}

/// What each order would give the transactions of each server.
fn orders(upstreams: &[Rc<Upstream>]) -> Vec<([String; 2], [f64; 2])> {
    let of_server = |upstream: &Rc<Upstream>| {
        let played = upstream.limiter.played().unwrap_or_default();
        let server = upstream.address.to_string();
        let row = move |one: OrderFigures| {
            let figures = [one.mean_ns, one.p99_ns].map(|ns| ns as f64 / 1e9);
            ([server.clone(), one.name().to_owned()], figures)
        };
        played.figures.into_iter().map(row)
    };
    upstreams.iter().flat_map(of_server).collect()
}

/// Classes with a `wait_target`.
fn lock_waits(pooler: &Pooler) -> Vec<(String, LockWaitCounts)> {
    let configuration = pooler.configuration();
    let classes = configuration.config.class.iter();
    let watched = classes.filter(|class| class.wait_target.is_some());
    let names = watched.map(|class| class.name.get_ref().clone());
    let with_counts = names.map(|name| {
        let counts = pooler.lock_waits.counts_of(&name);
        (name, counts)
    });
    with_counts.collect()
}
