//! The generator against a real server on loopback.

mod closed;
mod pool;
mod replay;
mod server;
