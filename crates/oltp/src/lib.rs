//! Transactions against PostgreSQL, and how long they take: what comes before a gate, or straight to a database.
//!
//! A [`Kit`] is a set of kinds of transactions with the data they need and what must hold of it whatever ran ([`tpcc`]). [`run`] has users
//! carry them out, open, closed or partly-open, in classes drawn by lot, and measures each from when it was wanted until it was committed.
//!
//! TPC-C is meant in its shape and not by its rules: no terminals, no keying times, no audit. Its figures compare with others of the same kit only.

mod error;
mod kit;
mod session;

pub mod run;
pub mod tpcc;

pub use error::{Failure, Unusable};
pub use kit::{Check, Ended, Kit};
pub use session::{Isolation, Place, Session};
