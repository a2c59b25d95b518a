//! Whatever stands in a log: a line is read or refused, and what is read can be counted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sooner_advise::{Surveyor, TimeTaken, forecast, read};

fuzz_target!(|text: &[u8]| {
    let mut surveyor = Surveyor::new(1_000_000);
    let mut entries = 0;
    for (line, taken) in text.split(|byte| *byte == b'\n').zip(
        [
            TimeTaken::Guess,
            TimeTaken::Seconds,
            TimeTaken::Milliseconds,
        ]
        .into_iter()
        .cycle(),
    ) {
        if let Ok(entry) = read(line, taken) {
            assert!(entry.took_s.is_none_or(f64::is_finite));
            surveyor.add(entry);
            entries += 1;
        }
    }
    if entries > 0 {
        let _ = forecast(surveyor);
    }
});
