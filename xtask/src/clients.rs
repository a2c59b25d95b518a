//! Processes that benchmarks start beside the servers: clients that wait, clients that attack, and a backend that works.
//! They are this program itself with another task, because they have to run in namespaces and on cores of their own.

pub mod attack;
pub mod backend;
mod frames;
pub mod idle;
mod secure;
