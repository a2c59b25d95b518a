//! One program of all tests that use the crate from outside, because each program is linked anew.

mod begins;
mod imagined;
mod known_beforehand;
mod one_processor;
