//! An experiment for tests.

use super::store::{Line, as_json};
use crate::experiment::{Case, Experiment};
use serde_json::Value;
use std::fs;

/// An experiment with one case called `a b`. Its set-up says `setup` besides a load.
pub fn experiment(setup: &str) -> Experiment {
    let folder = tempfile::tempdir().unwrap();
    let heads = "rows = []\nquestion = \"\"\npublished = \"\"\nbaseline = \"nginx\"\n";
    let text = format!("{heads}[setup]\nschedule = \"0.9\"\n{setup}\n[[case]]\nname = \"a b\"\n");
    fs::write(folder.path().join("experiment.toml"), text).unwrap();
    Experiment::open(folder.path()).unwrap()
}

/// Its case.
pub fn case(setup: &str) -> Case {
    experiment(setup).cases.remove(0)
}

/// A line of the case's first seed, without a run.
pub fn line(case: &Case, peer: &str, attempt: u32) -> Line {
    Line {
        case: case.name.clone(),
        seed: case.setup.seeds[0],
        peer: peer.to_owned(),
        attempt,
        ended_at: String::new(),
        commit: None,
        machine: String::new(),
        stolen_cpu_seconds: 0.0,
        cpu_pressure_seconds: 0.0,
        setup: as_json(&case.setup),
        config: String::new(),
        remarks: Vec::new(),
        run: Value::Null,
        counters: Value::Null,
        paths: None,
        place: 0,
    }
}
