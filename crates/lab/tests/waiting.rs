//! What it does to the mean of a server of one thread to wait for a processor, by every run that is
//! kept: why a run is INVALID from [`CPU_WAIT_SHARE_MAX`] on and not before. The very same arrivals
//! met the same server on the same set-up in several attempts.

use sooner_lab::run::store::{CPU_WAIT_SHARE_MAX, Line, Store};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Processor seconds a second taken by a hypervisor from which on a run says nothing about
/// anything.
const STOLEN_SHARE_MAX: f64 = 0.02;

fn folders_of_runs() -> Vec<PathBuf> {
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let subfolders = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    subfolders(experiments)
        .flat_map(|experiment| subfolders(experiment.path().join("runs")))
        .map(|runs| runs.path())
        .filter(|runs| runs.join("runs.jsonl").exists())
        .collect()
}

/// Only what orders by size: under FAIR one lost packet more or less moves the mean by per cents.
fn is_comparable(line: &Line) -> bool {
    let stolen = line.stolen_cpu_seconds / line.setup["seconds"].as_f64().unwrap_or(1.0);
    let generator_was_late = line.run["verdict_reason"].to_string().contains("send lag");
    line.peer.starts_with("sooner srpt") && stolen < STOLEN_SHARE_MAX && !generator_was_late
}

/// For each attempt at what a quieter one measured as well: its share of waiting, and its mean over
/// the quietest one's.
fn beside_the_quietest(folder: &Path) -> Vec<(f64, f64)> {
    let mut same: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for line in Store::read(folder).unwrap().lines() {
        if let (true, Some(mean_ms)) = (is_comparable(line), line.figure("/all/mean_response_ms")) {
            let what = format!("{} {} {} {}", line.case, line.seed, line.peer, line.setup);
            same.entry(what)
                .or_default()
                .push((line.cpu_wait_share(), mean_ms));
        }
    }
    let mut pairs = Vec::new();
    for mut attempts in same.into_values() {
        attempts.sort_by(|a, b| a.0.total_cmp(&b.0));
        let quietest_ms = attempts[0].1;
        pairs.extend(
            attempts[1..]
                .iter()
                .map(|(share, ms)| (*share, ms / quietest_ms)),
        );
    }
    pairs
}

#[test]
fn up_to_the_limit_waiting_does_not_change_the_mean() {
    let pairs: Vec<(f64, f64)> = folders_of_runs()
        .iter()
        .flat_map(|folder| beside_the_quietest(folder))
        .collect();
    let mut below: Vec<f64> = pairs
        .iter()
        .filter(|(share, _)| *share <= CPU_WAIT_SHARE_MAX)
        .map(|(_, ratio)| *ratio)
        .collect();
    below.sort_by(f64::total_cmp);
    assert!(below.len() >= 30, "{} pairs", below.len());
    let (least, median, most) = (below[0], below[below.len() / 2], below[below.len() - 1]);
    assert!((median - 1.0).abs() < 0.01, "median {median:.3}");
    assert!(least > 0.96 && most < 1.04, "{least:.3} to {most:.3}");
    // and that much more is not harmless, so the limit is not idle
    assert!(
        pairs
            .iter()
            .any(|(share, ratio)| *share > 0.25 && *ratio > 1.5)
    );
}
