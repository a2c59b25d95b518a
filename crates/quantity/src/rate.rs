//! Rate of a link, printed as tc prints it: `100mbit`. Read in the forms that people type: `100M`,
//! `100 Mbit/s`, `100Mbps`, `12.5MB/s`.
//!
//! A unit ends in a word for bits or bytes, or is a prefix alone, which then counts bits. Where
//! only the case of a letter tells bits from bytes (`Mbps`, `MB/s`) the case decides; tc alone
//! takes `mbps` for bytes.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

/// Rate of a link in bits per second; never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(NonZeroU64);

/// A rate that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// The letters after the number are no unit.
    #[error("rate `{text}`: `{unit}` is not a unit of a rate; {USE}")]
    Unit {
        /// What was given.
        text: String,
        /// The part that is no unit.
        unit: String,
    },
    /// A number alone.
    #[error("rate `{text}`: its unit is missing; {USE}")]
    NoUnit {
        /// What was given.
        text: String,
    },
    /// Bits or bytes may be meant.
    #[error(
        "rate `{text}`: `{unit}` may mean bits or bytes; write {number}{prefix}bit, or {number}{}B/s",
        prefix.to_ascii_uppercase()
    )]
    Ambiguous {
        /// What was given.
        text: String,
        /// The part before the unit.
        number: String,
        /// The unit.
        unit: String,
        /// Its prefix.
        prefix: String,
    },
    /// The part before the unit is no number.
    #[error("rate `{text}`: `{number}` is not a decimal number; write for example 2.5mbit")]
    Number {
        /// What was given.
        text: String,
        /// The part that is no number.
        number: String,
    },
    /// The rate is 0, finer than one bit per second, or too large.
    #[error(
        "rate `{text}` is out of range; use a whole number of bits per second from 1bit to 1000000gbit"
    )]
    Range {
        /// What was given.
        text: String,
    },
}

/// The right forms, as messages show them.
const USE: &str = "use bit, kbit, mbit, gbit or MB/s, as in 100mbit";

/// As they are printed.
const UNITS: [(&str, u64); 4] = [
    ("gbit", 1_000_000_000),
    ("mbit", 1_000_000),
    ("kbit", 1_000),
    ("bit", 1),
];
/// In lower case; each is tried before those that it begins with.
const PREFIXES: [(&str, u64); 9] = [
    ("ti", 1 << 40),
    ("gi", 1 << 30),
    ("mi", 1 << 20),
    ("ki", 1 << 10),
    ("t", 1_000_000_000_000),
    ("g", 1_000_000_000),
    ("m", 1_000_000),
    ("k", 1_000),
    ("", 1),
];
const MAX_BITS_PER_SEC: u64 = 1_000_000_000_000_000;

impl Rate {
    /// A rate of so many bits per second; none if 0.
    pub fn from_bits_per_sec(bits_per_sec: u64) -> Option<Self> {
        NonZeroU64::new(bits_per_sec).map(Self)
    }

    /// Bits per second.
    pub fn bits_per_sec(self) -> u64 {
        self.0.get()
    }

    /// Bytes per second.
    pub fn bytes_per_sec(self) -> f64 {
        self.bits_per_sec() as f64 / 8.0
    }

    /// Time in ns to transmit `bytes`, rounded up so that a pacer using it never sends too early.
    pub fn transmission_ns(self, bytes: u64) -> u64 {
        let ns = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(self.bits_per_sec()));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let trimmed = text.trim();
        let unit_at = trimmed
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(unit_at);
        let unit = unit.trim_start();
        let number_error = || RateError::Number {
            text: text.into(),
            number: match number {
                "" => trimmed.into(),
                _ => number.into(),
            },
        };
        if number.is_empty() && !unit.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(number_error());
        }
        let scale = match bits_of(unit) {
            Unit::Bits(scale) => scale,
            Unit::Missing => return Err(RateError::NoUnit { text: text.into() }),
            Unit::Unknown => {
                return Err(RateError::Unit {
                    text: text.into(),
                    unit: unit.into(),
                });
            }
            Unit::Ambiguous(prefix) => {
                return Err(RateError::Ambiguous {
                    text: text.into(),
                    number: number.into(),
                    unit: unit.into(),
                    prefix: prefix.into(),
                });
            }
        };
        let bits_per_sec = scaled(number, scale).map_err(|problem| match problem {
            Problem::Number => number_error(),
            Problem::Range => RateError::Range { text: text.into() },
        })?;
        Self::from_bits_per_sec(bits_per_sec)
            .filter(|rate| rate.bits_per_sec() <= MAX_BITS_PER_SEC)
            .ok_or_else(|| RateError::Range { text: text.into() })
    }
}

