//! HTTP server: static files and a reverse proxy, HTTP/1 and 2, TLS; every response in the order
//! the uplink decides.
//!
//! hyper and h2 speak the protocols, rustls encrypts; this crate decides what to answer, keeps
//! files at hand, and tells the uplink how long every response is before its first byte.

mod acceptor;
pub mod access_log;
mod active_config;
pub mod admin;
pub mod auth;
mod body;
mod clock;
mod compress;
pub mod config;
pub mod files;
mod grace_end;
mod handshakes;
mod http1;
pub mod http2;
pub mod limits;
pub mod metrics;
mod peer;
pub mod proxy;
pub mod proxy_protocol;
mod request_body;
mod request_text;
mod response;
mod server;
mod service;
pub mod static_site;
pub mod tls;
mod worker;
mod workers;

pub use acceptor::Transport;
pub use active_config::Means;
pub use server::{Control, Listening, Server};
pub use sooner_uplink::Uplink;
pub use workers::reading_threads_max;
