//! An uplink on real sockets.

mod engine;
mod sealed_files;
mod stream;
mod stream_flows;
mod threads;
mod tls;
