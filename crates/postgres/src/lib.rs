//! PostgreSQL's wire protocol for a proxy that decides who goes next.
//!
//! [`wire`] cuts the bytes of either direction into messages and writes the few that the proxy says itself. [`turn`] knows when a server
//! connection is free for another client, [`statements`] which server connection knows which prepared statement, and [`sql`] which commands
//! leave something behind in a server connection; [`auth`] finds out who a client is. None of it does I/O or reads a clock.

pub mod auth;
pub mod exchange;
pub mod net;
pub mod settings;
pub mod sql;
pub mod statements;
pub mod turn;
pub mod wire;
