//! Scheduling for servers that already run, which know nothing of it.
//!
//! | module | what it does |
//! |---|---|
//! | [`postgres`] | what waits inside a PostgreSQL server |
//! | [`control`] | the socket on which a running one answers |
//! | [`web`] | the responses of web servers, ordered where they leave the host |
#![forbid(unsafe_code)]

pub mod control;
pub mod postgres;
pub mod web;
