//! The generator against a real server on loopback.

mod closed;
mod replay;
mod server;
