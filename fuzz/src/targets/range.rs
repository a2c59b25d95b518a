//! Ranges are inside the file and apart from each other, whatever the header says.

use sooner_http::range::{RANGES_MAX, Selection, parse};

/// Tries one input.
pub fn run(input: (u64, &str)) {
    let (len, header) = input;
    let mut ranges = match parse(header, len) {
        Selection::Part(range) => vec![range],
        Selection::Parts(ranges) => ranges,
        Selection::Whole | Selection::Unsatisfiable => return,
    };
    assert!(ranges.len() <= RANGES_MAX);
    ranges.sort_by_key(|range| range.first);
    for range in &ranges {
        assert!(range.first <= range.last && range.last < len);
    }
    for pair in ranges.windows(2) {
        assert!(pair[0].last + 1 < pair[1].first, "they touch");
    }
}
