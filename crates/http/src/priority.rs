//! Priorities (RFC 9218): the Priority field, and what it and other hints make of a response's
//! class and urgency.

mod field;
mod signal;

pub use field::{DEFAULT_URGENCY, Priority, URGENCY_MAX};
pub use signal::{Hints, Rules, Signal};
