//! How an experiment was measured: who was configured how, on which machine, with which commit, and
//! the command that repeats it.

use crate::experiment::Experiment;
use crate::run::store::{Line, Store};
use sooner_report::number::significant;

/// Every configuration once, with who had it and where.
pub fn configurations(lines: &[&Line]) -> Vec<(String, String)> {
    let mut all: Vec<(String, String, Vec<String>)> = Vec::new();
    for line in lines.iter().filter(|line| !line.config.is_empty()) {
        let same = |(peer, config, _): &&mut (String, String, Vec<String>)| {
            *peer == line.peer && *config == line.config
        };
        match all.iter_mut().find(same) {
            Some((_, _, cases)) if cases.contains(&line.case) => {}
            Some((_, _, cases)) => cases.push(line.case.clone()),
            None => all.push((
                line.peer.clone(),
                line.config.clone(),
                vec![line.case.clone()],
            )),
        }
    }
    let peers_of = |peer: &str| all.iter().filter(|(name, ..)| name == peer).count();
    let named = all.iter().map(|(peer, config, cases)| {
        let name = match peers_of(peer) {
            1 => peer.clone(),
            _ => format!("{peer}, in {}", cases.join(", ")),
        };
        (name, config.clone())
    });
    named.collect()
}

/// How it was measured: the command that repeats it, machines, commits, remarks.
pub fn rows(
    experiment: &Experiment,
    store: &Store,
    lines: &[&Line],
    remarks: Vec<String>,
) -> Vec<(String, String)> {
    let each = |of: &dyn Fn(&Line) -> Option<String>| {
        distinct(lines.iter().filter_map(|line| of(line))).join("; ")
    };
    let valid = lines.iter().filter(|line| line.is_valid()).count();
    let wanted: usize = experiment
        .cases
        .iter()
        .map(|case| case.setup.seeds.len() * case.setup.peers.len())
        .sum();
    let taken = lines
        .iter()
        .map(|line| line.stolen_cpu_seconds)
        .fold(0.0, f64::max);
    let folder = |line: &Line| {
        let name = store.folder_of(line).file_name().unwrap_or_default();
        Some(format!("runs/{}", name.to_string_lossy()))
    };
    let ended = |line: &&Line| httpdate::parse_http_date(&line.ended_at).ok();
    let lines_kept = || store.lines().iter();
    let measured = match (
        lines_kept().min_by_key(ended),
        lines_kept().max_by_key(ended),
    ) {
        (Some(first), Some(last)) => format!("{} to {}", first.ended_at, last.ended_at),
        _ => String::new(),
    };
    let rows = [
        ("Command", format!("sooner lab run {}", experiment.name)),
        ("Kept in", each(&folder)),
        ("Machine", each(&|line| Some(line.machine.clone()))),
        ("Commits", each(&|line| line.commit.clone())),
        ("Measured, UTC", measured),
        (
            "Runs",
            format!(
                "{} of {wanted} measured, {valid} of them valid; {} with all attempts",
                lines.len(),
                store.lines().len()
            ),
        ),
        (
            "Processor time taken by the hypervisor",
            format!("at most {} s in a run", significant(taken)),
        ),
        ("Remarks", distinct(remarks.into_iter()).join("; ")),
    ];
    rows.into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn distinct(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for value in values.filter(|value| !value.is_empty()) {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}
