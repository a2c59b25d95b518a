//! Rate of a link, written as tc writes it: `100mbit`.

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
    #[error("rate `{text}`: unknown unit `{unit}`; use bit, kbit, mbit or gbit, as in 100mbit")]
    Unit {
        /// What was given.
        text: String,
        /// The part that is no unit.
        unit: String,
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

const UNITS: [(&str, u64); 4] = [
    ("gbit", 1_000_000_000),
    ("mbit", 1_000_000),
    ("kbit", 1_000),
    ("bit", 1),
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
        let text_lower = text.trim().to_ascii_lowercase();
        let unit_at = text_lower
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text_lower.len());
        let (number, unit) = text_lower.split_at(unit_at);
        let unit = unit.trim_start();
        let scale = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|&(_, scale)| scale);
        let scale = scale.ok_or_else(|| RateError::Unit {
            text: text.into(),
            unit: unit.into(),
        })?;
        let bits_per_sec = scaled(number, scale).map_err(|problem| match problem {
            Problem::Number => RateError::Number {
                text: text.into(),
                number: number.into(),
            },
            Problem::Range => RateError::Range { text: text.into() },
        })?;
        Self::from_bits_per_sec(bits_per_sec)
            .filter(|rate| rate.bits_per_sec() <= MAX_BITS_PER_SEC)
            .ok_or_else(|| RateError::Range { text: text.into() })
    }
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
    fn an_unreadable_one_is_refused_with_the_units_named() {
        let message = |text: &str| text.parse::<Rate>().expect_err(text).to_string();
        assert_eq!(
            message("100mb"),
            "rate `100mb`: unknown unit `mb`; use bit, kbit, mbit or gbit, as in 100mbit"
        );
        assert!(message("100").contains("unknown unit ``"));
        assert!(message("-5mbit").contains("use bit, kbit, mbit or gbit"));
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
