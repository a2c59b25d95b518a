//! HTTP as decisions: what a request asks for, what a response may say, and what a proxy may pass
//! on.
//!
//! No I/O, no clock, no tokio: bytes and messages come in, times come in as values, decisions go
//! out. A module belongs here if it is a parser or a decision with a fuzz target or with tests of
//! its own. Everything is total: no input panics, and each bound stands beside its constant.

pub mod basic_auth;
pub mod compression;
pub mod conditional;
pub mod fastcgi;
pub mod forwarding;
pub mod frames;
pub mod host;
pub mod hpack;
pub mod json_fields;
pub mod lifetime;
pub mod multipart;
pub mod negotiation;
pub mod path_pattern;
pub mod priority;
pub mod proxy_protocol;
pub mod range;
pub mod rebinding;
pub mod redirect;
pub mod request_text;
pub mod target;
