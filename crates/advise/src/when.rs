//! Times of log lines.

use time::format_description::well_known::Rfc3339;
use time::{Date, Month, OffsetDateTime};

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Seconds since 1970 of `10/Oct/2000:13:55:36 -0700`.
///
/// By hand, because a log has a line of it each and a general parser takes longer than all the rest of the line.
pub fn httpd(text: &[u8]) -> Option<f64> {
    let &[
        d1,
        d2,
        b'/',
        m1,
        m2,
        m3,
        b'/',
        y1,
        y2,
        y3,
        y4,
        b':',
        h1,
        h2,
        b':',
        i1,
        i2,
        b':',
        s1,
        s2,
        b' ',
        sign,
        z1,
        z2,
        z3,
        z4,
    ] = text
    else {
        return None;
    };
    let two = |tens: u8, ones: u8| {
        let is_number = tens.is_ascii_digit() && ones.is_ascii_digit();
        is_number.then(|| i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
    };
    let month = MONTHS.iter().position(|name| **name == [m1, m2, m3])?;
    let month = Month::try_from(u8::try_from(month + 1).ok()?).ok()?;
    let year = two(y1, y2)? * 100 + two(y3, y4)?;
    let date = Date::from_calendar_date(
        i32::try_from(year).ok()?,
        month,
        u8::try_from(two(d1, d2)?).ok()?,
    )
    .ok()?;
    let days =
        i64::from(date.to_julian_day()) - i64::from(OffsetDateTime::UNIX_EPOCH.to_julian_day());
    let (hour, minute, second) = (two(h1, h2)?, two(i1, i2)?, two(s1, s2)?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let ahead = two(z1, z2)? * 3600 + two(z3, z4)? * 60;
    let ahead = match sign {
        b'+' => ahead,
        b'-' => -ahead,
        _ => return None,
    };
    Some((days * 86_400 + hour * 3600 + minute * 60 + second - ahead) as f64)
}

/// Seconds since 1970 of `2026-11-22T10:00:00.5Z`.
pub fn rfc3339(text: &str) -> Option<f64> {
    let date = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    Some(date.unix_timestamp_nanos() as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_utc() {
        assert_eq!(httpd(b"01/Jan/1970:00:00:00 +0000"), Some(0.0));
        assert_eq!(httpd(b"10/Oct/2000:13:55:36 -0700"), Some(971_211_336.0));
        assert_eq!(httpd(b"29/Feb/2024:23:59:60 +0130"), Some(1_709_245_800.0));
        assert_eq!(httpd(b"29/Feb/2023:00:00:00 +0000"), None);
        assert_eq!(httpd(b"01/Jan/1970:24:00:00 +0000"), None);
        assert_eq!(rfc3339("1970-01-01T00:00:01.5Z"), Some(1.5));
        assert_eq!(rfc3339("yesterday"), None);
    }
}
