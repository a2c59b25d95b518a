//! The `sooner` binary.
fn main() {}
