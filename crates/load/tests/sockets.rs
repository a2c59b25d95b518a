//! The generator against a real server on loopback.

mod bodies;
mod closed;
mod exact;
mod few_streams;
mod going_away;
mod models;
mod nginx;
mod patience;
mod pool;
mod rate;
mod replay;
mod secured;
mod server;
mod sources;
mod surge;
