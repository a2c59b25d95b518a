//! One program of all tests that use the crate from outside, because each program is linked anew.

mod band_order;
mod bands;
mod classifier;
mod classifier_session;
mod leftovers;
mod namespace;
mod privilege;
mod requests_alike;
mod sealed_files_max;
mod sender;
mod tun;
mod workers;
