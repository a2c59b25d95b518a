//! Times on the command line, in seconds.

use std::time::Duration;

/// Shortest run: less than this is noise.
const RUN_MIN: Duration = Duration::from_secs(1);
/// Shortest patience: the timer behind it counts milliseconds.
const PATIENCE_MIN: Duration = Duration::from_millis(100);

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

/// Any number of seconds from 0.
pub fn any(text: &str) -> Result<Duration, String> {
    let value = text
        .parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    value
        .ok_or_else(|| format!("`{text}` is not a number of seconds; write for example 120 or 2.5"))
}
