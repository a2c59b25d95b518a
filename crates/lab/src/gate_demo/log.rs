//! pgbench's log of transactions (`--log`), one a line: client, number, time taken, script, and
//! when it ended, in seconds and microseconds since 1970. Pure: text in, figures out.
//!
//! Two pgbench do not begin and end in the same instant. Measured is the time in which both run,
//! without its first tenth; a transaction counts when it ended in it.

use anyhow::{Context, Result};
use std::time::Duration;

/// The part at the beginning that is not counted: the queue has to form.
const WARM_UP_PART: u64 = 10;

/// A transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Index of its script.
    pub script: u32,
    /// From its first command to its last answer.
    pub response_us: u64,
    /// When it ended, since 1970.
    pub end_us: u64,
}

/// A stretch of time, in us since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    from_us: u64,
    to_us: u64,
}

impl Window {
    /// How long it is.
    pub fn length(self) -> Duration {
        Duration::from_micros(self.to_us - self.from_us)
    }
}

/// Reads a log; an error has its line.
pub fn parse(text: &str) -> Result<Vec<Entry>> {
    let lines = text.lines().enumerate();
    let entries = lines.map(|(index, line)| {
        entry(line).with_context(|| format!("line {} is not a transaction: {line}", index + 1))
    });
    entries.collect()
}

/// What stands behind the sixth field depends on flags that are not given.
fn entry(line: &str) -> Option<Entry> {
    let mut fields = line.split(' ').skip(2).map(str::parse::<u64>);
    let mut next = || fields.next()?.ok();
    let (response_us, script) = (next()?, next()?);
    let (end_s, end_us) = (next()?, next()?);
    Some(Entry {
        script: u32::try_from(script).ok()?,
        response_us,
        end_us: end_s.checked_mul(1_000_000)?.checked_add(end_us)?,
    })
}

/// When all of these ran, without the first tenth; none if they never did.
pub fn window(logs: &[&[Entry]]) -> Option<Window> {
    let (mut from_us, mut to_us) = (0, u64::MAX);
    for log in logs {
        let begin = |entry: &Entry| entry.end_us.saturating_sub(entry.response_us);
        from_us = from_us.max(log.iter().map(begin).min()?);
        to_us = to_us.min(log.iter().map(|entry| entry.end_us).max()?);
    }
    let length_us = to_us.checked_sub(from_us).filter(|length| *length > 0)?;
    Some(Window {
        from_us: from_us + length_us / WARM_UP_PART,
        to_us,
    })
}

/// The transactions that ended in this time.
pub fn within(log: &[Entry], window: Window) -> Vec<Entry> {
    let is_in = |entry: &&Entry| (window.from_us..=window.to_us).contains(&entry.end_us);
    log.iter().filter(is_in).copied().collect()
}

/// Mean response time, in ms; none of nothing.
pub fn mean_ms(log: &[Entry]) -> Option<f64> {
    let sum_us: u64 = log.iter().map(|entry| entry.response_us).sum();
    (!log.is_empty()).then(|| sum_us as f64 / log.len() as f64 / 1e3)
}

/// A percentile of the response times by nearest rank, in ms; none of nothing.
pub fn percentile_ms(log: &[Entry], percent: u32) -> Option<f64> {
    let mut times_us: Vec<u64> = log.iter().map(|entry| entry.response_us).collect();
    times_us.sort_unstable();
    let rank = (times_us.len() * percent as usize).div_ceil(100).max(1);
    times_us.get(rank - 1).map(|us| *us as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(end_us: u64, response_us: u64) -> Entry {
        Entry {
            script: 0,
            response_us,
            end_us,
        }
    }

    #[test]
    fn a_log_is_read_line_by_line() {
        let log = parse("0 1 2878 0 1795416720 16988\n6 12 3791 1 1795416720 999999 0 3\n");
        let second = Entry {
            script: 1,
            response_us: 3791,
            end_us: 1_795_416_720_999_999,
        };
        let first = ended(1_795_416_720_016_988, 2878);
        assert_eq!(log.unwrap(), [first, second]);
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn what_is_no_transaction_is_told_with_its_line() {
        for wrong in ["0 1 skipped 0 1 2", "0 1 5 0 1", "0 1 5 0 -1 2", "x"] {
            let error = parse(&format!("0 1 2878 0 1 2\n{wrong}\n")).unwrap_err();
            assert!(error.to_string().starts_with("line 2 "), "{error}");
        }
    }

    #[test]
    fn measured_is_when_both_run_without_a_tenth() {
        let (one, other) = (
            [ended(100, 100), ended(1150, 20)],
            [ended(200, 50), ended(1300, 90)],
        );
        let window = window(&[&one, &other]).unwrap();
        assert_eq!((window.from_us, window.to_us), (250, 1150));
        assert_eq!(window.length(), Duration::from_micros(900));
        assert_eq!(within(&one, window), [one[1]]);
        assert_eq!(within(&other, window), []);
    }

    #[test]
    fn without_a_common_time_there_is_nothing() {
        assert_eq!(window(&[&[ended(10, 5)], &[]]), None);
        assert_eq!(window(&[&[ended(10, 5)], &[ended(30, 5)]]), None);
    }

    #[test]
    fn figures_are_by_nearest_rank() {
        let log: Vec<Entry> = (1..=20).map(|ms| ended(1, ms * 1000)).collect();
        assert_eq!(mean_ms(&log), Some(10.5));
        let percentiles = [1, 50, 95, 99].map(|percent| percentile_ms(&log, percent).unwrap());
        assert_eq!(percentiles, [1.0, 10.0, 19.0, 20.0]);
        assert_eq!((mean_ms(&[]), percentile_ms(&[], 99)), (None, None));
    }
}
