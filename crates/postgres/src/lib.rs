//! PostgreSQL's protocol for a pooler that decides who goes next.
//!
//! [`wire`] cuts the bytes of either direction into messages and writes the few that the pooler
//! sends itself. [`turn`] knows when a server connection is free for another client, [`statements`]
//! which server connection knows which prepared statement, and [`sql`] which commands leave
//! something behind in a server connection; [`session`] asks the server what that is; [`said`] is
//! what a transaction says of itself before it is let in; [`auth`] finds out who a client is.
//! None of it does I/O, reads a clock or draws random numbers: these come in as values.

pub mod auth;
pub mod exchange;
pub mod said;
pub mod session;
pub mod settings;
pub mod sql;
pub mod statements;
pub mod turn;
pub mod wire;
