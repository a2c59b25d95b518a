//! Times on the command line: `10`, `10s`, `1m`, `500ms`. A number alone counts seconds.

use sooner_workload::parse_duration;
use std::time::Duration;

/// Shortest run: less than this is noise.
const RUN_MIN: Duration = Duration::from_secs(1);
/// Shortest patience: the timer behind it counts milliseconds.
const PATIENCE_MIN: Duration = Duration::from_millis(100);

/// The length of a run.
pub fn run(text: &str) -> Result<Duration, String> {
    match any(text)? {
        duration if duration < RUN_MIN => Err("too short; write 1s or more".into()),
        duration => Ok(duration),
    }
}

/// How long a user waits.
pub fn patience(text: &str) -> Result<Duration, String> {
    match any(text)? {
        duration if duration < PATIENCE_MIN => Err("too short; write 0.1s or more".into()),
        duration => Ok(duration),
    }
}

/// Any time from 0 to a year.
pub fn any(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

/// Whole seconds, at least `MIN`.
pub fn whole<const MIN: u64>(text: &str) -> Result<u64, String> {
    let duration = any(text)?;
    match (duration.as_secs(), duration.subsec_nanos()) {
        (seconds, 0) if seconds >= MIN => Ok(seconds),
        _ => Err(format!(
            "`{text}` is not a whole number of seconds from {MIN} on; write for example 60s or 5min"
        )),
    }
}

/// Whole seconds from 0, as far as a configuration holds them.
pub fn grace(text: &str) -> Result<u32, String> {
    u32::try_from(whole::<0>(text)?).map_err(|error| error.to_string())
}

/// Seconds of a model, of which a number alone may be anything.
pub fn number(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) => Ok(seconds),
        Err(_) => any(text).map(|duration| duration.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_time_has_its_least() {
        assert_eq!(run("90s"), Ok(Duration::from_secs(90)));
        assert!(run("500ms").unwrap_err().contains("write 1s or more"));
        assert_eq!(patience("500ms"), Ok(Duration::from_millis(500)));
        assert!(patience("50ms").unwrap_err().contains("write 0.1s or more"));
        assert_eq!(whole::<5>("1m"), Ok(60));
        assert!(whole::<5>("4").unwrap_err().contains("from 5 on"));
        assert!(
            whole::<1>("1.5s")
                .unwrap_err()
                .contains("whole number of seconds")
        );
        assert_eq!(grace("0"), Ok(0));
        assert_eq!(grace("1m"), Ok(60));
        assert!(grace("0.5s").is_err());
        assert_eq!(number("-1"), Ok(-1.0));
        assert_eq!(number("5ms"), Ok(0.005));
        assert!(
            number("soon")
                .unwrap_err()
                .contains("is not a length of time")
        );
    }
}
