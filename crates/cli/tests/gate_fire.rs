//! Clients that behave badly, and what becomes of their money.

pub mod accident;
pub mod chaos;
pub mod client;
pub mod ledger;
pub mod messages;
pub mod process;
pub mod random;
pub mod transfer;
pub mod wire;
