//! Lines on standard error, where that can be written: a measurement goes on when their reader has
//! left. `eprintln!` would panic.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes one line.
pub fn say(text: impl Display) {
    // In one piece, so that lines of several threads do not mix.
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}
