//! Lengths of time as people type them: `10`, `10s`, `1m`, `1m30s`, `500ms`, `2.5 min`. A number
//! alone counts seconds.

use std::time::Duration;

/// A length of time that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// No number, or an unknown unit.
    #[error("`{0}` is not a length of time; write for example 120, 2.5s, 500ms, 10m or 1h30m")]
    Form(String),
    /// A number alone where it may be seconds or milliseconds.
    #[error("`{0}` has no unit; write us, ms, s, min, h or d behind it, as in 30ms")]
    NoUnit(String),
    /// What is longer than a year is a slip, and sums of such times must not overflow.
    #[error("`{0}` is more than a year")]
    Long(String),
}

/// The longest that can be said, s.
const LONGEST_S: f64 = 366.0 * 24.0 * 3600.0;

/// Seconds of each unit.
const UNITS: [(&[&str], f64); 6] = [
    (
        &["us", "µs", "μs", "usec", "microsecond", "microseconds"],
        1e-6,
    ),
    (&["ms", "msec", "millisecond", "milliseconds"], 1e-3),
    (&["s", "sec", "secs", "second", "seconds"], 1.0),
    (&["m", "min", "mins", "minute", "minutes"], 60.0),
    (&["h", "hr", "hrs", "hour", "hours"], 3600.0),
    (&["d", "day", "days"], 86_400.0),
];

/// Reads one, from 0 to a year.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let wrong = || DurationError::Form(text.into());
    let seconds = match text.trim().parse::<f64>() {
        Ok(seconds) => seconds,
        Err(_) => parts(text).ok_or_else(wrong)?,
    };
    if seconds > LONGEST_S {
        return Err(DurationError::Long(text.into()));
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

/// Reads one that has its unit, as what may be as well milliseconds as seconds should.
pub fn parse_duration_with_unit(text: &str) -> Result<Duration, DurationError> {
    match text.trim().parse::<f64>() {
        Ok(_) => Err(DurationError::NoUnit(text.into())),
        Err(_) => parse_duration(text),
    }
}

/// The sum of all `NUMBER UNIT`, in seconds.
fn parts(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut sum = 0.0;
    while !rest.is_empty() {
        let (number, behind) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let behind = behind.trim_start();
        let end = behind.find(|c: char| !c.is_alphabetic());
        let (unit, behind) = behind.split_at(end.unwrap_or(behind.len()));
        let unit = unit.to_lowercase();
        let (_, seconds) = UNITS
            .iter()
            .find(|(names, _)| names.contains(&unit.as_str()))?;
        sum += number.parse::<f64>().ok()? * seconds;
        rest = behind.trim_start();
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_read_as_people_type_them() {
        for (text, ms) in [
            ("10", 10_000),
            ("2.5", 2_500),
            ("10s", 10_000),
            ("10 s", 10_000),
            ("10sec", 10_000),
            ("1m", 60_000),
            ("2min", 120_000),
            ("500ms", 500),
            ("0.5h", 1_800_000),
            ("1h30m", 5_400_000),
            ("1m 30s", 90_000),
            ("1e2", 100_000),
            ("0", 0),
            (" 7 ", 7_000),
            ("1D", 86_400_000),
            ("31622400", 31_622_400_000),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(ms)),
                "{text}"
            );
        }
        assert_eq!(parse_duration("250us"), Ok(Duration::from_micros(250)));
    }

    #[test]
    fn what_is_no_time_is_refused_with_right_forms() {
        for text in [
            "", " ", "-1", "nan", "soon", "s", "10x", "1:30", "10s5", "1.2.3s", "-5s", "10s-1s",
        ] {
            let said = parse_duration(text).expect_err(text).to_string();
            assert_eq!(
                said,
                format!(
                    "`{text}` is not a length of time; write for example 120, 2.5s, 500ms, 10m or 1h30m"
                )
            );
        }
        for text in ["31622401", "1e19", "inf", "367d", "9999999h"] {
            let said = parse_duration(text).expect_err(text).to_string();
            assert_eq!(said, format!("`{text}` is more than a year"));
        }
    }

    #[test]
    fn a_unit_can_be_required() {
        assert_eq!(
            parse_duration_with_unit("30ms"),
            Ok(Duration::from_millis(30))
        );
        assert_eq!(
            parse_duration_with_unit("30").unwrap_err().to_string(),
            "`30` has no unit; write us, ms, s, min, h or d behind it, as in 30ms"
        );
    }

    proptest! {
        #[test]
        fn parts_add_up_in_any_units(
            days in 0_u64..365, hours in 0_u64..24, minutes in 0_u64..60, ms in 0_u64..60_000,
        ) {
            let whole = Duration::from_millis(
                ((days * 24 + hours) * 60 + minutes) * 60_000 + ms,
            );
            for text in [
                format!("{days}d{hours}h{minutes}m{ms}ms"),
                format!("{days} days {hours} hours {minutes} min {ms} msec"),
                format!("{ms}ms {minutes}mins {hours}hr {days}day"),
            ] {
                let read = parse_duration(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
                prop_assert!(read.abs_diff(whole) < Duration::from_micros(1), "{text}: {read:?}");
            }
        }

        #[test]
        fn reading_never_panics_near_right_forms(text in "[0-9.]{0,9} ?[a-zµ]{0,5}[0-9]{0,3}[smhd]?") {
            let _ = parse_duration(&text);
        }

        #[test]
        fn reading_never_panics(text in ".{0,30}") {
            let _ = parse_duration(&text);
        }
    }
}
