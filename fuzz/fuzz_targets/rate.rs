//! A rate that was read is written so that it reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sooner_workload::Rate;

fuzz_target!(|text: &str| {
    if let Ok(rate) = text.parse::<Rate>() {
        assert_eq!(rate.to_string().parse(), Ok(rate));
    }
});
