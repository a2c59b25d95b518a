//! The scheduler without sockets.

mod connections;
mod multiplexed;
mod streams;
