//! Times on the command line, in seconds.

use std::time::Duration;

/// Shortest run: less than this is noise.
const RUN_MIN: Duration = Duration::from_secs(1);
/// Shortest patience: the timer behind it counts milliseconds.
const PATIENCE_MIN: Duration = Duration::from_millis(100);

/// A year: what is longer is a slip, and sums of such times must not overflow.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// The length of a run.
pub fn run(text: &str) -> Result<Duration, String> {
    match any(text)? {
        duration if duration < RUN_MIN => Err("a run takes at least 1 second".into()),
        duration => Ok(duration),
    }
}

/// How long a user waits.
pub fn patience(text: &str) -> Result<Duration, String> {
    match any(text)? {
        duration if duration < PATIENCE_MIN => Err("nobody gives up before 0.1 seconds".into()),
        duration => Ok(duration),
    }
}

/// Any number of seconds from 0 to a year.
pub fn any(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a number of seconds; write for example 120 or 2.5");
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    if seconds > LONGEST.as_secs_f64() {
        return Err(format!("`{text}` seconds are more than a year"));
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_of_a_year_at_most() {
        assert_eq!(any("2.5"), Ok(Duration::from_millis(2500)));
        assert_eq!(any("31622400"), Ok(LONGEST));
        for (text, said) in [
            ("31622401", "more than a year"),
            ("1e19", "more than a year"),
            ("inf", "more than a year"),
            ("-1", "not a number"),
            ("nan", "not a number"),
            ("soon", "not a number"),
        ] {
            let refused = any(text).unwrap_err();
            assert!(refused.contains(said), "{refused}");
        }
    }
}
