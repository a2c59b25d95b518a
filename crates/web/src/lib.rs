//! HTTP server: static files, HTTP/1.0 and 1.1, every response in the order the uplink decides.
//!
//! hyper speaks the protocol; this crate decides what to answer, keeps files at hand, and tells the uplink how long
//! every response is before its first byte.

pub mod access_log;
mod answer;
mod body;
mod conditional;
mod connection;
pub mod files;
mod listen;
pub mod range;
mod server;
pub mod target;

pub use listen::ListenError;
pub use server::{Listening, Server, StartError};
pub use sooner_uplink::Uplink;
