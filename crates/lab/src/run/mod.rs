//! Runs an experiment: every case and seed, all its peers side by side.

pub mod load;
pub mod store;
