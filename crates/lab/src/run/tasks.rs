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
pub fn missing(experiment: &Experiment, store: &Store, attempts_max: u32) -> Vec<Task> {
    let mut tasks: Vec<(usize, Task)> = Vec::new();
    for (index, case) in experiment.cases.iter().enumerate() {
        for (nth, &seed) in case.setup.seeds.iter().enumerate() {
            if !is_measured(case, seed, store, attempts_max) {
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

/// An INVALID run is measured again at the next start, but not for ever: it may be so by its own nature.
fn is_measured(case: &Case, seed: u64, store: &Store, attempts_max: u32) -> bool {
    let is_there = |valid: bool| {
        let mut peers = case.setup.peers.iter();
        peers.all(|peer| {
            store
                .best(case, seed, peer)
                .is_some_and(|line| line.is_valid() || !valid)
        })
    };
    is_there(true) || (is_there(false) && store.attempts(case, seed) >= attempts_max)
}
