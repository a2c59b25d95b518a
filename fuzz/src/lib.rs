//! Fuzz targets of the parsers and of what decides, one file each, called by name.
//!
//! A library, so that the tests can play the seeds, and clippy can look, without libFuzzer and the
//! C++ compiler that it needs. The engine is `engine.rs`.

mod targets;

pub use targets::{NAMES, run};
