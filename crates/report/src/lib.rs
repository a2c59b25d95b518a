//! Tables, plots and HTML from measured runs.
//!
//! The input is a [`sooner_stats::Report`] and nothing else: whatever is shown can be computed
//! again from the JSON. [`table::render`] is for terminals and pipes, [`html::render`] gives one
//! file that needs no network, [`experiment::render`] one for all runs of an experiment,
//! [`curves::render`] one of curves, [`stacked::render`] one of bars in parts, [`finding`] says in
//! plain English what is seen, in both directions. [`whole_file`] is how pages and other results
//! become files.

pub mod columns;
mod compare;
pub mod context;
pub mod curves;
mod escape;
pub mod experiment;
pub mod finding;
mod groups;
pub mod html;
pub mod number;
mod plot;
pub mod stacked;
pub mod table;
pub mod whole_file;

pub use context::Context;
