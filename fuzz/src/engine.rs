//! libFuzzer around one target, which `SOONER_FUZZ_TARGET` names: one binary, because thirty-six
//! are linked in thirty-six times the time. Its arguments are libFuzzer's.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use std::sync::LazyLock;

/// The environment variable that names the target.
const TARGET: &str = "SOONER_FUZZ_TARGET";

static NAME: LazyLock<String> = LazyLock::new(|| {
    let name = std::env::var(TARGET).unwrap_or_default();
    assert!(
        sooner_fuzz::NAMES.contains(&name.as_str()),
        "{TARGET} is \"{name}\", and would have to be one of {}",
        sooner_fuzz::NAMES.join(", ")
    );
    name
});

fuzz_target!(|bytes: &[u8]| -> Corpus {
    if sooner_fuzz::run(&NAME, bytes) {
        Corpus::Keep
    } else {
        Corpus::Reject
    }
});
