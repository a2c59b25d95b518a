//! Numbers as PgBouncer reads them.

use sooner_pooler::config;

/// Longer ones mean without end, and the configuration has none.
const SECONDS_MAX: f64 = config::SECONDS_MAX as f64;

/// A whole number: decimal, octal after a 0, hexadecimal after 0x, with a sign.
pub fn whole(text: &str) -> Result<i64, String> {
    let bare = text.trim();
    let (is_negative, digits) = match bare.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, bare.strip_prefix('+').unwrap_or(bare)),
    };
    let lower = digits.to_ascii_lowercase();
    let (digits, radix) = match (lower.strip_prefix("0x"), lower.strip_prefix('0')) {
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) if !digits.is_empty() => (digits, 8),
        _ => (lower.as_str(), 10),
    };
    let number = i32::from_str_radix(digits, radix);
    match number {
        Ok(number) if !digits.starts_with(['+', '-']) => Ok(if is_negative {
            -i64::from(number)
        } else {
            i64::from(number)
        }),
        _ => Err(format!("{text:?} is no whole number; write digits")),
    }
}

/// A time in seconds, or with the unit written to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seconds {
    /// Rounded up: 0 means something else.
    pub whole: u64,
    /// Whether that changed it.
    pub is_rounded: bool,
}

/// Reads a time: `15`, `0.5`, `500ms`, `2min`.
pub fn seconds(text: &str) -> Result<Seconds, String> {
    let bare = text.trim();
    let end = bare.find(|letter: char| !letter.is_ascii_digit() && !".+-".contains(letter));
    let (number, unit) = bare.split_at(end.unwrap_or(bare.len()));
    let factor = match unit.trim() {
        "" | "s" => 1.0,
        "us" => 1e-6,
        "ms" => 1e-3,
        "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => {
            return Err(format!(
                "{text:?} is no time; write seconds, like 15 or 0.5"
            ));
        }
    };
    let value = number.parse::<f64>().map(|number| number * factor);
    match value {
        Ok(value) if value >= 0.0 => {
            let whole = value.min(SECONDS_MAX).ceil();
            Ok(Seconds {
                // Between 0 and a year, and whole.
                whole: whole as u64,
                is_rounded: (whole - value).abs() > 1e-9,
            })
        }
        _ => Err(format!(
            "{text:?} is no time; write seconds, like 15 or 0.5"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_c_s_prefixes() {
        let read = |text| whole(text).ok();
        assert_eq!(read("20"), Some(20));
        assert_eq!(read(" -1"), Some(-1));
        assert_eq!(read("0x10"), Some(16));
        assert_eq!(read("010"), Some(8));
        assert_eq!(read("0"), Some(0));
        for text in ["", "x", "2k", "--1", "0x", "99999999999", "1.5", "0x-1"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn times_are_rounded_up_so_that_none_becomes_never() {
        let read = |text| seconds(text).ok().map(|time| (time.whole, time.is_rounded));
        assert_eq!(read("15"), Some((15, false)));
        assert_eq!(read("15.0"), Some((15, false)));
        assert_eq!(read("0.1"), Some((1, true)));
        assert_eq!(read("0"), Some((0, false)));
        assert_eq!(read("2min"), Some((120, false)));
        assert_eq!(read("1500 ms"), Some((2, true)));
        assert_eq!(read("9999d"), Some((config::SECONDS_MAX, true)));
        for text in ["", "-1", "x", "1y", "1e400", "nan", "inf"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
