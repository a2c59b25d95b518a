//! One program of all tests that use the crate from outside, because each program is linked anew.

mod forecast;
mod formats;
mod in_turn;
mod lines;
mod queue;
mod queue_lines;
