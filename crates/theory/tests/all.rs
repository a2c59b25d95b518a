//! One program of all tests that use the crate from outside, because each program is linked anew.

mod bounds;
mod closed_networks;
mod golden_mg1;
mod limited_sharing;
