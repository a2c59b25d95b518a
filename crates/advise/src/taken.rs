//! The time that a response took: a number with a unit that the format knows, or one of those
//! behind a line of httpd's kind, where any operator puts what he likes.

mod numbers;

use crate::formats::Unit;
use numbers::numbers;

/// nginx writes times with so many digits behind the point, and nothing else.
const DECIMALS: usize = 3;
/// What a head may add to the size of a response.
const HEAD_BYTES_MAX: u64 = 2000;
/// And records of TLS: a part of it.
const RECORDS_PART: u64 = 50;
/// No response takes so long: what has more digits is the time of day.
const TIME_MAX_S: f64 = 1e8;

/// What the number behind a line of httpd's kind is, and a field that does not name its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeTaken {
    /// With a decimal point seconds, as nginx writes; without one microseconds, as httpd's %D.
    #[default]
    Guess,
    /// Whole seconds, httpd's %T.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// No time.
    None,
}

impl TimeTaken {
    /// The unit in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Guess | Self::None => "an unknown unit",
            Self::Seconds => "seconds",
            Self::Milliseconds => "milliseconds",
            Self::Microseconds => "microseconds",
        }
    }
}

/// Where a time taken comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A field of the format.
    Format,
    /// A number with a decimal point, or a name, behind the line: nginx. The time of the line is
    /// then that of the end.
    Pointed,
    /// A number behind the line with its unit.
    WithUnit,
    /// A number behind the line or in a field, in the unit that the operator gave.
    Given(TimeTaken),
    /// A field that does not name its unit, in the usual one.
    Assumed(TimeTaken),
    /// A whole number behind the line, which is only taken for microseconds.
    Guessed,
    /// Likewise, where it is about as large as the response and not the only one: bytes that were
    /// sent.
    Repeated,
}

impl Source {
    /// Whether the unit is only guessed.
    pub fn is_guess(self) -> bool {
        matches!(self, Self::Guessed | Self::Repeated)
    }
}

/// A time that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Nanoseconds.
    pub ns: u64,
    /// Where it comes from.
    pub source: Source,
}

/// What the words behind a line say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    /// The time taken.
    pub taken: Option<Taken>,
    /// Of it the time at the server that answered, ns.
    pub at_server_ns: Option<u64>,
}

/// The times in the words behind a line. Of several with nginx's three decimals the longest is the
/// request's, because it takes longer than what its upstream does for it, and the next is the
/// upstream's, which takes longer than a part of it. Of whole numbers the last counts: where it is
/// about the size of a response of `size` bytes, and none before it is, it may be that once more.
pub fn behind(rest: &[u8], unit: TimeTaken, size: Option<u64>) -> Behind {
    if unit == TimeTaken::None {
        return Behind::default();
    }
    let numbers = numbers(rest, unit);
    let at_server_ns = match (numbers.second, unit) {
        (Some(second), TimeTaken::Guess | TimeTaken::Seconds) => nanoseconds(second, 1e9),
        _ => None,
    };
    let is_size = numbers.is_size_again(size);
    let taken = numbers.taken(unit).map(|taken| match taken.source {
        Source::Guessed if is_size => Taken {
            source: Source::Repeated,
            ..taken
        },
        _ => taken,
    });
    Behind {
        taken,
        at_server_ns: numbers.at_server_ns.or(at_server_ns),
    }
}

/// Whether a number is the size of a response once more, with a head.
pub fn is_size_again(number: u64, bytes: u64) -> bool {
    let more_max = HEAD_BYTES_MAX + bytes / RECORDS_PART;
    number >= bytes && number - bytes <= more_max
}

/// Digits behind the point; none without one.
fn decimals(text: &[u8]) -> Option<usize> {
    let point = text.iter().position(|byte| *byte == b'.');
    point.map(|place| text.len() - place - 1)
}

fn is_exact(text: &[u8]) -> bool {
    decimals(text) == Some(DECIMALS)
}

/// The sum of a list of numbers that are `right`, some of which may be missing; none of what is no
/// such list.
fn sum_of_list(text: &[u8], right: impl Fn(&[u8]) -> bool) -> Option<Option<f64>> {
    let mut sum = None;
    for one in parts_of_list(text).filter(|one| *one != b"-") {
        let value = decimal(one).filter(|_| right(one))?;
        sum = Some(sum.unwrap_or(0.0) + value);
    }
    Some(sum)
}

/// nginx puts commas between the servers that were asked, and colons between groups of them.
fn parts_of_list(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| matches!(byte, b',' | b':'))
        .map(<[u8]>::trim_ascii)
}

