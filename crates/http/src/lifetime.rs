//! How long clients may keep an answer: what an owner writes, and the two headers that say it.
//!
//! The words and the headers are those of nginx's directive `expires`, so that what people know and
//! copy means the same here.

use std::str::FromStr;
use std::time::{Duration, SystemTime};
use thiserror::Error;

/// What nginx calls `max`: ten years.
const MAX_SECONDS: u64 = 10 * 365 * DAY;
/// The date that goes with it: the last hour a clock of 32 bits knows.
const MAX_DATE: &str = "Thu, 31 Dec 2037 23:55:55 GMT";
/// The date that nginx says for `epoch`.
const EPOCH_DATE: &str = "Thu, 01 Jan 1970 00:00:01 GMT";
const DAY: u64 = 86_400;
/// Units and their seconds; a month has 30 days and a year 365, as in nginx.
const UNITS: [(&str, u64); 7] = [
    ("s", 1),
    ("m", 60),
    ("h", 3600),
    ("d", DAY),
    ("w", 7 * DAY),
    ("M", 30 * DAY),
    ("y", 365 * DAY),
];

/// How long an answer may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Nothing is said about it.
    Off,
    /// So many seconds from now.
    For(u64),
    /// Ten years.
    Max,
    /// It has been too old since 1970: ask before each use.
    Epoch,
    /// It was too old so many seconds ago: ask before each use.
    Past(u64),
}

/// Text that is no lifetime.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{0:?} is not a lifetime; write 30d, 1h30m, 0, -1, max, epoch or off; units are s, m, h, d, w, M (30 d) and y"
)]
pub struct NotALifetime(String);

/// The headers of one lifetime at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields {
    /// The value of `Expires`.
    pub expires: String,
    /// The value of `Cache-Control`.
    pub cache_control: String,
}

impl Lifetime {
    /// Whether a client may use the answer again without asking.
    pub fn lets_keep(self) -> bool {
        matches!(self, Self::For(1..) | Self::Max)
    }

    /// Whether the date it gives depends on the time of the answer.
    pub fn is_relative(self) -> bool {
        matches!(self, Self::For(_) | Self::Past(_))
    }

    /// The headers of an answer at `now`; `immutable` says that it never changes (RFC 8246).
    pub fn fields(self, immutable: bool, now: SystemTime) -> Option<Fields> {
        let seconds = Duration::from_secs;
        let (expires, mut cache_control) = match self {
            Self::Off => return None,
            Self::For(after) => (
                date(now.checked_add(seconds(after)))?,
                format!("max-age={after}"),
            ),
            Self::Max => (MAX_DATE.to_owned(), format!("max-age={MAX_SECONDS}")),
            Self::Epoch => (EPOCH_DATE.to_owned(), "no-cache".to_owned()),
            Self::Past(before) => (
                date(now.checked_sub(seconds(before)))?,
                "no-cache".to_owned(),
            ),
        };
        if immutable && self.lets_keep() {
            cache_control.push_str(", immutable");
        }
        Some(Fields {
            expires,
            cache_control,
        })
    }
}

/// A date as headers write it; `None` beyond the year 9999, which they cannot.
fn date(date: Option<SystemTime>) -> Option<String> {
    const YEAR_10000: u64 = 253_402_300_800;
    let date = date?;
    let since = date.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    (since.as_secs() < YEAR_10000).then(|| httpdate::fmt_http_date(date))
}

impl FromStr for Lifetime {
    type Err = NotALifetime;

    fn from_str(text: &str) -> Result<Self, NotALifetime> {
        let wrong = || NotALifetime(text.to_owned());
        match text.trim() {
            "off" => Ok(Self::Off),
            "max" => Ok(Self::Max),
            "epoch" => Ok(Self::Epoch),
            time => match time.strip_prefix('-') {
                Some(time) => seconds(time).filter(|&time| time > 0).map(Self::Past),
                None => seconds(time).map(Self::For),
            }
            .ok_or_else(wrong),
        }
    }
}

