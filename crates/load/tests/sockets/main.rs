//! The generator against a real server on loopback.

mod closed;
mod nginx;
mod pool;
mod replay;
mod secured;
mod server;
mod surge;