/// The unit of a field if the operator says this of times, and where it comes from; none where the
/// field is to be ignored.
pub fn unit_of(unit: Unit, taken: TimeTaken) -> Option<(Unit, Source)> {
    let given = match unit {
        Unit::S | Unit::Ms | Unit::Us | Unit::Ns => return Some((unit, Source::Format)),
        Unit::SecondsOrMs | Unit::SUnlessGiven | Unit::MsUnlessGiven => taken,
    };
    let source = Source::Given(given);
    match (given, unit) {
        (TimeTaken::None, _) => None,
        (TimeTaken::Seconds, _) => Some((Unit::S, source)),
        (TimeTaken::Milliseconds, _) => Some((Unit::Ms, source)),
        (TimeTaken::Microseconds, _) => Some((Unit::Us, source)),
        (TimeTaken::Guess, Unit::SUnlessGiven) => Some((unit, Source::Assumed(TimeTaken::Seconds))),
        (TimeTaken::Guess, Unit::MsUnlessGiven) => {
            Some((unit, Source::Assumed(TimeTaken::Milliseconds)))
        }
        (TimeTaken::Guess, _) => Some((unit, Source::Format)),
    }
}

/// The times at all servers that were asked, ns; none where none was.
pub fn list_ns(text: &[u8], unit: Unit) -> Option<u64> {
    let times = parts_of_list(text).filter_map(|one| field_ns(one, unit));
    times.reduce(u64::saturating_add)
}

/// A time in a format's field, ns; none of `-` and of what is below 0.
pub fn field_ns(text: &[u8], unit: Unit) -> Option<u64> {
    let text = unquoted(text);
    let Some(value) = decimal(text) else {
        return with_unit(text);
    };
    let unit_ns = match unit {
        Unit::S | Unit::SUnlessGiven => 1e9,
        Unit::Ms | Unit::MsUnlessGiven => 1e6,
        Unit::Us => 1e3,
        Unit::Ns => 1.0,
        Unit::SecondsOrMs if text.contains(&b'.') => 1e9,
        Unit::SecondsOrMs => 1e6,
    };
    nanoseconds(value, unit_ns)
}

/// `1.5ms`, `2m3.5s`, `250µs`: as programs in Go write times.
fn with_unit(text: &[u8]) -> Option<u64> {
    let mut text = std::str::from_utf8(text).ok()?;
    let mut ns = 0_u64;
    if text.is_empty() {
        return None;
    }
    while !text.is_empty() {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, rest) = text.split_at(end);
        let end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(end);
        let unit_ns = match unit {
            "h" => 3.6e12,
            "m" => 6e10,
            "s" | "sec" => 1e9,
            "ms" | "msec" => 1e6,
            "us" | "µs" | "μs" | "usec" => 1e3,
            "ns" => 1.0,
            _ => return None,
        };
        ns = ns.checked_add(nanoseconds(decimal(number.as_bytes())?, unit_ns)?)?;
        text = rest;
    }
    Some(ns)
}

fn nanoseconds(value: f64, unit_ns: f64) -> Option<u64> {
    let ns = (value * unit_ns).round();
    (0.0..9e18).contains(&ns).then_some(ns as u64)
}

/// Digits, and at most one point among them.
fn decimal(text: &[u8]) -> Option<f64> {
    let is_number = text.first().is_some_and(u8::is_ascii_digit)
        && text.len() < 25
        && text
            .iter()
            .all(|byte| byte.is_ascii_digit() || *byte == b'.');
    is_number
        .then(|| std::str::from_utf8(text).ok()?.parse().ok())
        .flatten()
}

