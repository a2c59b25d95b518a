//! A time that was read is at most a year.

use sooner_workload::parse_duration;
use std::time::Duration;

/// Tries one input.
pub fn run(text: &str) {
    if let Ok(duration) = parse_duration(text) {
        assert!(duration <= Duration::from_secs(366 * 24 * 3600));
    }
}
