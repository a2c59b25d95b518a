//! Text as a model file: a model, or a mistake on one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sooner_workload::Model;

fuzz_target!(|text: &str| {
    if let Err(mistake) = Model::read(text, &["fair", "srpt"]) {
        let message = mistake.to_string();
        assert!(!message.contains(['\n', '\r']), "{message:?}");
    }
});
