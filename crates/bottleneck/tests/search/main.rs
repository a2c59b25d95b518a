//! The search on imagined links; only the test knows their rates.

mod alone;
mod finding;
mod probing;
mod world;
