//! Text as an experiment: one that can be run, or a mistake on one line with its place.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sooner_lab::experiment::Experiment;
use std::path::Path;

fuzz_target!(|text: &str| {
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
});
