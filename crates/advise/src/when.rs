//! Times of log lines: as httpd writes them, as ISO 8601 has them, and as numbers since 1970.
//!
//! By hand, because a log has a line of it each and a general parser takes longer than all the rest
//! of the line.

use time::{Date, Month, OffsetDateTime};

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];
/// Nanoseconds of a second.
pub const SECOND_NS: u64 = 1_000_000_000;
/// A number with a fraction was counted at least this finely: writers leave zeros at the end out.
const NUMBER_RESOLUTION_NS: u64 = 1_000_000;

/// A time as a log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Since 1970, UTC; of a time without a zone as if it were UTC.
    pub ns: u64,
    /// What it was cut to: the true time is less than this later.
    pub resolution_ns: u64,
}

/// Reads a time in any form, in brackets or not.
pub fn stamp(text: &[u8]) -> Option<Stamp> {
    let text = text.strip_prefix(b"[").unwrap_or(text);
    let text = text.strip_suffix(b"]").unwrap_or(text).trim_ascii();
    match (text.get(2), text.get(4)) {
        (Some(b'/'), _) => httpd(text),
        (_, Some(b'-' | b'/')) => iso(text),
        _ => number(text),
    }
}

/// `10/Oct/2000:13:55:36 -0700`, also with a fraction and without a zone.
fn httpd(text: &[u8]) -> Option<Stamp> {
    let (date, clock) = text.split_at_checked(12)?;
    let &[d1, d2, b'/', m1, m2, m3, b'/', y1, y2, y3, y4, b':'] = date else {
        return None;
    };
    let month = MONTHS.iter().position(|name| **name == [m1, m2, m3])? + 1;
    let year = two(y1, y2)? * 100 + two(y3, y4)?;
    at(year, month as u64, two(d1, d2)?, clock)
}

/// `2026-11-22T10:00:00.5Z`, also with a blank for the `T`, and `2026/11/22 10:00:00` of Go.
fn iso(text: &[u8]) -> Option<Stamp> {
    let (date, clock) = text.split_at_checked(11)?;
    let &[
        y1,
        y2,
        y3,
        y4,
        cut @ (b'-' | b'/'),
        m1,
        m2,
        other_cut,
        d1,
        d2,
        b'T' | b't' | b' ',
    ] = date
    else {
        return None;
    };
    if other_cut != cut {
        return None;
    }
    let year = two(y1, y2)? * 100 + two(y3, y4)?;
    at(year, two(m1, m2)?, two(d1, d2)?, clock)
}

