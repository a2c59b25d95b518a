//! Text as a model file: a model, or a mistake on one line.

use sooner_workload::Model;

/// Tries one input.
pub fn run(text: &str) {
    if let Err(mistake) = Model::read(text, |_| Ok(())) {
        let message = mistake.to_string();
        assert!(!message.contains(['\n', '\r']), "{message:?}");
    }
}
