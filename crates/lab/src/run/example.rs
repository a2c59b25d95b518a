//! An experiment for tests.

use crate::experiment::{Case, Experiment};
use std::fs;

/// An experiment with one case called `a b` whose set-up says `setup` besides a load.
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
