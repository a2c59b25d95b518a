//! PostgreSQL's protocol for a pooler that decides who goes next.
//!
//! [`wire`] cuts the bytes of either direction into messages and writes the few that the pooler
//! sends itself. [`pipeline`] knows which messages the server has not answered yet, and so when its
//! connection is free for another client; [`rewriter`] passes messages on and gives prepared
//! statements names that hold on every connection, which [`statements`] keeps. [`sql`] reads what a
//! command leaves behind, [`session`] what a client and a server connection have between
//! transactions, [`parameters`] which settings follow a client, [`hints`] what a transaction says
//! of itself before it is let in, [`cycle`] whether it can be sent again, [`locks`] who waits for whom, [`preemption`] who makes room for a
//! transaction that waits, [`auth`] who a client is, and [`uri`] where a server is.
//! Nothing here does I/O, reads a clock or draws random numbers: these come in as values.

pub mod auth;
pub mod cycle;
pub mod hints;
pub mod locks;
pub mod parameters;
pub mod pipeline;
pub mod preemption;
pub mod rewriter;
#[cfg(test)]
mod sent;
pub mod session;
pub mod sql;
pub mod statements;
pub mod uri;
pub mod waited;
pub mod wire;