enum Unit {
    /// So many bits.
    Bits(u64),
    Missing,
    Unknown,
    /// Bits or bytes, after this prefix.
    Ambiguous(&'static str),
}

fn bits_of(unit: &str) -> Unit {
    if unit.is_empty() {
        return Unit::Missing;
    }
    let lower = unit.to_ascii_lowercase();
    let known = PREFIXES.iter().find_map(|&(prefix, scale)| {
        let word = lower.strip_prefix(prefix)?;
        let of_second = ["/s", "/sec", "/second", "ps"]
            .iter()
            .find_map(|end| word.strip_suffix(end));
        let typed = &unit[prefix.len()..];
        Some(match (of_second.unwrap_or(word), of_second.is_some()) {
            ("bit" | "bits", _) => Unit::Bits(scale),
            ("byte" | "bytes", true) => Unit::Bits(8 * scale),
            // Capitals throughout say nothing.
            ("b", true) if typed == "BPS" => Unit::Ambiguous(prefix),
            ("b", true) if typed.starts_with('B') => Unit::Bits(8 * scale),
            ("b", true) => Unit::Bits(scale),
            ("b", false) => Unit::Ambiguous(prefix),
            ("", _) if !prefix.is_empty() => Unit::Bits(scale),
            _ => return None,
        })
    });
    known.unwrap_or(Unit::Unknown)
}

enum Problem {
    Number,
    Range,
}

/// `number` x `scale` in exact decimal arithmetic.
fn scaled(number: &str, scale: u64) -> Result<u64, Problem> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return Err(Problem::Number);
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 9 {
        return Err(Problem::Range);
    }
    let whole: u64 = whole.parse().map_err(|_| Problem::Range)?;
    let fraction_value: u64 = if fraction.is_empty() {
        0
    } else {
        fraction.parse().map_err(|_| Problem::Range)?
    };
    let parts = u128::from(fraction_value) * u128::from(scale);
    let one = 10u128.pow(fraction.len() as u32);
    if parts % one != 0 {
        return Err(Problem::Range);
    }
    u64::try_from(u128::from(whole) * u128::from(scale) + parts / one).map_err(|_| Problem::Range)
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits_per_sec = self.bits_per_sec();
        let (unit, scale) = UNITS
            .into_iter()
            .find(|&(_, scale)| bits_per_sec >= scale)
            .unwrap_or(("bit", 1));
        let (whole, rest) = (bits_per_sec / scale, bits_per_sec % scale);
        if rest == 0 {
            return write!(f, "{whole}{unit}");
        }
        let digits = scale.ilog10() as usize;
        let fraction = format!("{rest:0digits$}");
        write!(f, "{whole}.{}{unit}", fraction.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bits_per_sec(text: &str) -> u64 {
        text.parse::<Rate>().expect(text).bits_per_sec()
    }

    #[test]
    fn reads_every_unit_exactly() {
        assert_eq!(bits_per_sec("800bit"), 800);
        assert_eq!(bits_per_sec("64kbit"), 64_000);
        assert_eq!(bits_per_sec("100mbit"), 100_000_000);
        assert_eq!(bits_per_sec("2.5mbit"), 2_500_000);
        assert_eq!(bits_per_sec("0.1Gbit"), 100_000_000);
        assert_eq!(bits_per_sec(" 10 mbit "), 10_000_000);
        assert_eq!(bits_per_sec("1.2340000000000mbit"), 1_234_000);
    }

    #[test]
    fn prints_the_form_it_reads() {
        for text in [
            "1bit",
            "999bit",
            "1.5kbit",
            "100mbit",
            "37.5mbit",
            "1gbit",
            "1.000000001gbit",
            "1000000gbit",
        ] {
            assert_eq!(text.parse::<Rate>().expect(text).to_string(), text);
        }
    }

    #[test]
    fn reads_what_people_type() {
        for text in [
            "100M",
            "100m",
            "100Mbit",
            "100 Mbit/s",
            "100MBIT",
            "100mbits/s",
            "100Mb/s",
            "100mb/s",
            "100Mbps",
            "100mbps",
            "0.1G",
            "100000k",
            "100Mbit/sec",
            "12.5MB/s",
            "12.5MBps",
            "12500 kB/s",
            "12.5Mbyte/s",
            "12500000B/s",
            "100000000bps",
            "0.0001T",
        ] {
            assert_eq!(bits_per_sec(text), 100_000_000, "{text}");
        }
        assert_eq!(bits_per_sec("1g"), 1_000_000_000);
        assert_eq!(bits_per_sec("1MiB/s"), 8 << 20);
        assert_eq!(bits_per_sec("1Mibit/s"), 1 << 20);
        assert_eq!(bits_per_sec("1 Ki"), 1024);
    }

    #[test]
    fn an_unreadable_one_is_refused_with_a_right_form() {
        let message = |text: &str| text.parse::<Rate>().expect_err(text).to_string();
        for (text, said) in [
            (
                "100mb",
                "rate `100mb`: `mb` may mean bits or bytes; write 100mbit, or 100MB/s",
            ),
            (
                "100MB",
                "rate `100MB`: `MB` may mean bits or bytes; write 100mbit, or 100MB/s",
            ),
            (
                "5MBPS",
                "rate `5MBPS`: `MBPS` may mean bits or bytes; write 5mbit, or 5MB/s",
            ),
            (
                "100",
                "rate `100`: its unit is missing; use bit, kbit, mbit, gbit or MB/s, as in 100mbit",
            ),
            (
                "10 apples",
                "rate `10 apples`: `apples` is not a unit of a rate; use bit, kbit, mbit, gbit or MB/s, as in 100mbit",
            ),
            (
                "1e8bit",
                "rate `1e8bit`: `e8bit` is not a unit of a rate; use bit, kbit, mbit, gbit or MB/s, as in 100mbit",
            ),
            (
                "-5mbit",
                "rate `-5mbit`: `-5mbit` is not a decimal number; write for example 2.5mbit",
            ),
            (
                "",
                "rate ``: `` is not a decimal number; write for example 2.5mbit",
            ),
        ] {
            assert_eq!(message(text), said);
        }
        for text in [
            "12,5mbit",
            "100mbit/h",
            "100bytes",
            "100mbite",
            "3ms",
            "5/s",
            "5ps",
            "100é",
        ] {
            assert!(
                message(text).contains("is not a unit of a rate"),
                "{text}: {}",
                message(text)
            );
        }
        for text in ["mbit", ".5mbit", "1.mbit", "1.2.3mbit"] {
            assert!(message(text).contains("is not a decimal number"), "{text}");
        }
        for text in [
            "0mbit",
            "0.5bit",
            "1000001gbit",
            "99999999999999999999gbit",
            "1.0000000001gbit",
        ] {
            assert!(message(text).contains("out of range"), "{text}");
        }
    }

    #[test]
    fn transmission_takes_bits_over_rate_rounded_up() {
        let rate = |text: &str| text.parse::<Rate>().expect(text);
        assert_eq!(rate("10mbit").transmission_ns(1250), 1_000_000);
        assert_eq!(rate("3bit").transmission_ns(1), 2_666_666_667);
        assert_eq!(rate("1gbit").transmission_ns(0), 0);
        assert_eq!(rate("1bit").transmission_ns(u64::MAX), u64::MAX);
    }

    proptest! {
        #[test]
        fn printing_and_reading_are_inverse(bits_per_sec in 1..=MAX_BITS_PER_SEC) {
            let rate = Rate::from_bits_per_sec(bits_per_sec).expect("above 0");
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }

        #[test]
        fn reading_never_panics(text in ".{0,30}") {
            let _ = text.parse::<Rate>();
        }
    }
}
