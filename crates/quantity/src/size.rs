//! Numbers of bytes as people type them: `16384`, `16KiB`, `30kB`, `1.5 GiB`. A number alone counts
//! bytes.
//!
//! `kB`, `MB` and `GB` are powers of ten, as disks and networks count; `KiB`, `MiB` and `GiB` are
//! powers of two, as memory does. A prefix alone (`16k`) means either, depending on the program
//! that people know, and is refused with both forms.

/// A number of bytes that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// No number, or an unknown unit.
    #[error("`{0}` is not a number of bytes; write for example 16384, 16KiB or 30kB")]
    Form(String),
    /// Powers of ten or of two may be meant.
    #[error(
        "`{text}` may mean powers of ten or of two; write {number}{upper}iB ({of_two} bytes each) or {number}{prefix}B ({of_ten})"
    )]
    Ambiguous {
        /// What was given.
        text: String,
        /// The part before the unit.
        number: String,
        /// The prefix as powers of two write it.
        upper: char,
        /// The prefix as powers of ten write it.
        prefix: char,
        /// Bytes of the unit as a power of two.
        of_two: u64,
        /// Bytes of the unit as a power of ten.
        of_ten: u64,
    },
    /// Not a whole number of bytes, or more than 64 bits count.
    #[error("`{0}` is out of range; write a whole number of bytes below 2^63")]
    Range(String),
}

/// Prefix of tens and of twos, with the bytes of each.
const PREFIXES: [(char, char, u64, u64); 4] = [
    ('k', 'K', 1_000, 1 << 10),
    ('M', 'M', 1_000_000, 1 << 20),
    ('G', 'G', 1_000_000_000, 1 << 30),
    ('T', 'T', 1_000_000_000_000, 1 << 40),
];

/// Reads one, from 0 to 2^63 - 1.
pub fn parse_bytes(text: &str) -> Result<u64, SizeError> {
    let wrong = || SizeError::Form(text.into());
    let trimmed = text.trim();
    let at = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(at);
    let unit = unit.trim_start().to_ascii_lowercase();
    let scale = match unit.as_str() {
        "" | "b" | "byte" | "bytes" => 1,
        _ => {
            let known = PREFIXES
                .iter()
                .find(|(prefix, ..)| unit.starts_with(prefix.to_ascii_lowercase()));
            let &(prefix, upper, of_ten, of_two) = known.ok_or_else(wrong)?;
            match &unit[1..] {
                "b" | "byte" | "bytes" => of_ten,
                "i" | "ib" | "ibyte" | "ibytes" => of_two,
                "" if is_decimal(number) => {
                    return Err(SizeError::Ambiguous {
                        text: text.into(),
                        number: number.into(),
                        upper,
                        prefix,
                        of_two,
                        of_ten,
                    });
                }
                _ => return Err(wrong()),
            }
        }
    };
    if !is_decimal(number) {
        return Err(wrong());
    }
    scaled(number, scale).ok_or_else(|| SizeError::Range(text.into()))
}

/// Digits, perhaps with a point and digits behind it.
fn is_decimal(number: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match number.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(number),
    }
}

/// `number` x `scale` exactly; `None` where that is no whole number of bytes, or too many.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    // The finest unit has twelve digits behind the point.
    let one = 10_u128.checked_pow(u32::try_from(fraction.len()).ok().filter(|n| *n <= 18)?)?;
    let fraction: u128 = if fraction.is_empty() {
        0
    } else {
        fraction.parse().ok()?
    };
    let parts = fraction * u128::from(scale);
    if !parts.is_multiple_of(one) {
        return None;
    }
    let whole = whole.parse::<u128>().ok()?.checked_mul(scale.into())?;
    let bytes = whole.checked_add(parts / one)?;
    u64::try_from(bytes).ok().filter(|bytes| *bytes < 1 << 63)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_read_as_people_type_them() {
        for (text, bytes) in [
            ("0", 0),
            ("16384", 16_384),
            ("1514b", 1_514),
            ("30kb", 30_000),
            ("30 kB", 30_000),
            ("16KiB", 16_384),
            ("16kib", 16_384),
            ("64 MiB", 64 << 20),
            ("1.5GiB", 3 << 29),
            ("0.5kB", 500),
            ("2MB", 2_000_000),
            ("1 TB", 1_000_000_000_000),
            ("7 bytes", 7),
            (" 1Gi ", 1 << 30),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn an_unreadable_one_is_refused_with_a_right_form() {
        let said = |text: &str| parse_bytes(text).expect_err(text).to_string();
        for text in [
            "",
            "kb",
            "-1",
            "+5",
            "1e3",
            "1.2.3kB",
            ".5kB",
            "5.kB",
            "10 apples",
            "16kbit",
            "100é",
            "k",
            "5 5",
        ] {
            assert_eq!(
                said(text),
                format!(
                    "`{text}` is not a number of bytes; write for example 16384, 16KiB or 30kB"
                )
            );
        }
        assert_eq!(
            said("16k"),
            "`16k` may mean powers of ten or of two; write 16KiB (1024 bytes each) or 16kB (1000)"
        );
        assert_eq!(
            said("2M"),
            "`2M` may mean powers of ten or of two; write 2MiB (1048576 bytes each) or 2MB (1000000)"
        );
        for text in ["0.5", "0.0001kB", "9223372036854775808", "99999999TiB"] {
            assert!(said(text).contains("is out of range"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_unit_scales_by_itself(number in 0_u64..8_000_000) {
            for (unit, bytes) in [
                ("", 1), ("B", 1), ("kB", 1_000), ("KiB", 1 << 10), ("MB", 1_000_000),
                ("MiB", 1 << 20), ("GB", 1_000_000_000), ("GiB", 1 << 30), ("TiB", 1 << 40),
            ] {
                let expected = number.checked_mul(bytes).filter(|bytes| *bytes < 1 << 63);
                prop_assert_eq!(parse_bytes(&format!("{number}{unit}")).ok(), expected);
                prop_assert_eq!(parse_bytes(&format!("{number} {}", unit.to_lowercase())).ok(), expected);
            }
        }

        #[test]
        fn reading_never_panics(text in ".{0,30}") {
            let _ = parse_bytes(&text);
        }

        #[test]
        fn reading_never_panics_near_right_forms(text in "[0-9.]{0,25} ?[kmgtKMGTib]{0,4}") {
            let _ = parse_bytes(&text);
        }
    }
}
