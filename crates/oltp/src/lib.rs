//! Transactions against PostgreSQL, and how long they take: what comes before a gate, or straight
//! to a database.
//!
//! A [`Kit`] is a set of kinds of transactions with the data they need and what must hold of it
//! whatever ran ([`tpcc`], [`tpcw`]). [`run`] has users carry them out, open, closed or
//! partly-open, in classes drawn by lot, and measures each from when it was wanted until it was
//! committed.
//!
//! TPC-C and TPC-W are meant in their shape and not by their rules: no terminals, no browsers, no
//! audit. Their figures compare with others of the same kit only.

mod draw;
mod error;
mod kit;
mod numbered;
mod rows;
mod session;

pub mod run;
pub mod tpcc;
pub mod tpcw;

pub use error::{Failure, Unusable};
pub use kit::{Check, Ended, Kit};
pub use session::{DatabaseUrl, Isolation, Session, Statements};
