//! The `Range` request header (RFC 9110, 14.2): one range of bytes, or the whole.
//!
//! A server may ignore any `Range`; this one ignores what it cannot read, other units, and lists of ranges, for which a
//! client gets the whole.

/// What to send for a `Range` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// Everything (status 200).
    Whole,
    /// The bytes `first..=last`, both below the length (status 206).
    Part {
        /// Position of the first byte.
        first: u64,
        /// Position of the last byte.
        last: u64,
    },
    /// Nothing of what was asked for exists (status 416).
    Unsatisfiable,
}

/// Reads the value of a `Range` header for a representation of `len` bytes. Total; O(length of the value).
pub fn parse(value: &str, len: u64) -> Selection {
    read(value, len).unwrap_or(Selection::Whole)
}

fn read(value: &str, len: u64) -> Option<Selection> {
    let (unit, set) = value.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") || set.contains(',') {
        return None;
    }
    let (first, last) = set.trim_matches([' ', '\t']).split_once('-')?;
    match (first, last) {
        ("", suffix) => Some(last_bytes(position(suffix)?, len)),
        (first, "") => Some(from_to(position(first)?, u64::MAX, len)),
        (first, last) => {
            let (first, last) = (position(first)?, position(last)?);
            (first <= last).then(|| from_to(first, last, len))
        }
    }
}

fn last_bytes(count: u64, len: u64) -> Selection {
    match (count, len) {
        (0, _) => Selection::Unsatisfiable,
        // Satisfiable by the RFC, but no Content-Range can say it.
        (_, 0) => Selection::Whole,
        _ => Selection::Part {
            first: len.saturating_sub(count),
            last: len - 1,
        },
    }
}

fn from_to(first: u64, last: u64, len: u64) -> Selection {
    if first >= len {
        return Selection::Unsatisfiable;
    }
    Selection::Part {
        first,
        last: last.min(len - 1),
    }
}

/// Digits only; a number too large for any file counts as the largest.
fn position(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::Selection::{Part, Unsatisfiable, Whole};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_single_ranges() {
        let part = |first, last| Part { first, last };
        for (value, len, selection) in [
            ("bytes=0-0", 10, part(0, 0)),
            ("bytes=2-5", 10, part(2, 5)),
            ("Bytes= 2-5 ", 10, part(2, 5)),
            ("bytes=2-", 10, part(2, 9)),
            ("bytes=2-99", 10, part(2, 9)),
            ("bytes=0-99999999999999999999999", 10, part(0, 9)),
            ("bytes=-3", 10, part(7, 9)),
            ("bytes=-30", 10, part(0, 9)),
            ("bytes=10-", 10, Unsatisfiable),
            ("bytes=99999999999999999999999-", 10, Unsatisfiable),
            ("bytes=-0", 10, Unsatisfiable),
            ("bytes=0-0", 0, Unsatisfiable),
            ("bytes=-5", 0, Whole),
        ] {
            assert_eq!(parse(value, len), selection, "{value} of {len}");
        }
    }

    #[test]
    fn ignores_what_it_cannot_read() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=a-b",
            "bytes=+1-2",
            "bytes=5-2",
            "bytes=1 - 2",
            "items=0-1",
            "bytes=0-1,3-4",
            "bytes=0-1,",
            "bytes=1",
            "bytes=1-2-3",
            "=0-1",
        ] {
            assert_eq!(parse(value, 10), Whole, "{value}");
        }
    }

    proptest! {
        #[test]
        fn is_total_and_within_bounds(value in "(bytes=[0-9]{0,21}-[0-9]{0,21}|\\PC{0,30})", len: u64) {
            if let Part { first, last } = parse(&value, len) {
                prop_assert!(first <= last && last < len);
            }
        }
    }
}
