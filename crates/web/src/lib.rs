//! HTTP server: static files and a reverse proxy, HTTP/1 and 2, TLS; every response in the order the uplink decides.
//!
//! hyper and h2 speak the protocols, rustls encrypts; this crate decides what to answer, keeps files at hand, and tells
//! the uplink how long every response is before its first byte.

mod acceptor;
pub mod access_log;
pub mod admin;
mod answer;
mod body;
mod clock;
pub mod config;
mod connection;
pub mod files;
mod generation;
mod handshakes;
pub mod http2;
pub mod limits;
mod message;
pub mod metrics;
pub mod proxy;
pub mod proxy_protocol;
mod request_text;
mod server;
mod service;
pub mod static_site;
pub mod tls;

pub use acceptor::Speech;
pub use generation::Means;
pub use server::{Control, Listening, Server};
pub use sooner_uplink::Uplink;