fn unquoted(text: &[u8]) -> &[u8] {
    match text {
        [b'"', inner @ .., b'"'] => inner,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Source::{Given, Guessed, Pointed, WithUnit};
    use TimeTaken::{Microseconds, Milliseconds, Seconds};

    fn of(rest: &str, unit: TimeTaken) -> Option<(f64, Source)> {
        let taken = behind(rest.as_bytes(), unit, None).taken;
        taken.map(|taken| (taken.ns as f64 / 1e9, taken.source))
    }

    #[test]
    fn nginx_is_known_by_its_decimals() {
        for (rest, seconds) in [
            (" 0.125", 0.125),
            (" 512 0.125", 0.125),
            (" 0.125 0.120", 0.125),
            (" 0.002 0.125 .", 0.125),
            (" 3.42 0.125", 0.125),
            (" rt=0.125 uct=\"0.001\" urt=\"0.900\"", 0.125),
            (" \"0.125\" \"-\"", 0.125),
            (" \"10.0.0.1, 10.0.0.2\" 0.125 [up] 10.0.0.1:80", 0.125),
            (" 1700000000.123 0.125", 0.125),
            (" 0.1", 0.1),
            (" 0.125 \"3.42\"", 0.125),
            (" \"0.002531\"", 0.002_531),
            (" rt=0.500, urt=0.499", 0.5),
            (" rt=7.692, ua=x", 7.692),
            (" rt=0.5,urt=0.499,uct=0.001", 0.5),
            (" rt=0.500; urt=0.499;", 0.5),
            (" rt=\"0.500\", urt=\"0.499\"", 0.5),
            (" urt=0.499, rt=0.500", 0.5),
            (" time=1700000000.123 rt=0.5", 0.5),
            (" rt=0.125 urt=0.050, 0.070 : 0.900", 0.125),
        ] {
            assert_eq!(
                of(rest, TimeTaken::Guess),
                Some((seconds, Pointed)),
                "{rest}"
            );
        }
    }

    #[test]
    fn the_time_at_the_upstream_is_known_by_its_name_or_its_length() {
        let of = |rest: &str| {
            let at_server_ns = behind(rest.as_bytes(), TimeTaken::Guess, None).at_server_ns;
            at_server_ns.map(|ns| ns / 1_000_000)
        };
        for (rest, milliseconds) in [
            (" 0.125", None),
            (" 0.125 -", None),
            (" 0.125 0.120", Some(120)),
            (" 0.120 0.125", Some(120)),
            (" 0.125 0.001 0.090 0.120", Some(120)),
            (" 0.125 0.050, 0.070", Some(120)),
            (" 0.125 \"0.050, 0.070\"", Some(120)),
            (" \"0.125\" \"-, 0.070 : 0.010\"", Some(80)),
            (
                " rt=0.125 uct=\"0.001\" uht=\"0.110\" urt=\"0.120\"",
                Some(120),
            ),
            (" rt=0.125 urt=\"0.050, - : 0.070\"", Some(120)),
            (" rt=0.125 urt=\"-\"", None),
            (" rt=0.500, urt=0.499", Some(499)),
            (" rt=\"0.500\", urt=\"0.499\"", Some(499)),
            (" rt=0.500,urt=0.499,uct=0.001", Some(499)),
            (" rt=0.125 urt=0.050, 0.070", Some(120)),
            (" rt=0.125 urt=0.050, - : 0.070 uct=0.001", Some(120)),
            (" rt=0.125, urt=-, ua=x", None),
            (" 2500", None),
        ] {
            assert_eq!(of(rest), milliseconds, "{rest}");
        }
    }

    #[test]
    fn others_have_units_or_are_guessed() {
        assert_eq!(of(" 2500", TimeTaken::Guess), Some((0.0025, Guessed)));
        assert_eq!(of(" 2500", Milliseconds), Some((2.5, Given(Milliseconds))));
        assert_eq!(
            of(" 2500", Microseconds),
            Some((0.0025, Given(Microseconds)))
        );
        assert_eq!(of(" 2", Seconds), Some((2.0, Given(Seconds))));
        assert_eq!(of(" 2500", TimeTaken::None), None);
        assert_eq!(of(" 2500us", TimeTaken::Guess), Some((0.0025, WithUnit)));
        assert_eq!(
            of(" 17 \"r\" 12ms", TimeTaken::Guess),
            Some((0.012, WithUnit))
        );
        // %I %O %D: the time is at the end.
        assert_eq!(
            of(" 345 3456 12000", TimeTaken::Guess),
            Some((0.012, Guessed))
        );
        assert_eq!(
            of(" 345 12", Milliseconds),
            Some((0.012, Given(Milliseconds)))
        );
        assert_eq!(of(" 3 2 \"cookie\"", Seconds), Some((2.0, Given(Seconds))));
        assert_eq!(
            of(" duration=2500 17", TimeTaken::Guess),
            Some((0.0025, Guessed))
        );
        // The last is the ratio of gzip, and not $request_time.
        for rest in [
            "",
            " -",
            " \"-\"",
            " ucs=12",
            " words",
            " 1.2.3.4",
            " \"3.42\"",
            " \"2.9\"",
        ] {
            assert_eq!(of(rest, TimeTaken::Guess), None, "{rest}");
        }
    }

    #[test]
    fn fields_have_the_unit_of_their_format() {
        let of = |text: &str, unit| field_ns(text.as_bytes(), unit);
        assert_eq!(of("0.25", Unit::S), Some(250_000_000));
        assert_eq!(of("0.25", Unit::SecondsOrMs), Some(250_000_000));
        assert_eq!(of("250", Unit::SecondsOrMs), Some(250_000_000));
        assert_eq!(of("250ms", Unit::S), Some(250_000_000));
        assert_eq!(of("2m0.5s", Unit::S), Some(120_500_000_000));
        assert_eq!(of("1.5µs", Unit::S), Some(1500));
        assert_eq!(of("7", Unit::Ns), Some(7));
        for text in ["-", "-1", "", "1.2.3", "1e300", "5 parsecs"] {
            assert_eq!(of(text, Unit::S), None, "{text}");
        }
    }
}
