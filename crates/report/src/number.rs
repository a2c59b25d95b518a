//! Numbers for people: three significant digits, plain units, never an exponent.
//!
//! Tables and labels must stay readable over six decades of response times, so the digits follow
//! the magnitude. What cannot be said (no samples, not finite) is a dash, never a zero.

/// What stands in a cell that has no value.
pub const NO_VALUE: &str = "-";

/// `value` with three significant digits (`0.00123`, `35.6`, `1970`); `-` when it is not finite.
pub fn significant(value: f64) -> String {
    if !value.is_finite() {
        return NO_VALUE.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor() as i32;
    // 9.996 rounds up to 10.0: take the magnitude after rounding to three digits
    let unit = 10f64.powi(magnitude - 2);
    let rounded = (value / unit).round() * unit;
    let decimals = (2 - rounded.abs().log10().floor() as i32).clamp(0, 9) as usize;
    format!("{rounded:.decimals$}")
}

/// A duration given in milliseconds, in the unit that reads best: `850 µs`, `35.6 ms`, `2.31 s`.
pub fn duration(ms: f64) -> String {
    let (value, unit) = match ms.abs() {
        _ if !ms.is_finite() => return NO_VALUE.to_owned(),
        small if small < 0.9995 => (ms * 1e3, "µs"),
        middle if middle < 999.5 => (ms, "ms"),
        _ => (ms / 1e3, "s"),
    };
    format!("{} {unit}", significant(value))
}

/// A size in bytes with decimal prefixes: `980 B`, `1.9 KB`, `3.41 MB`.
pub fn bytes(size_bytes: f64) -> String {
    with_prefix(
        size_bytes,
        &[("B", 1.0), ("KB", 1e3), ("MB", 1e6), ("GB", 1e9)],
    )
}

/// The sizes from `low` to `high` bytes: `1.2 KB to 1.4 KB`.
pub fn size_range(low: u64, high: u64) -> String {
    let (low, high) = (bytes(low as f64), bytes(high as f64));
    if low == high {
        low
    } else {
        format!("{low} to {high}")
    }
}

/// A rate in bits per second with decimal prefixes: `9.87 Mbit/s`.
pub fn bits_per_sec(rate: f64) -> String {
    with_prefix(
        rate,
        &[
            ("bit/s", 1.0),
            ("kbit/s", 1e3),
            ("Mbit/s", 1e6),
            ("Gbit/s", 1e9),
        ],
    )
}

/// A configured rate, which is a round number: `10 Mbit/s`, not `10.0`.
pub fn round_rate(rate_bits_per_sec: f64) -> String {
    let text = bits_per_sec(rate_bits_per_sec);
    let Some((digits, unit)) = text.split_once(' ') else {
        return text;
    };
    let digits = if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    };
    format!("{digits} {unit}")
}

/// A count with thousands separated: `12,345`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn with_prefix(value: f64, prefixes: &[(&str, f64)]) -> String {
    if !value.is_finite() {
        return NO_VALUE.to_owned();
    }
    let fits = |&&(_, factor): &&(&str, f64)| value.abs() >= factor * 0.9995;
    let (unit, factor) = prefixes.iter().rev().find(fits).unwrap_or(&prefixes[0]);
    format!("{} {unit}", significant(value / factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_at_every_magnitude() {
        let shown: Vec<String> = [0.0, 0.0012345, 0.9996, 9.996, 35.61, 999.6, 197_042.0, -2.5]
            .into_iter()
            .map(significant)
            .collect();
        assert_eq!(
            shown,
            [
                "0", "0.00123", "1.00", "10.0", "35.6", "1000", "197000", "-2.50"
            ]
        );
    }

    #[test]
    fn units_follow_the_magnitude() {
        assert_eq!(duration(0.85), "850 µs");
        assert_eq!(duration(35.61), "35.6 ms");
        assert_eq!(duration(999.7), "1.00 s");
        assert_eq!(bytes(980.0), "980 B");
        assert_eq!(bytes(3_410_000.0), "3.41 MB");
        assert_eq!(bits_per_sec(9_874_000.0), "9.87 Mbit/s");
        assert_eq!(
            [1e7, 2.5e6, 1e8].map(round_rate),
            ["10 Mbit/s", "2.5 Mbit/s", "100 Mbit/s"]
        );
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(999), "999");
    }

    #[test]
    fn what_is_not_a_number_is_a_dash() {
        for shown in [
            significant(f64::NAN),
            duration(f64::INFINITY),
            bytes(f64::NAN),
        ] {
            assert_eq!(shown, NO_VALUE);
        }
    }
}
