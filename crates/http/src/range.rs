//! The `Range` request header (RFC 9110, 14.2): which bytes of a representation are wanted.
//!
//! A server may ignore any `Range`; this one ignores what it cannot read, other units, and more
//! than [`RANGES_MAX`] ranges, for which a client gets the whole. Ranges that overlap or touch are
//! joined, so that no byte is sent twice.

/// How many ranges are read: zsync asks for 20 at a time, dnf's zchunk for 256.
pub const RANGES_MAX: usize = 256;

/// The bytes `first..=last`, both below the length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// Position of the first byte.
    pub first: u64,
    /// Position of the last byte.
    pub last: u64,
}

/// What to send for a `Range` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Everything (status 200).
    Whole,
    /// One range (status 206).
    Part(ByteRange),
    /// Two to [`RANGES_MAX`] ranges, apart from each other, in the order in which the client
    /// requested them (status 206).
    Parts(Vec<ByteRange>),
    /// None of the requested bytes exists (status 416).
    Unsatisfiable,
}

/// What one range of the header comes to.
enum Spec {
    Range(ByteRange),
    Nothing,
    /// Satisfiable by the RFC, but no Content-Range can say it: the last bytes of nothing.
    Whole,
}

impl ByteRange {
    /// How many bytes it is; never zero.
    pub fn byte_count(self) -> u64 {
        self.last - self.first + 1
    }

    /// Whether there is no byte between the two, or some in both.
    fn touches(self, other: Self) -> bool {
        self.first <= other.last.saturating_add(1) && other.first <= self.last.saturating_add(1)
    }

    fn joined_with(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
        }
    }
}

/// Reads the value of a `Range` header for a representation of `len` bytes. Total; O(length of the
/// value).
pub fn parse(value: &str, len: u64) -> Selection {
    read(value, len).unwrap_or(Selection::Whole)
}

fn read(value: &str, len: u64) -> Option<Selection> {
    let (unit, set) = value.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let mut ranges = Vec::new();
    // A list may have empty elements (RFC 9110, 5.6.1).
    let specs = set
        .split(',')
        .map(|spec| spec.trim_matches([' ', '\t']))
        .filter(|spec| !spec.is_empty());
    let mut count = 0;
    for spec in specs {
        count += 1;
        match read_spec(spec, len)? {
            _ if count > RANGES_MAX => return None,
            Spec::Range(range) => add(&mut ranges, range),
            Spec::Nothing => {}
            Spec::Whole => return None,
        }
    }
    match (count, ranges.as_slice()) {
        (0, _) => None,
        (_, []) => Some(Selection::Unsatisfiable),
        (_, &[range]) => Some(Selection::Part(range)),
        _ => Some(Selection::Parts(ranges)),
    }
}

fn read_spec(spec: &str, len: u64) -> Option<Spec> {
    match spec.split_once('-')? {
        ("", suffix) => Some(last_bytes(position(suffix)?, len)),
        (first, "") => Some(from_to(position(first)?, u64::MAX, len)),
        (first, last) => {
            let (first, last) = (position(first)?, position(last)?);
            (first <= last).then(|| from_to(first, last, len))
        }
    }
}

fn last_bytes(count: u64, len: u64) -> Spec {
    match (count, len) {
        (0, _) => Spec::Nothing,
        (_, 0) => Spec::Whole,
        _ => Spec::Range(ByteRange {
            first: len.saturating_sub(count),
            last: len - 1,
        }),
    }
}

fn from_to(first: u64, last: u64, len: u64) -> Spec {
    // As nginx does: who asks for a file from its beginning gets it, though it is empty.
    if len == 0 && first == 0 {
        return Spec::Whole;
    }
    if first >= len {
        return Spec::Nothing;
    }
    Spec::Range(ByteRange {
        first,
        last: last.min(len - 1),
    })
}

