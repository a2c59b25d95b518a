//! Experiments and the demo: measurements on this machine, with `sooner` and its peers as separate
//! processes.

pub mod demo;
pub mod experiment;
mod machine;
pub mod pages;
pub mod progress;
pub mod run;
