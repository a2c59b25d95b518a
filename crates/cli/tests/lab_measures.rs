//! One experiment of each kind of measurement, so short that it shows only that everything works. A
//! kind is skipped by name where its programs are missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use sooner_testbed::skip;

/// What a run says that cannot be made here.
const MISSING: [&str; 6] = [
    "refuses the BPF programs",
    "need root",
    "is not installed",
    "there is no PostgreSQL here",
    "no user `postgres`",
    "needs root",
];

fn experiments() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
}

fn lab(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.arg("lab").args(words).stdin(Stdio::null());
    command.arg("--experiments").arg(experiments());
    command.output().unwrap()
}

/// Measures parts of an experiment; every row of them has these fields, and every figure among them
/// is a number.
fn measure(test: &str, name: &str, parts: &[&str], fields: &[&str]) {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().display().to_string();
    let mut words = vec!["run", name, "--quick", "--out", &folder];
    words.extend(parts.iter().flat_map(|part| ["--case", part]));
    let output = lab(&words);
    let message = String::from_utf8_lossy(&output.stderr);
    let last = message.lines().last().unwrap_or_default();
    if let Some(reason) = MISSING.iter().find(|reason| last.contains(**reason)) {
        skip(test, &format!("{reason}: {last}"));
        return;
    }
    assert!(output.status.success(), "{message}");
    for part in parts {
        let path = out.path().join(name).join(format!("{part}.jsonl"));
        let text = fs::read_to_string(path).unwrap();
        let rows: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(rows.len() > 1 && rows[0].get("machine").is_some(), "{text}");
        for field in fields {
            let has_it = |row: &Value| row.pointer(field).is_some_and(|value| !value.is_null());
            assert!(
                rows[1..].iter().any(has_it),
                "{part} has no {field}: {text}"
            );
        }
    }
}

#[test]
fn a_request_costs_processor_time() {
    let test = "a_request_costs_processor_time";
    measure(test, "cpu", &["cpu"], &["/us_per_request", "/cores"]);
}

#[test]
fn an_idle_connection_costs_memory() {
    let test = "an_idle_connection_costs_memory";
    let fields = ["/us_per_request", "/kib_per_connection"];
    measure(test, "tls-cpu", &["tls-cpu"], &fields);
}

#[test]
fn generators_are_held_against_each_other() {
    let test = "generators_are_held_against_each_other";
    let parts = ["beside-wrk", "beside-h2load"];
    measure(test, "generator", &parts, &["/per_sec", "/mean_ms"]);
    measure(test, "generator", &["cpu"], &["/us_per_request"]);
}

#[test]
fn a_script_fetches() {
    measure("a_script_fetches", "streams", &["streams"], &["/ms/19"]);
}

#[test]
fn others_are_measured_beside_hostile_clients() {
    let test = "others_are_measured_beside_hostile_clients";
    let fields = [
        "/alone/all/mean_response_ms",
        "/with/all",
        "/memory_kept_kib",
    ];
    measure(test, "hostile-clients", &["others"], &fields);
}

#[test]
fn a_queueing_discipline_costs_processor_time() {
    let test = "a_queueing_discipline_costs_processor_time";
    let fields = ["/cpu_seconds_per_gigabit", "/gigabits_per_sec"];
    measure(test, "classifier", &["attach-cpu"], &fields);
}

#[test]
fn a_trace_is_replayed_over_http2() {
    let test = "a_trace_is_replayed_over_http2";
    measure(test, "tls", &["loads"], &["/run/all/mean_response_ms"]);
}

#[test]
fn statements_pass_a_gate() {
    let test = "statements_pass_a_gate";
    let fields = ["/gate_cpu_us", "/latency_us"];
    measure(test, "gate-overhead", &["gate-overhead"], &fields);
}

#[test]
fn users_come_by_turns() {
    let fields = ["/logins", "/fewest", "/latency_ms"];
    measure(
        "users_come_by_turns",
        "gate-users",
        &["gate-users"],
        &fields,
    );
}

#[test]
fn a_gate_has_memory() {
    let fields = ["/growth_mib", "/client_bytes", "/latency_us"];
    measure("a_gate_has_memory", "gate", &["gate-memory"], &fields);
}

#[test]
fn transactions_come_whatever_becomes_of_others() {
    let test = "transactions_come_whatever_becomes_of_others";
    let fields = ["/report/all/mean_response_ms", "/most_per_sec"];
    measure(test, "gate-open", &["tpcc-10"], &fields);
}

#[test]
fn a_limit_is_looked_for() {
    let fields = ["/transactions_per_sec/0", "/low_ms/0", "/report/classes/1"];
    measure(
        "a_limit_is_looked_for",
        "gate-priorities",
        &["tpcc-1"],
        &fields,
    );
}

#[test]
fn targets_are_set() {
    let fields = ["/targets_ms/2", "/report/all/response_c2"];
    measure("targets_are_set", "gate-targets", &["tpcc-10"], &fields);
}

#[test]
fn proxies_hold_requests() {
    let fields = ["/runs/0/all/mean_response_ms", "/runs/1/all"];
    measure("proxies_hold_requests", "proxied", &["proxied"], &fields);
}

#[test]
fn the_demo_is_repeated() {
    measure(
        "the_demo_is_repeated",
        "demo",
        &["demo"],
        &["/fair/all", "/srpt/all"],
    );
}

#[test]
fn a_turn_costs_time() {
    measure("a_turn_costs_time", "ranks", &["ranks"], &["/turn_ns"]);
}

#[test]
fn a_packet_costs_time() {
    measure(
        "a_packet_costs_time",
        "classifier",
        &["classifier"],
        &["/packet_ns", "/egress_verified_instructions"],
    );
}

#[test]
fn a_large_log_is_read() {
    let fields = ["/seconds", "/count_lines_seconds"];
    measure("a_large_log_is_read", "advise", &["advise"], &fields);
}

#[test]
fn a_subcommand_reports() {
    measure(
        "a_subcommand_reports",
        "principles",
        &["figures"],
        &["/report"],
    );
}

#[test]
fn kept_runs_are_reported_and_not_measured_again() {
    let output = lab(&["report", "cpu", "beside-nginx"]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for words in [
        "# cpu, cpu, 2026-11-22-2core-intel-xeon",
        "| 1k | sooner serve | 5.7 (5.5-5.8) | 150091 (128198-178983) | 0.82 (0.75-0.99) |",
        "- PASS cores for ordering 1 Gbit/s: 0.110, at most 0.250",
        "| 0.5 | nginx | 21.7 (20.5-22.8) | 1.65 (1.48-1.72) |",
    ] {
        assert!(printed.contains(words), "{words} is not in {printed}");
    }
    let output = lab(&["run", "beside-nginx", "--quick"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains("is measured by `sooner lab run loads"),
        "{message}"
    );
}
