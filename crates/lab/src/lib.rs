//! Experiments and the demo: measurements on this machine, with `sooner` and its peers as separate
//! processes.

pub mod demo;
pub mod emulator;
mod machine;
pub mod progress;
