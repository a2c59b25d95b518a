//! From kept runs to the page of an experiment.

use super::{about, flatten, judge, place};
use crate::experiment::{Case, Experiment, Model};
use crate::run::store::{Line, Store, as_json};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use sooner_report::experiment as report;
use sooner_stats::Run;

/// What a run has only for plots, without any.
const NO_DETAIL: [&str; 3] = ["by_size", "ccdf", "per_second"];

/// What the mark at the names of cases means.
const GUEST: &str = "(guest): measured in user-mode Linux, a kernel that is a program of the machine; it has one processor, and a system call takes some 16 us there";

/// The page, from the best run of every case, seed and peer.
pub fn page(experiment: &Experiment, store: &Store) -> Result<report::Page> {
    let mut lines: Vec<&Line> = Vec::new();
    let mut remarks: Vec<String> = Vec::new();
    let mut cases = Vec::new();
    for case in &experiment.cases {
        let best = best(case, store);
        // Endless downloads have no response times to show; their goodput stands among the claims.
        if case.setup.model != Model::Saturated {
            cases.push(assemble(case, &best, store, &mut remarks)?);
        }
        lines.extend(best.iter().map(|(_, line)| *line));
    }
    remarks.extend(lines.iter().flat_map(|line| line.remarks.iter().cloned()));
    if lines.iter().any(|line| line.is_of_guest()) {
        remarks.push(GUEST.into());
    }
    Ok(report::Page {
        name: experiment.name.clone(),
        question: experiment.question.clone(),
        published: experiment.published.clone(),
        rows: experiment.rows.clone(),
        baseline: experiment.baseline.clone(),
        claims: judge::claims(experiment, Some(store)),
        cases,
        figures: experiment.plots.clone(),
        range_title: place::title(experiment),
        configurations: about::configurations(&lines),
        about: about::rows(experiment, store, &lines, remarks),
    })
}

/// The run that counts of every peer and seed that was measured.
fn best<'a>(case: &'a Case, store: &'a Store) -> Vec<(&'a str, &'a Line)> {
    let peers = case.setup.peers.iter();
    let of_peer = |peer: &'a String| {
        let seeds = case.setup.seeds.iter();
        let lines = seeds.filter_map(move |seed| store.best(case, *seed, peer));
        lines.map(move |line| (peer.as_str(), line))
    };
    peers.flat_map(of_peer).collect()
}

fn assemble(
    case: &Case,
    best: &[(&str, &Line)],
    store: &Store,
    remarks: &mut Vec<String>,
) -> Result<report::Case> {
    let mut peers = Vec::new();
    for name in &case.setup.peers {
        let mut runs = Vec::new();
        for (_, line) in best.iter().filter(|(peer, _)| peer == name) {
            runs.push(repetition(line, store, remarks)?);
        }
        peers.push(report::Peer {
            name: name.clone(),
            runs,
        });
    }
    let seeds: Vec<String> = case.setup.seeds.iter().map(u64::to_string).collect();
    let mut setup = flatten::definitions(&as_json(&case.setup));
    setup.push(("peers".into(), case.setup.peers.join(", ")));
    setup.push(("seeds".into(), seeds.join(", ")));
    Ok(report::Case {
        name: store.shown_name(case),
        published: case.published.clone(),
        published_gain: case.published_gain,
        at: case.at,
        peers,
        setup,
    })
}

fn repetition(line: &Line, store: &Store, remarks: &mut Vec<String>) -> Result<report::Repetition> {
    let (case, seed, peer) = (&line.case, line.seed, &line.peer);
    let detail = match store.detail(line) {
        Ok(detail) if is_of(&detail, line) => detail,
        Ok(_) => {
            remarks.push(format!("{case}, seed {seed}, {peer}: what plots need is of another attempt and is not drawn"));
            Value::Null
        }
        Err(error) => {
            remarks.push(format!(
                "{case}, seed {seed}, {peer}: what plots need cannot be read: {error}"
            ));
            Value::Null
        }
    };
    let mut host = flatten::leaves(&line.counters);
    host.extend(flatten::leaves(&json!({"paths": line.paths})));
    Ok(report::Repetition {
        run: run(line, &detail).with_context(|| {
            format!(
                "{}: the run of case {case}, seed {seed}, {peer} is not one",
                store.folder_of(line).display()
            )
        })?,
        patience: report::Patience {
            all: impatience(&line.run["all"]),
            largest_1_percent: impatience(&line.run["largest_1_percent"]),
            largest: impatience(&line.run["largest"]),
        },
        clients: clients(&line.run),
        host,
        connections: connections(&detail["counters"]),
    })
}

/// Whether the detail belongs to this run, and not to a later attempt: both know the longest
/// response.
fn is_of(detail: &Value, line: &Line) -> bool {
    let points = detail["ccdf"].as_array();
    let longest = points
        .and_then(|points| points.last())
        .map(|last| &last["response_ms"]);
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    match (
        longest.and_then(Value::as_f64),
        line.run["all"]["max_response_ms"].as_f64(),
    ) {
        (Some(of_detail), Some(of_line)) => close(of_detail, of_line),
        (None, None) => true,
        _ => false,
    }
}

/// The run as `--json` printed it, under the peer's name.
fn run(line: &Line, detail: &Value) -> serde_json::Result<Run> {
    let mut run = line.run.clone();
    if let Some(fields) = run.as_object_mut() {
        fields.insert("policy".into(), line.peer.clone().into());
        for name in NO_DETAIL {
            let kept = detail.get(name).cloned();
            fields.insert(name.into(), kept.unwrap_or_else(|| json!([])));
        }
    }
    serde_json::from_value(run)
}

fn impatience(group: &Value) -> report::Impatience {
    report::Impatience {
        aborts: group["aborts"].as_u64(),
        given_up: group["given_up"].as_u64(),
    }
}

/// Open connections over time, from the rows of counters.
fn connections(rows: &Value) -> Vec<(f64, f64)> {
    let rows = rows.as_array().into_iter().flatten();
    rows.filter_map(|row| {
        Some((
            row["time_s"].as_f64()?,
            row["connections"]["open"].as_f64()?,
        ))
    })
    .collect()
}

/// What each client host saw, where a run had several.
fn clients(run: &Value) -> Vec<report::Client> {
    let clients = run["by_client"].as_array().into_iter().flatten();
    clients
        .filter_map(|client| {
            Some(report::Client {
                address: client["address"].as_str()?.to_owned(),
                mean_response_ms: client["all"]["mean_response_ms"].as_f64(),
                mean_slowdown: client["all"]["mean_slowdown"].as_f64(),
            })
        })
        .collect()
}
