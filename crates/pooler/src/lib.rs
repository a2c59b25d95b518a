//! A pooler for PostgreSQL: clients outside, few server connections inside, and an order between.
//!
//! [`config`] says what a client may and in which class it is, [`net`] carries it out with sockets
//! and clocks, and [`measured`] keeps what it took. What the protocol means is decided in
//! `sooner-postgres`, who goes next in `sooner-gate`.

pub mod command;
pub mod config;
pub mod exposition;
pub mod measured;
pub mod net;
pub mod pgbouncer;
