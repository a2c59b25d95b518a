//! The search on imagined links, whose rate only the test knows.

mod alone;
mod finding;
mod probing;
mod world;
