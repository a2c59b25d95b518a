//! Any text as a log: each line is read or refused, and what is read can be counted and forecast.

use sooner_advise::{FORMATS, LineReader, Surveyor, TimeTaken, forecast};

/// Tries one input.
pub fn run(text: &[u8]) {
    let mut surveyor = Surveyor::keeping(1_000_000, 20);
    for taken in [
        TimeTaken::Guess,
        TimeTaken::Seconds,
        TimeTaken::Milliseconds,
        TimeTaken::Microseconds,
        TimeTaken::None,
    ] {
        let mut reader = LineReader::new(taken);
        for line in text.split(|byte| *byte == b'\n') {
            if let Ok(Some(entry)) = reader.read(line) {
                assert!(entry.format < FORMATS.len());
                assert!(entry.arrival_ns() <= entry.stamp_ns);
                surveyor.add(entry);
            }
        }
    }
    let requests = surveyor.requests();
    if let Ok(forecast) = forecast(surveyor) {
        assert!(requests > 0);
        let link = forecast.survey.link.expect("an uplink was given");
        assert!(link.minutes_above_half <= 1.0);
        for order in forecast.queue.iter().flat_map(|queue| &queue.orders) {
            assert!(order.p50_ms <= order.p99_ms && order.mean_ms.is_finite());
        }
    }
}
