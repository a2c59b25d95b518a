//! The few messages of rtnetlink (man 7 rtnetlink) Sooner needs: built and read as bytes, without
//! `unsafe`.
//!
//! [`message`] builds requests and reads replies, [`connection`] talks to the kernel, [`link`],
//! [`traffic`] and [`filter`] are the messages about devices, their queues, and the programs that
//! look at packets before these. Readers are total: a reply that is cut short or makes no sense
//! yields fewer attributes, never a panic.

pub mod connection;
pub mod filter;
pub mod link;
pub mod message;
pub mod traffic;

pub use connection::Connection;
pub use link::Link;
pub use message::{Request, attribute, u32_at};
