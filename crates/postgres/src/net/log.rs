//! Lines for the operator, on stderr: written by a thread that loses and counts what the reader does not take, and printable, because
//! clients choose names that stand in them.

pub use sooner_operate::finish;

/// One line.
pub fn log(line: &str) {
    sooner_operate::say_as("sooner gate", line);
}
