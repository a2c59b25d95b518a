//! The text, whole.

use std::collections::BTreeSet;

use super::*;
use crate::statistics::LeaseUsage;
use sooner_testbed::exposition;

/// With something in every family, and another figure in each.
fn told() -> String {
    let mut measured = Statistics::default();
    let done = LeaseUsage {
        is_transaction: true,
        is_conflict: true,
        is_preempted: true,
        repeats: 2,
        queries: 3,
        is_login: true,
        outside_us: 1000,
        opening_us: 500,
        inside_us: 700,
        busy_us: 600,
        received_bytes: 80,
        sent_bytes: 90,
        ..LeaseUsage::default()
    };
    measured.record("shop", "ann", "high", &done);
    let more = LeaseUsage {
        is_conflict: false,
        is_preempted: false,
        inside_us: 45_000_000,
        ..done
    };
    measured.record("shop", "bob", "", &more);
    let lock_waits = LockWaitCounts {
        late: 10,
        again: 4,
        cancelled: 5,
        rolled_back: 6,
    };
    let snapshot = Snapshot {
        clients: [("idle", 2), ("waiting", 1), ("active", 0)],
        gates: vec![("db:5432".into(), [20, 3, 1, 4, 72, 2, 5])],
        targets: vec![(["db:5432", "high", "p95"].map(String::from), [0.03, 0.027])],
        orders: vec![(["db:5432", "boost"].map(String::from), [0.02, 0.25])],
        waiting: vec![("high".into(), 5), (String::new(), 0)],
        bounded: vec![("high".into(), [2, 7, 3]), (String::new(), [1, 0, 0])],
        would_wait: vec![("high".into(), [9.0, 4.0, 0.5])],
        lock_waits: vec![("high".into(), lock_waits)],
        measured: &measured,
    };
    encode(&snapshot).unwrap()
}

#[test]
fn every_family_is_told_in_its_place_with_seconds_and_bytes() {
    let (text, expected) = (told(), include_str!("told.txt"));
    for (own, expected) in text.lines().zip(expected.lines()) {
        assert_eq!(own, expected);
    }
    assert_eq!(text, expected);
}

#[test]
fn of_what_nothing_is_known_nothing_is_told() {
    let snapshot = Snapshot {
        clients: [("idle", 0), ("waiting", 0), ("active", 0)],
        gates: Vec::new(),
        targets: Vec::new(),
        orders: Vec::new(),
        waiting: Vec::new(),
        bounded: Vec::new(),
        would_wait: Vec::new(),
        lock_waits: Vec::new(),
        measured: &Statistics::default(),
    };
    let text = encode(&snapshot).unwrap();
    let types = text.lines().filter(|line| line.starts_with("# TYPE"));
    assert_eq!(
        types.collect::<Vec<_>>(),
        ["# TYPE sooner_gate_clients gauge"]
    );
}

#[test]
fn every_metric_is_in_the_manual_with_its_type_and_no_other_is() {
    let manual = include_str!("../../../../docs/gate/metrics.md");
    let rows = manual
        .lines()
        .filter_map(|line| line.strip_prefix("| `sooner_gate_"));
    let documented: BTreeSet<String> = rows
        .map(|row| row.split(" | ").take(2).collect::<Vec<_>>().join(" "))
        .collect();
    let text = told();
    let types = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE sooner_gate_")?.split_once(' '));
    let exposed: BTreeSet<String> = types
        .map(|(name, kind)| match kind {
            "counter" => format!("{name}_total` counter"),
            _ => format!("{name}` {kind}"),
        })
        .collect();
    assert_eq!(documented, exposed);
}

#[test]
fn dashboard_and_alerts_ask_for_what_is_told() {
    let told = exposition::told(&told());
    for text in [
        include_str!("../../../../packaging/grafana/gate.json"),
        include_str!("../../../../packaging/prometheus/gate.yml"),
    ] {
        let asked = exposition::asked(text);
        let missing: Vec<_> = asked.difference(&told).collect();
        assert!(
            asked.len() > 4 && missing.is_empty(),
            "not told: {missing:?}"
        );
    }
}
