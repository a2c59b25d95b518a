//! One program of all tests that use the crate from outside, because each program is linked anew.

mod futures;
mod rehearsals;
mod threads;
