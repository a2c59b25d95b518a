//! Compression of responses on their way: `compress = true`.
//!
//! What may be compressed is decided in [`sooner_http::compression`], for a response of any source.
//! [`compressor::Compressor::reply`] takes every response of a site or route that has compression,
//! and gives it back as it is, or compressed in one of three ways:
//!
//! - **A file of up to 2 MiB** is compressed whole, once, before its first answer; its compressed
//!   form stays in memory ([`crate::files::VariantCache`]). The link knows its exact length.
//! - **A body that is here whole** before 64 KiB of it have come and without a pause (most of what
//!   backends answer) is compressed whole before its head is sent. The link knows its exact length.
//! - **Anything else** is compressed as it comes ([`CompressedBody`]), and what has come is sent
//!   whenever the source pauses. Where the length before compression is known, the link is told an
//!   estimate by what the beginning shrank to, and a greater one as soon as that proves too low.
//!
//! The work is done by threads that may block, one slice of 64 KiB at a time and on one processor
//! less than there are ([`workshop::Workshop`]): a slice may take longer than a turn on the link,
//! which lasts half a millisecond.

mod body;
mod collected;
mod compressor;
mod config;
mod counts;
mod encoder;
#[cfg(test)]
mod tests;
mod workshop;

pub use body::CompressedBody;
pub use config::{Compression, CompressionTable};
pub use counts::CompressionCounts;
