//! A rate that was read is written so that it reads the same.

use sooner_workload::{Rate, UplinkRate};

/// Tries one input.
pub fn run(text: &str) {
    if let Ok(rate) = text.parse::<UplinkRate>() {
        assert_eq!(rate.to_string().parse(), Ok(rate), "{rate}");
    }
    if let Ok(rate) = text.parse::<Rate>() {
        assert_eq!(rate.to_string().parse(), Ok(rate));
    }
}