/// The seconds of `1h30m`, `1h 30m` or `90`: each unit once at most, the largest first; up to the
/// ten years of `max`.
fn seconds(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut sum = 0u64;
    let mut unit_before = u64::MAX;
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at(digits);
        let number: u64 = number.parse().ok()?;
        let unit = UNITS.iter().find(|(unit, _)| tail.starts_with(unit));
        let (tail, unit) = match unit {
            Some((_, seconds)) => (&tail[1..], *seconds),
            None => (tail, 1),
        };
        if unit >= unit_before {
            return None;
        }
        unit_before = unit;
        sum = sum.checked_add(number.checked_mul(unit)?)?;
        rest = tail.trim_start();
        if rest.is_empty() {
            return (sum <= MAX_SECONDS).then_some(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_type() {
        for (text, expected) in [
            ("30d", Lifetime::For(2_592_000)),
            ("1h", Lifetime::For(3600)),
            ("1h30m", Lifetime::For(5400)),
            ("1d 12h", Lifetime::For(129_600)),
            ("1y", Lifetime::For(31_536_000)),
            ("1M", Lifetime::For(2_592_000)),
            ("1m", Lifetime::For(60)),
            ("2w", Lifetime::For(1_209_600)),
            ("90", Lifetime::For(90)),
            ("1m30", Lifetime::For(90)),
            ("0", Lifetime::For(0)),
            ("10y", Lifetime::For(MAX_SECONDS)),
            ("-1", Lifetime::Past(1)),
            ("-2d", Lifetime::Past(172_800)),
            ("max", Lifetime::Max),
            ("epoch", Lifetime::Epoch),
            (" off ", Lifetime::Off),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in [
            "",
            "-",
            "d",
            "30 d",
            "30x",
            "1m1h",
            "1h1h",
            "-0",
            "1e3",
            "1.5h",
            "Max",
            "11y",
            "+1",
            "1h-1m",
            "99999999999999999999d",
            "30days",
        ] {
            assert!(text.parse::<Lifetime>().is_err(), "{text}");
        }
    }

    #[test]
    fn says_what_nginx_says() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let fields = |lifetime: Lifetime| {
            let fields = lifetime.fields(false, now).unwrap();
            (fields.expires, fields.cache_control)
        };
        let of = |expires: &str, cache_control: &str| (expires.into(), cache_control.into());
        assert_eq!(
            fields(Lifetime::For(3600)),
            of("Sun, 06 Nov 1994 09:49:37 GMT", "max-age=3600")
        );
        assert_eq!(
            fields(Lifetime::For(0)),
            of("Sun, 06 Nov 1994 08:49:37 GMT", "max-age=0")
        );
        assert_eq!(
            fields(Lifetime::Past(1)),
            of("Sun, 06 Nov 1994 08:49:36 GMT", "no-cache")
        );
        assert_eq!(fields(Lifetime::Max), of(MAX_DATE, "max-age=315360000"));
        assert_eq!(fields(Lifetime::Epoch), of(EPOCH_DATE, "no-cache"));
        assert_eq!(Lifetime::Off.fields(true, now), None);
        let kept = Lifetime::For(5).fields(true, now).unwrap();
        assert_eq!(kept.cache_control, "max-age=5, immutable");
        let asked = Lifetime::Epoch.fields(true, now).unwrap();
        assert_eq!(asked.cache_control, "no-cache");
    }

    proptest! {
        #[test]
        fn no_text_and_no_time_panics(text in ".{0,12}", now: u64) {
            let Some(now) = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(now)) else {
                return Ok(());
            };
            if let Ok(lifetime) = text.parse::<Lifetime>() {
                lifetime.fields(true, now);
            }
        }

        #[test]
        fn sums_are_sums(days in 0u64..300, hours in 0u64..24, seconds in 0u64..60) {
            let lifetime: Lifetime = format!("{days}d{hours}h{seconds}s").parse().unwrap();
            prop_assert_eq!(lifetime, Lifetime::For(days * DAY + hours * 3600 + seconds));
        }
    }
}
