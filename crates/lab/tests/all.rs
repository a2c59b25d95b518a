//! One program of all tests that use the crate from outside, because each program is linked anew.

mod emulator_core;
mod experiments;
mod kept;
mod on_hosts;
mod pages;
mod support;
mod waiting;
