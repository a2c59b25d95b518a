//! What is still to be measured: a case and a seed whose peers do not all have a run that counts.

use super::store::Store;
use crate::experiment::{Case, Experiment};

/// One case and seed, all peers side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// Index of the case.
    pub case: usize,
    /// Seed of the arrivals.
    pub seed: u64,
    /// 1 for the first attempt.
    pub attempt: u32,
}

/// What `store` does not have yet, in the order of the experiment; a first seed of every case before the second of any, so that an
/// interrupted experiment has something to say of all.
pub fn missing(experiment: &Experiment, store: &Store) -> Vec<Task> {
    let mut tasks: Vec<(usize, Task)> = Vec::new();
    for (index, case) in experiment.cases.iter().enumerate() {
        for (nth, &seed) in case.setup.seeds.iter().enumerate() {
            if !is_measured(case, seed, store) {
                let task = Task {
                    case: index,
                    seed,
                    attempt: 1,
                };
                tasks.push((nth, task));
            }
        }
    }
    tasks.sort_by_key(|(nth, task)| (*nth, task.case));
    tasks.into_iter().map(|(_, task)| task).collect()
}

/// A run that is INVALID by its own nature, as on an overloaded server, counts; one that a busy machine spoilt does not.
fn is_measured(case: &Case, seed: u64, store: &Store) -> bool {
    case.setup.peers.iter().all(|peer| {
        let best = store.best(case, seed, peer);
        best.is_some_and(|line| !line.was_held_up())
    })
}
