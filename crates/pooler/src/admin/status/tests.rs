//! The status as JSON, and one with something in every place for other tests.

use super::super::history::tests::history;
use super::*;
use crate::client::handle::ClassCount;
use crate::statistics::{LeaseUsage, Statistics};
use serde_json::Value;

/// With something in every place; the first class has this name.
pub fn status(class: &str) -> Status {
    let mut status = Status {
        schema: 1,
        uptime_seconds: 90.0,
        version: "1",
        held_up: vec!["db:5432: 7 waiting".into()],
        servers: vec![ServerStatus {
            address: "db:5432".into(),
            limit_transactions: 4,
            observed_limit_transactions: None,
            inside_transactions: 3,
            waiting_transactions: 7,
            connections: 5,
            limit_connections: 72,
            idle_connections: 2,
            kept_connections: 1,
            idle_transactions: 1,
        }],
        classes: vec![
            ClassStatus {
                name: class.into(),
                priority: Some(1),
                waiting_clients: 6,
                inside_transactions: 2,
                limit_transactions: Some(3),
                transactions_per_second: Some(12.5),
                mean_outside_seconds: Some(0.02),
                would_wait: Some(WouldWaitStatus {
                    transactions_total: 90,
                    would_wait_total: 30,
                    mean_would_wait_seconds: Some(0.05),
                    max_would_wait_seconds: 2.0,
                    would_wait_transactions: 4,
                }),
                ..ClassStatus::default()
            },
            ClassStatus::default(),
        ],
        targets: vec![TargetStatus {
            server: "db:5432".into(),
            class: class.into(),
            target: "p95".into(),
            target_seconds: 0.2,
            achieved_seconds: Some(0.31),
            is_late: true,
        }],
        per_second: PerSecond::new(&history()),
        ..Status::default()
    };
    status.headline = status.headline_now();
    status
}

#[test]
fn every_field_is_in_the_manual() {
    let manual = include_str!("../../../../../docs/json.md");
    let head = "\n## `status.json` of `sooner gate`\n";
    let (_, rest) = manual.split_once(head).unwrap();
    let section = rest.split("\n## ").next().unwrap();
    let mut fields = Vec::new();
    let status = serde_json::to_value(status("checkout")).unwrap();
    collect("", &status, &mut fields);
    assert!(fields.len() > 50, "{fields:?}");
    for (list, field) in fields {
        let mut rows = section.lines();
        let is_there = |row: &str| match list.as_str() {
            "" => row.starts_with("| `") && row.contains(&format!("`{field}`")),
            list => row.starts_with(&format!("| `{list}.")) && row.contains(&format!(".{field}`")),
        };
        assert!(rows.any(is_there), "{list}.{field}");
    }
}

/// All fields, each with the list or object that it is in, as the manual writes that.
fn collect(at: &str, value: &Value, fields: &mut Vec<(String, String)>) {
    let Value::Object(object) = value else {
        return;
    };
    for (name, value) in object {
        let inner = if at.is_empty() {
            name.clone()
        } else {
            format!("{at}.{name}")
        };
        match value {
            Value::Object(_) => collect(&inner, value, fields),
            Value::Array(rows) if rows.iter().any(Value::is_object) => {
                collect(&format!("{inner}[]"), &rows[0], fields);
            }
            _ => fields.push((at.to_owned(), name.clone())),
        }
    }
}

#[test]
fn means_are_of_the_last_minute_and_shares_of_what_was_measured() {
    let mut measured = Statistics::default();
    let usage = LeaseUsage {
        is_transaction: true,
        outside_us: 3_000,
        inside_us: 7_000,
        ..LeaseUsage::default()
    };
    measured.record("shop", "ann", "checkout", &usage);
    let history = history();
    let reading = ClassReading {
        name: "checkout".into(),
        present: ClassCount {
            clients: 9,
            waiting: 4,
            active: 2,
        },
        tally: measured.classes.get("checkout"),
        overlong: 5,
        cancelled: 3,
        ..reading_of_none()
    };
    let class = ClassStatus::new(reading, history.class("checkout"));
    assert_eq!((class.clients, class.waiting_clients), (9, 4));
    assert_eq!(
        (class.inside_transactions, class.transactions_total),
        (2, 1)
    );
    assert_eq!((class.overlong_total, class.cancelled_total), (5, 3));
    // The history says otherwise than the one transaction, so that both are told apart.
    assert_eq!(class.mean_response_seconds, Some(0.000_01));
    assert_eq!(class.transactions_per_second, Some(1.0));
    let p95 = class.p95_response_seconds.unwrap();
    assert!((0.009_9..=0.010_1).contains(&p95), "{p95}");
    let stranger = ClassStatus::new(reading_of_none(), None);
    assert_eq!(stranger.mean_response_seconds, None);
    assert_eq!(stranger.p95_inside_seconds, None);
}

fn reading_of_none() -> ClassReading<'static> {
    ClassReading {
        name: String::new(),
        priority: None,
        inside_max: None,
        longest: None,
        present: ClassCount::default(),
        tally: None,
        overlong: 0,
        cancelled: 0,
        would_wait: None,
    }
}

#[test]
fn the_headline_says_what_matters_most() {
    let mut status = status("checkout");
    let mut says = Vec::new();
    says.push(status.headline_now());
    let mut other = status.targets[0].clone();
    other.class = "search".into();
    status.targets.push(other);
    says.push(status.headline_now());
    status.targets.clear();
    for waiting in [2, 1, 0] {
        status.servers[0].waiting_transactions = waiting;
        says.push(status.headline_now());
    }
    status.is_observing = true;
    says.push(status.headline_now());
    status.is_paused = true;
    says.push(status.headline_now());
    status.is_stopping = true;
    says.push(status.headline_now());
    assert_eq!(
        says,
        [
            "Class checkout is late",
            "2 classes are late",
            "2 transactions wait",
            "1 transaction waits",
            "No transaction waits",
            "Only observed: nothing is held back",
            "Every database is paused",
            "The gate is about to end",
        ]
    );
}
