//! Fixtures that tests and experiments share: a private PostgreSQL, nginx, PHP, child processes with
//! their messages, network namespaces, certificates, scratch folders, pages in a browser.
//!
//! Each fixture removes what it made when it is dropped. A test that lacks a program or a right
//! prints one line by [`skip()`] and ends; `cargo xtask test` counts those lines.

pub mod certificate;
pub mod child;
pub mod chromium;
pub mod exposition;
pub mod junit;
pub mod namespace;
pub mod nginx;
pub mod packet;
pub mod php;
pub mod port;
pub mod postgres;
pub mod program;
pub mod scratch;
pub mod skip;

pub use child::{ChildGuard, OwnedChild};
pub use skip::skip;