/// A date and `13:55:36[.FRACTION][ ZONE]`.
fn at(year: u64, month: u64, day: u64, clock: &[u8]) -> Option<Stamp> {
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date =
        Date::from_calendar_date(i32::try_from(year).ok()?, month, u8::try_from(day).ok()?).ok()?;
    let days =
        i64::from(date.to_julian_day()) - i64::from(OffsetDateTime::UNIX_EPOCH.to_julian_day());
    let (clock, rest) = clock.split_at_checked(8)?;
    let &[h1, h2, b':', i1, i2, b':', s1, s2] = clock else {
        return None;
    };
    let (hour, minute, second) = (two(h1, h2)?, two(i1, i2)?, two(s1, s2)?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (fraction_ns, digits, rest) = match rest {
        [b'.' | b',', rest @ ..] => fraction(rest)?,
        _ => (0, 0, rest),
    };
    let seconds =
        days * 86_400 + (hour * 3600 + minute * 60 + second) as i64 - zone(rest.trim_ascii())?;
    Some(Stamp {
        ns: u64::try_from(seconds)
            .ok()?
            .checked_mul(SECOND_NS)?
            .checked_add(fraction_ns)?,
        resolution_ns: SECOND_NS / 10_u64.pow(digits),
    })
}

/// Seconds that a zone is ahead of UTC; none is taken for UTC.
fn zone(text: &[u8]) -> Option<i64> {
    let (sign, rest) = match text {
        [] | b"Z" | b"z" | b"UTC" | b"GMT" => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let ahead = match rest {
        &[h1, h2] => two(h1, h2)? * 3600,
        &[h1, h2, m1, m2] | &[h1, h2, b':', m1, m2] => two(h1, h2)? * 3600 + two(m1, m2)? * 60,
        _ => return None,
    };
    Some(sign * ahead as i64)
}

/// Nanoseconds, digits that count, and what follows the digits.
fn fraction(text: &[u8]) -> Option<(u64, u32, &[u8])> {
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() {
        return None;
    }
    let digits = &digits[..digits.len().min(9)];
    let value = digits
        .iter()
        .fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
    let n = digits.len() as u32;
    Some((value * 10_u64.pow(9 - n), n, rest))
}

/// Seconds, milliseconds, microseconds or nanoseconds since 1970, told apart by their size.
fn number(text: &[u8]) -> Option<Stamp> {
    let point = text.iter().position(|byte| *byte == b'.');
    let (whole, rest) = text.split_at(point.unwrap_or(text.len()));
    if whole.is_empty() || whole.len() > 19 || !whole.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = whole.iter().try_fold(0_u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })?;
    let unit_ns = match value {
        0..100_000_000_000 => SECOND_NS,
        100_000_000_000..100_000_000_000_000 => 1_000_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1000,
        _ => 1,
    };
    let ns = value.checked_mul(unit_ns)?;
    let [b'.', digits @ ..] = rest else {
        return Some(Stamp {
            ns,
            resolution_ns: unit_ns,
        });
    };
    let (part, n, after) = fraction(digits)?;
    after.is_empty().then_some(Stamp {
        ns: ns.checked_add(part / (SECOND_NS / unit_ns))?,
        resolution_ns: (unit_ns / 10_u64.pow(n)).clamp(1, NUMBER_RESOLUTION_NS),
    })
}

fn two(tens: u8, ones: u8) -> Option<u64> {
    let is_number = tens.is_ascii_digit() && ones.is_ascii_digit();
    is_number.then(|| u64::from(tens - b'0') * 10 + u64::from(ones - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<(u64, u64)> {
        stamp(text.as_bytes()).map(|stamp| (stamp.ns, stamp.resolution_ns))
    }

    #[test]
    fn times_are_those_of_utc() {
        let seconds = |at: u64| Some((at * SECOND_NS, SECOND_NS));
        assert_eq!(of("01/Jan/1970:00:00:00 +0000"), seconds(0));
        assert_eq!(of("10/Oct/2000:13:55:36 -0700"), seconds(971_211_336));
        assert_eq!(of("[10/Oct/2000:13:55:36 -0700]"), seconds(971_211_336));
        assert_eq!(of("29/Feb/2024:23:59:60 +0130"), seconds(1_709_245_800));
        assert_eq!(of("2000-10-10T20:55:36+00:00"), seconds(971_211_336));
        assert_eq!(of("2000-10-10 22:55:36 +0200"), seconds(971_211_336));
        // Caddy's `wall`.
        assert_eq!(of("2000/10/10 20:55:36"), seconds(971_211_336));
        assert_eq!(of("971211336"), seconds(971_211_336));
        for text in [
            "29/Feb/2023:00:00:00 +0000",
            "01/Jan/1970:24:00:00 +0000",
            "01/Jan/1970:00:00:00 +0100",
            "yesterday",
            "",
            "1970-01-01T00:00:01.Z",
            "1970/01-01 00:00:01",
            "99999999999999999999",
            "1.2.3",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn fractions_say_how_fine_they_are() {
        assert_eq!(
            of("06/Feb/2009:12:14:14.655"),
            Some((1_233_922_454_655_000_000, 1_000_000))
        );
        assert_eq!(
            of("1970-01-01T00:00:01.5Z"),
            Some((1_500_000_000, 100_000_000))
        );
        assert_eq!(
            of("1970-01-01 00:00:01,250"),
            Some((1_250_000_000, 1_000_000))
        );
        assert_eq!(
            of("1700000000.25"),
            Some((1_700_000_000_250_000_000, 1_000_000))
        );
        assert_eq!(
            of("1700000000250"),
            Some((1_700_000_000_250_000_000, 1_000_000))
        );
        assert_eq!(
            of("1700000000250.5"),
            Some((1_700_000_000_250_500_000, 100_000))
        );
        assert_eq!(
            of("1700000000250000000"),
            Some((1_700_000_000_250_000_000, 1))
        );
    }
}