/// Digits only; a number too large for any file counts as the largest.
fn position(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Adds a range, joined with those it touches, in the place of the first of them.
fn add(ranges: &mut Vec<ByteRange>, range: ByteRange) {
    let (mut joined, mut place) = (range, ranges.len());
    // What has been joined may touch what the range alone did not.
    while let Some(index) = ranges.iter().position(|other| other.touches(joined)) {
        joined = joined.joined_with(ranges.remove(index));
        place = place.min(index);
    }
    ranges.insert(place.min(ranges.len()), joined);
}

#[cfg(test)]
mod tests {
    use super::Selection::{Part, Parts, Unsatisfiable, Whole};
    use super::*;
    use proptest::prelude::*;

    fn range(first: u64, last: u64) -> ByteRange {
        ByteRange { first, last }
    }

    #[test]
    fn reads_single_ranges() {
        let part = |first, last| Part(range(first, last));
        for (value, len, selection) in [
            ("bytes=0-0", 10, part(0, 0)),
            ("bytes=2-5", 10, part(2, 5)),
            ("Bytes= 2-5 ", 10, part(2, 5)),
            ("bytes=2-", 10, part(2, 9)),
            ("bytes=2-99", 10, part(2, 9)),
            ("bytes=0-99999999999999999999999", 10, part(0, 9)),
            ("bytes=-3", 10, part(7, 9)),
            ("bytes=-30", 10, part(0, 9)),
            ("bytes=0-1,", 10, part(0, 1)),
            ("bytes=10-", 10, Unsatisfiable),
            ("bytes=99999999999999999999999-", 10, Unsatisfiable),
            ("bytes=-0", 10, Unsatisfiable),
            ("bytes=0-0", 0, Whole),
            ("bytes=0-", 0, Whole),
            ("bytes=5-", 0, Unsatisfiable),
            ("bytes=-5", 0, Whole),
        ] {
            assert_eq!(parse(value, len), selection, "{value} of {len}");
        }
    }

    #[test]
    fn reads_lists() {
        for (value, selection) in [
            ("bytes=0-1,4-5", Parts(vec![range(0, 1), range(4, 5)])),
            (
                "bytes= 8-8 ,\t0-1 ,, -1",
                Parts(vec![range(8, 9), range(0, 1)]),
            ),
            ("bytes=0-1,2-3", Part(range(0, 3))),
            ("bytes=0-5,3-7", Part(range(0, 7))),
            ("bytes=0-0,4-4,2-2,0-9", Part(range(0, 9))),
            (
                "bytes=6-6,0-0,2-2,1-1",
                Parts(vec![range(6, 6), range(0, 2)]),
            ),
            ("bytes=0-1,20-", Part(range(0, 1))),
            ("bytes=20-30,40-", Unsatisfiable),
            ("bytes=0-1,x", Whole),
            ("bytes=0-1,5-4", Whole),
        ] {
            assert_eq!(parse(value, 10), selection, "{value}");
        }
    }

    #[test]
    fn so_many_pieces_are_the_whole() {
        let list = |count: u64| {
            let specs: Vec<_> = (0..count).map(|n| format!("{0}-{0}", 2 * n)).collect();
            parse(&format!("bytes={}", specs.join(",")), 1000)
        };
        assert!(matches!(list(256), Parts(ranges) if ranges.len() == 256));
        assert_eq!(list(257), Whole);
    }

    #[test]
    fn ignores_what_it_cannot_read() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=a-b",
            "bytes=+1-2",
            "bytes=5-2",
            "bytes=1 - 2",
            "items=0-1",
            "bytes=1",
            "bytes=1-2-3",
            "=0-1",
        ] {
            assert_eq!(parse(value, 10), Whole, "{value}");
        }
    }

    proptest! {
        #[test]
        fn is_total_and_within_bounds(
            value in "(bytes=([0-9]{0,3}-[0-9]{0,21},?){0,20}|\\PC{0,30})",
            len in prop_oneof![0u64..2000, any::<u64>()],
        ) {
            let ranges = match parse(&value, len) {
                Part(range) => vec![range],
                Parts(ranges) => {
                    prop_assert!((2..=RANGES_MAX).contains(&ranges.len()));
                    ranges
                }
                Whole | Unsatisfiable => vec![],
            };
            for (index, range) in ranges.iter().enumerate() {
                prop_assert!(range.first <= range.last && range.last < len);
                for other in &ranges[..index] {
                    prop_assert!(!range.touches(*other));
                }
            }
        }

        #[test]
        fn covers_exactly_what_was_asked_for(asked in prop::collection::vec((0u64..60, 0u64..60), 1..8)) {
            let specs: Vec<_> = asked.iter().map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))).collect();
            let selection = parse(&format!("bytes={}", specs.join(",")), 60);
            let ranges = match selection {
                Part(range) => vec![range],
                Parts(ranges) => ranges,
                other => panic!("{other:?}"),
            };
            for byte in 0..60 {
                let wanted = asked.iter().any(|(a, b)| (a.min(b)..=a.max(b)).contains(&&byte));
                let count = ranges.iter().filter(|range| (range.first..=range.last).contains(&byte)).count();
                prop_assert_eq!(count, usize::from(wanted));
            }
        }
    }
}
