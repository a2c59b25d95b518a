//! A range is inside the file, whatever the header says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sooner_web::range::{Selection, parse};

fuzz_target!(|input: (u64, &str)| {
    let (len, header) = input;
    if let Selection::Part { first, last } = parse(header, len) {
        assert!(first <= last && last < len);
    }
});
