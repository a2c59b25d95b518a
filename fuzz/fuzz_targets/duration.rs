//! A time that was read is at most a year.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sooner_workload::parse_duration;
use std::time::Duration;

fuzz_target!(|text: &str| {
    if let Ok(duration) = parse_duration(text) {
        assert!(duration <= Duration::from_secs(366 * 24 * 3600));
    }
});
