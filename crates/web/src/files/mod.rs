//! Files below one root: opened safely, kept open, small ones kept in memory.
//!
//! A request for a file that is known costs no system call. What is known is checked again after a second, so a
//! changed file is a new [`File`] with a new entity tag, while responses under way finish with the old one.

mod cache;
mod content;
mod entry;
mod identity;
mod root;

pub use cache::{CacheLimits, FileCache, Found};
pub use entry::File;
pub use root::{FileError, Root};
