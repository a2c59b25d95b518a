//! Experiments and the demo: measurements on this machine, with `sooner` and its peers as separate
//! processes.
#![deny(clippy::print_stderr)]

pub mod clients;
pub mod counters;
pub mod demo;
pub mod emulator;
pub mod experiment;
pub mod gate_demo;
pub mod guest;
pub mod hosts;
pub mod known;
mod machine;
pub mod measure;
pub mod pages;
pub mod peers;
pub mod progress;
pub mod run;
mod said;
