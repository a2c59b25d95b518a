//! What an operator is told while the server runs.
//!
//! Standard error may be a file on a full disk, or a pipe whose reader has died; that must not end what was going to be told of, and
//! `eprintln!` panics then.

use std::fmt::Display;
use std::io::{Write, stderr};

/// Writes one line to standard error, if that can be written.
pub fn say(line: impl Display) {
    // In one piece, so that lines of several threads do not mix. Nobody is left to be told of a failure.
    let _ = stderr().write_all(format!("sooner: {line}\n").as_bytes());
}
