//! What is kept under experiments/ shows what it showed when it was measured: the tables are
//! computed again from the kept rows and held against the tables that were written then.

use sooner_lab::measure::{self, Rows};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Claims that a later experiment.toml makes, or that were held against figures that were not kept.
const LATER: [&str; 3] = [
    "HTML complete / nginx's",
    "solve ",
    "first come first served with as many inside",
];
/// Of 2026-11-24 the rows do not say that 2 transactions were inside.
const INSIDE: &str = "C2 of all response times: 2.313 (2.306-2.464) without a gate, 0.022";

#[test]
fn kept_runs_show_what_they_showed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let experiments = measure::all(&folder).unwrap_or_else(|error| panic!("{error}"));
    let mut compared = 0;
    let mut wrong = Vec::new();
    for experiment in &experiments {
        let Ok(runs) = fs::read_dir(experiment.folder.join("runs")) else {
            continue;
        };
        for run in runs.flatten() {
            for part in &experiment.parts {
                let file = |end: &str| run.path().join(format!("{}.{end}", part.name));
                let (Ok(rows), Ok(written)) =
                    (Rows::read(&file("jsonl")), fs::read_to_string(file("md")))
                else {
                    continue;
                };
                let place = format!("{}/{}", experiment.name, part.name);
                let shown = part
                    .shown(&rows)
                    .unwrap_or_else(|error| panic!("{place}: {error}"));
                let shown = shown.markdown();
                let (tables, claims) = apart(&shown);
                let (written_tables, written_claims) = apart(&written);
                for (now, then) in tables.iter().zip(&written_tables) {
                    if now != then && !now.starts_with(INSIDE) {
                        wrong.push(format!("{place}:\n  {now}\n  {then}"));
                    }
                }
                if tables.len() != written_tables.len() {
                    wrong.push(format!(
                        "{place}: {} rows, then {}",
                        tables.len(),
                        written_tables.len()
                    ));
                }
                let differ = claims.symmetric_difference(&written_claims);
                // Its claims were held by a program that is no more.
                let differ = differ.filter(|_| experiment.name != "beside-nginx");
                let differ = differ.filter(|line| !LATER.iter().any(|words| line.contains(words)));
                wrong.extend(differ.map(|line| format!("{place}: {line}")));
                compared += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= 20, "{compared}");
}

/// The lines of tables, and the claims in any order.
fn apart(text: &str) -> (Vec<&str>, BTreeSet<&str>) {
    let is_claim = |line: &&str| line.starts_with("- ");
    let lines = text.lines().filter(|line| !line.is_empty());
    let tables = lines.clone().filter(|line| !is_claim(line)).collect();
    (tables, lines.filter(is_claim).collect())
}
