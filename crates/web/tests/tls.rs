//! TLS and the PROXY protocol on real sockets, with certificates made on the spot.

mod activation;
mod certificates;
mod clients;
mod mistakes;
mod proxy_protocol;
mod server;
mod support;
