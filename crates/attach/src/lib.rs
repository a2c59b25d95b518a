//! Scheduling for servers that already run, which know nothing of it.
//!
//! | module | what it does |
//! |---|---|
//! | [`postgres`] | what waits inside a PostgreSQL server |
//! | [`cpu`] | the workers of a server: which the processor goes to first |
//! | [`process_id`], [`record`], [`turn`], [`detach`] | what is changed of other processes, written down and put back |
//! | [`self_test`] | whether a change of a process has an effect here |
//! | [`control`] | the socket on which a running one answers |
//! | [`web`] | the responses of web servers, ordered where they leave the host |
#![forbid(unsafe_code)]

pub mod control;
pub mod cpu;
pub mod detach;
pub mod postgres;
pub mod process_id;
pub mod record;
pub mod self_test;
pub mod turn;
pub mod web;
