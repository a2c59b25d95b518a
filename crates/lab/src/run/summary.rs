//! What an experiment has so far, for a terminal or a pipe: a line a server and case, then how the
//! claims stand.

use super::store::{Line, Store};
use crate::experiment::{Case, Claim, Experiment};
use serde::Serialize;
use serde_json::{Value, json};
use sooner_report::columns::aligned;
use sooner_report::number::{NO_VALUE, duration, significant};

/// How a claim stands in a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The case.
    pub case: String,
    /// What is claimed.
    pub text: String,
    /// Value, range and limit in words; none while nothing valid is measured.
    pub value: Option<String>,
    /// Whether it holds; false while nothing valid is measured.
    pub holds: bool,
}

/// How every claim stands in every case it is made for; only valid runs count.
pub fn findings(experiment: &Experiment, store: &Store) -> Vec<Finding> {
    let mut all = Vec::new();
    for case in &experiment.cases {
        let claims = experiment
            .claims
            .iter()
            .filter(|claim| claim.is_for(&case.name));
        all.extend(claims.map(|claim| finding(claim, case, store)));
    }
    all
}

fn finding(claim: &Claim, case: &Case, store: &Store) -> Finding {
    let figure = |peer: &str, seed, pointer: &str| store.figure(case, seed, peer, pointer);
    let standing = claim.judge(&case.setup.seeds, figure);
    let words = |standing: &crate::experiment::Standing| {
        let (low, high) = standing.range;
        let range = match standing.count {
            1 => String::new(),
            count => format!(
                " ({} to {}, {count} runs)",
                significant(low),
                significant(high)
            ),
        };
        format!("{}{range}, {}", significant(standing.value), claim.limit())
    };
    Finding {
        case: case.name.clone(),
        text: claim.text.clone(),
        value: standing.as_ref().map(words),
        holds: standing.is_some_and(|standing| standing.holds),
    }
}

/// The table: a line a server, case and seed.
pub fn table(experiment: &Experiment, store: &Store) -> String {
    let heads = [
        "case",
        "seed",
        "server",
        "mean",
        "/ideal",
        "half",
        "largest 1 %",
        "largest",
        "errors",
        "open",
        "verdict",
    ];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(counted(experiment, store).map(row));
    aligned(&rows)
}

/// The same for programs: the lines that count, as docs/lab.md describes them, and the findings.
pub fn as_json(experiment: &Experiment, store: &Store, findings: &[Finding]) -> Value {
    let runs: Vec<&Line> = counted(experiment, store).collect();
    json!({"experiment": experiment.name, "runs": runs, "findings": findings})
}

/// The runs that count, by case, seed and server.
fn counted<'a>(experiment: &'a Experiment, store: &'a Store) -> impl Iterator<Item = &'a Line> {
    experiment.cases.iter().flat_map(move |case| {
        let seeds = case.setup.seeds.iter();
        let of_seed = move |&seed: &u64| {
            let peers = case.setup.peers.iter();
            peers.filter_map(move |peer| store.best(case, seed, peer))
        };
        seeds.flat_map(of_seed)
    })
}

/// A line a claim and case: PASS, FAIL, or not measured.
pub fn verdicts(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let verdict = match (&finding.value, finding.holds) {
            (None, _) => "----",
            (_, true) => "PASS",
            (_, false) => "FAIL",
        };
        let value = finding.value.as_deref().unwrap_or("not measured");
        format!("{verdict} {}: {}: {value}\n", finding.case, finding.text)
    };
    findings.iter().map(line).collect()
}

fn row(line: &Line) -> [String; 11] {
    let figure = |pointer: &str| line.figure(pointer);
    let time = |pointer: &str| figure(pointer).map_or(NO_VALUE.into(), duration);
    let count = |pointer: &str| figure(pointer).map_or(NO_VALUE.into(), |value| value.to_string());
    let ideal = figure("/all/ideal_srpt_mean_response_ms");
    let over_ideal = figure("/all/mean_response_ms")
        .zip(ideal)
        .map(|(mean, ideal)| mean / ideal);
    let open = figure("/counters/max_open_connections");
    let verdict = line.run["verdict"].as_str().unwrap_or(NO_VALUE);
    let mark = if line.is_of_guest() { ", guest" } else { "" };
    [
        line.case.clone(),
        line.seed.to_string(),
        line.peer.clone(),
        time("/all/mean_response_ms"),
        over_ideal.map_or(NO_VALUE.into(), significant),
        time("/smallest_half/mean_response_ms"),
        time("/largest_1_percent/mean_response_ms"),
        time("/largest/mean_response_ms"),
        count("/all/errors"),
        open.map_or(NO_VALUE.into(), |count| count.to_string()),
        format!("{verdict}{mark}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::example;

    #[test]
    fn what_was_measured_in_a_guest_is_marked() {
        let experiment = example::experiment("peers = [\"nginx\", \"caddy\"]");
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        let case = &experiment.cases[0];
        for (peer, machine) in [
            ("nginx", "Some CPU"),
            ("caddy", "user-mode Linux 6.1, 1 CPU"),
        ] {
            assert_eq!(store.shown_name(case), "a b");
            let mut line = example::line(case, peer, 1);
            line.run = json!({"verdict": "VALID"});
            line.machine = machine.into();
            store.add(line, &[]).unwrap();
        }
        let table = table(&experiment, &store);
        let marked: Vec<bool> = table
            .lines()
            .map(|line| line.ends_with("VALID, guest"))
            .collect();
        assert_eq!(marked, [false, false, true], "{table}");
        assert_eq!(store.shown_name(case), "a b (guest)");
    }

    #[test]
    fn an_invalid_run_proves_nothing() {
        let claim = "peers = [\"nginx\"]\n[[claim]]\ntext = \"no errors\"\nfigure = \"/all/errors\"\npeer = \"nginx\"\nat_most = 0";
        let experiment = example::experiment(claim);
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        for (verdict, holds, words) in [("INVALID", false, "----"), ("VALID", true, "PASS")] {
            let mut line = example::line(&experiment.cases[0], "nginx", 1);
            line.run = json!({"verdict": verdict, "all": {"errors": 0}});
            store.add(line, &[]).unwrap();
            let findings = findings(&experiment, &store);
            assert_eq!(findings[0].holds, holds, "{findings:?}");
            assert!(verdicts(&findings).starts_with(words));
        }
    }
}
