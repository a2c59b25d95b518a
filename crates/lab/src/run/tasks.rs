//! What is still to be measured: a case and a seed for which not all peers have a run that counts.

use super::store::{Line, Store};
use crate::experiment::{Case, Experiment};
use std::collections::BTreeSet;

/// One case and seed, all peers side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// Index of the case.
    pub case: usize,
    /// Seed of the arrivals.
    pub seed: u64,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// How often it was given up before its end.
    pub given_up: u32,
}

/// What `store` does not have yet, in the order of the experiment; a first seed of every case
/// before the second of any, so that an interrupted experiment has something to say of all.
pub fn missing(experiment: &Experiment, store: &Store, attempts_max: u32) -> Vec<Task> {
    let mut tasks: Vec<(usize, Task)> = Vec::new();
    for (index, case) in experiment.cases.iter().enumerate() {
        for (nth, &seed) in case.setup.seeds.iter().enumerate() {
            if !is_measured(case, seed, store, attempts_max) {
                let task = Task {
                    case: index,
                    seed,
                    attempt: 1,
                    given_up: 0,
                };
                tasks.push((nth, task));
            }
        }
    }
    tasks.sort_by_key(|(nth, task)| (*nth, task.case));
    tasks.into_iter().map(|(_, task)| task).collect()
}

/// An INVALID run is measured again at the next start, but not without end: it may be INVALID by
/// its own nature.
fn is_measured(case: &Case, seed: u64, store: &Store, attempts_max: u32) -> bool {
    let peers = || case.setup.peers.iter();
    let counts = |peer: &String| store.best(case, seed, peer).is_some_and(Line::counts);
    let is_tried = |peer: &String| store.tried(case, seed).any(|line| line.peer == *peer);
    let attempts: BTreeSet<u32> = store.tried(case, seed).map(|line| line.attempt).collect();
    peers().all(counts) || (peers().all(is_tried) && attempts.len() >= attempts_max as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::example;
    use serde_json::json;

    #[test]
    fn only_attempts_with_this_set_up_count() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        let old = example::case("peers = [\"nginx\"]\nseconds = 100");
        let mut new = example::experiment("peers = [\"nginx\"]");
        let mut keep = |case: &Case, attempt| {
            let run = json!({"verdict": "INVALID"});
            let of_case = example::line(case, "nginx", attempt);
            store.add(Line { run, ..of_case }, &[]).unwrap();
            missing(&new, &store, 2).len()
        };
        assert_eq!(keep(&old, 1), 1);
        assert_eq!(keep(&old, 2), 1);
        assert_eq!(keep(&new.cases[0], 3), 1);
        assert_eq!(keep(&new.cases[0], 4), 0, "invalid by its own nature");
        new.cases[0].setup.peers.push("caddy".into());
        assert_eq!(
            missing(&new, &store, 2).len(),
            1,
            "caddy was never measured"
        );
    }
}
