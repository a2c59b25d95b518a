//! The few messages of rtnetlink (man 7 rtnetlink) Sooner needs: built and read as bytes, without `unsafe`.
//!
//! [`message`] builds requests and reads replies, [`connection`] talks to the kernel, [`link`] reads what it says of a device.
//! Readers are total: a reply that is cut short or makes no sense yields fewer attributes, never a panic.

pub mod connection;
pub mod link;
pub mod message;

pub use connection::Connection;
pub use link::Link;
pub use message::{Request, attribute, attributes, u16_at, u32_at, u64_at};
