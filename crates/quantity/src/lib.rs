//! Lengths of time, rates and sizes as people type them: `1h30m`, `100mbit`, `16KiB`.
//!
//! Flags, configuration files and model files all read them here, so that what works in one place
//! works in every other, and a mistake gets the same words. A text that cannot be read is refused
//! with a right form; one that can mean two things is refused with both.

pub mod duration;
pub mod rate;
pub mod size;

pub use duration::{DurationError, parse_duration, parse_duration_with_unit};
pub use rate::{Rate, RateError};
pub use size::{SizeError, parse_bytes};
