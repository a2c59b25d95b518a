//! Text as an experiment: one that can be run, or a mistake on one line with its place.

use sooner_lab::experiment::Experiment;
use std::path::Path;

/// Tries one input.
pub fn run(text: &str) {
    match Experiment::parse(text, "name", Path::new("name")) {
        Ok(experiment) => {
            assert!(!experiment.cases.is_empty());
            assert!(!experiment.quick().cases.is_empty());
        }
        Err((span, problem)) => {
            assert!(!problem.contains(['\n', '\r']), "{problem:?}");
            assert!(span.start <= text.len());
        }
    }
}
