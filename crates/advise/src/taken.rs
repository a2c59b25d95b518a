//! The time that a response took: a number with a unit that the format knows, or one of those
//! behind a line of httpd's kind, where any operator puts what he likes.

use crate::formats::Unit;
use crate::words::{Kind, Words};

/// Names that a number behind a line may have where it is a time: `rt=0.125`.
const KEYS: [&[u8]; 5] = [b"rt", b"request_time", b"rtime", b"time", b"duration"];
/// Names that the time at the server behind a proxy may have.
const SERVER_KEYS: [&[u8]; 4] = [b"urt", b"upstream_response_time", b"upstream_time", b"ut"];
/// nginx writes times with so many digits behind the point, and nothing else.
const DECIMALS: usize = 3;
/// No response takes so long: what has more digits is the time of day.
const TIME_MAX_S: f64 = 1e8;

/// What the number behind a line of httpd's kind is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// A number behind the line, in the unit that the operator gave.
    Given,
    /// A whole number behind the line, which is only taken for microseconds.
    Guessed,
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

/// Numbers behind a line, by how they are written.
#[derive(Default)]
struct Numbers {
    /// The longest with nginx's three decimals.
    exact: Option<f64>,
    /// The longest of the others with three decimals.
    second: Option<f64>,
    pointed: Option<f64>,
    whole: Option<f64>,
    /// Of a name that says so.
    at_server_ns: Option<u64>,
    with_unit_ns: Option<u64>,
}

/// The times in the words behind a line. Of several with nginx's three decimals the longest is the
/// request's, because it takes longer than what its upstream does for it, and the next is the
/// upstream's, which takes longer than a part of it.
pub fn behind(rest: &[u8], unit: TimeTaken) -> Behind {
    if unit == TimeTaken::None {
        return Behind::default();
    }
    let numbers = numbers(rest, unit);
    let at_server_ns = match (numbers.second, unit) {
        (Some(second), TimeTaken::Guess | TimeTaken::Seconds) => nanoseconds(second, 1e9),
        _ => None,
    };
    Behind {
        taken: numbers.taken(unit),
        at_server_ns: numbers.at_server_ns.or(at_server_ns),
    }
}

fn numbers(rest: &[u8], unit: TimeTaken) -> Numbers {
    let mut found = Numbers::default();
    // What stood in a list before this word.
    let mut before = 0.0;
    for word in Words(rest) {
        if word.kind == Kind::Enclosed {
            continue;
        }
        let (text, is_in_list) = match word.text.strip_suffix(b",") {
            Some(text) if word.kind == Kind::Bare => (text, true),
            _ => (word.text, false),
        };
        let (text, has_key) = match text.iter().position(|byte| *byte == b'=') {
            Some(place) if KEYS.contains(&&text[..place]) => (&text[place + 1..], true),
            Some(place) if SERVER_KEYS.contains(&&text[..place]) => {
                let at_server_ns = list_ns(unquoted(&text[place + 1..]), Unit::S);
                found.at_server_ns = found.at_server_ns.or(at_server_ns);
                continue;
            }
            Some(_) => continue,
            None => (text, false),
        };
        let text = unquoted(text);
        let is_list = word.kind == Kind::Quoted && text.contains(&b',');
        let value = if is_list {
            exact_list(text)
        } else {
            decimal(text)
        };
        let Some(value) = value else {
            before = 0.0;
            found.with_unit_ns = found.with_unit_ns.or_else(|| with_unit(text));
            continue;
        };
        match text.iter().position(|byte| *byte == b'.') {
            _ if value >= TIME_MAX_S && unit != TimeTaken::Microseconds => {}
            Some(place) if has_key || is_list || text.len() - place - 1 == DECIMALS => {
                before += value;
                if is_in_list {
                    continue;
                }
                found.add_exact(before);
            }
            Some(_) => found.pointed = found.pointed.or(Some(value)),
            None if word.kind == Kind::Bare => found.whole = found.whole.or(Some(value)),
            None => {}
        }
        before = 0.0;
    }
    found
}

impl Numbers {
    fn add_exact(&mut self, value: f64) {
        match self.exact {
            Some(longest) if longest >= value => {
                self.second = Some(self.second.map_or(value, |second| second.max(value)));
            }
            longest => {
                self.second = longest;
                self.exact = Some(value);
            }
        }
    }

    fn taken(&self, unit: TimeTaken) -> Option<Taken> {
        if let Some(ns) = self.with_unit_ns {
            let source = Source::WithUnit;
            return Some(Taken { ns, source });
        }
        let of = |value: f64, unit_ns: f64, source| {
            nanoseconds(value, unit_ns).map(|ns| Taken { ns, source })
        };
        match (self.exact.or(self.pointed), self.whole, unit) {
            (Some(seconds), _, TimeTaken::Guess | TimeTaken::Seconds) => {
                of(seconds, 1e9, Source::Pointed)
            }
            (_, Some(value), TimeTaken::Guess) => of(value, 1e3, Source::Guessed),
            (_, Some(value), TimeTaken::Seconds) => of(value, 1e9, Source::Given),
            (pointed, whole, TimeTaken::Milliseconds) => of(whole.or(pointed)?, 1e6, Source::Given),
            (pointed, whole, TimeTaken::Microseconds) => of(whole.or(pointed)?, 1e3, Source::Given),
            _ => None,
        }
    }
}

/// The sum of a list of numbers with nginx's three decimals, some of which may be missing.
fn exact_list(text: &[u8]) -> Option<f64> {
    let is_exact = |one: &[u8]| {
        let point = one.iter().position(|byte| *byte == b'.');
        point.is_some_and(|place| one.len() - place - 1 == DECIMALS)
    };
    let mut sum = None;
    for one in parts_of_list(text).filter(|one| *one != b"-") {
        let value = decimal(one).filter(|_| is_exact(one))?;
        sum = Some(sum.unwrap_or(0.0) + value);
    }
    sum
}

/// nginx puts commas between the servers that were asked, and colons between groups of them.
fn parts_of_list(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| matches!(byte, b',' | b':'))
        .map(<[u8]>::trim_ascii)
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
        Unit::S => 1e9,
        Unit::Ms => 1e6,
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

    fn of(rest: &str, unit: TimeTaken) -> Option<(f64, Source)> {
        let taken = behind(rest.as_bytes(), unit).taken;
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
            let at_server_ns = behind(rest.as_bytes(), TimeTaken::Guess).at_server_ns;
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
            (" 2500", None),
        ] {
            assert_eq!(of(rest), milliseconds, "{rest}");
        }
    }

    #[test]
    fn others_have_units_or_are_guessed() {
        assert_eq!(of(" 2500", TimeTaken::Guess), Some((0.0025, Guessed)));
        assert_eq!(of(" 2500", TimeTaken::Milliseconds), Some((2.5, Given)));
        assert_eq!(of(" 2500", TimeTaken::Microseconds), Some((0.0025, Given)));
        assert_eq!(of(" 2", TimeTaken::Seconds), Some((2.0, Given)));
        assert_eq!(of(" 2500", TimeTaken::None), None);
        assert_eq!(of(" 2500us", TimeTaken::Guess), Some((0.0025, WithUnit)));
        assert_eq!(
            of(" 17 \"r\" 12ms", TimeTaken::Guess),
            Some((0.012, WithUnit))
        );
        for rest in ["", " -", " \"-\"", " ucs=12", " words", " 1.2.3.4"] {
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
