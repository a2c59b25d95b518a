//! PostgreSQL's wire protocol for a proxy that decides who goes next.
//!
//! [`wire`] cuts the bytes of either direction into messages and writes the few that the proxy says itself. [`turn`] knows when a server
//! connection is free for another client, [`statements`] which server connection knows which prepared statement, and [`sql`] which commands
//! leave something behind in a server connection; [`session`] asks the server what that is; [`said`] what a transaction says of itself before it is let in; [`auth`] finds out who a client is, [`config`] what it may and in which class it is, and
//! [`measured`] keeps what it took. None of it does I/O or reads a clock; [`net`] does both.

pub mod auth;
pub mod command;
pub mod config;
pub mod exchange;
pub mod exposition;
pub mod import;
pub mod measured;
pub mod net;
pub mod said;
pub mod session;
pub mod settings;
pub mod sql;
pub mod statements;
pub mod turn;
pub mod wire;
