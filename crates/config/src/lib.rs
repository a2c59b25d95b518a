//! Configuration files: TOML in which nothing is ignored, and every mistake as one line,
//! `FILE:LINE: KEY: what is wrong; what would be right`.
//!
//! The types of the tables stand with the code that acts on them; here is what they share.
//! [`read()`] is pure: text in, a value or one [`Misconfigured`] out, and [`SourceText`] knows the
//! place. What needs a look elsewhere (files, names of servers) is found by those who act on the
//! tables, with the same kind of mistake.

pub mod classes;
mod client_network;
mod key_path;
mod keys;
mod limit;
mod listening;
mod misconfigured;
mod nearest;
mod network;
mod printable;
pub mod quantity;
mod read;
mod source_text;
mod text;
mod wording;

pub use client_network::ClientNetwork;
pub use keys::keys;
pub use limit::{Limit, THROUGHPUT_LOSS, check_throughput_loss};
pub use listening::{Listening, check_listening};
pub use misconfigured::{Misconfigured, from_command_line};
pub use network::{Network, NetworkError};
pub use printable::{is_printable, printable};
pub use read::{mistakes, read};
pub use source_text::SourceText;
pub use text::parsed;
pub use toml::Spanned;
