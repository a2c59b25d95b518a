//! Tests that cannot run here say so in one form, which `cargo xtask test` counts.

use std::io::{Write, stderr};

/// Prints why a test did not run, past the test harness, which would keep it to itself.
pub fn skip(test: &str, reason: &str) {
    // A closed terminal must not fail a test.
    let _ = writeln!(stderr(), "skipped: {test}: {reason}");
}

/// Whether this process is root; prints that the test is skipped where it is not.
pub fn is_root(test: &str, purpose: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip(test, &format!("needs root {purpose}"));
    }
    is_root
}
