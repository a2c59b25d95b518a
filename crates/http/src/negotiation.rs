//! Content negotiation (RFC 9110, 12): which coding of a file, and which type of a listing, a
//! client prefers.

mod accept;
mod accept_encoding;
mod quality;

pub use accept::prefers_json;
pub use accept_encoding::{AcceptEncoding, Coding};
