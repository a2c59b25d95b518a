//! Files below the roots of sites: opened safely, kept open, small ones kept in memory.
//!
//! A request for a file that is known costs no system call. What is known is checked again after a
//! second, so a changed file is a new [`File`] with a new entity tag. Responses under way finish
//! with the old one, if it is in memory or was replaced or removed; if it was overwritten where it
//! lies they end with an error, because what is left of the old version cannot be had any more.
//! The path of a root is looked at as often: it may lead to another directory by now.

mod cache;
mod content;
mod entry;
mod expires;
mod extra_headers;
mod file_systems;
mod folder;
mod identity;
pub(crate) mod media_type;
mod resource;
mod root;
mod root_path;
mod variants;

pub use cache::{CacheLimits, FileCache, FolderId};
pub(crate) use content::kept;
pub use entry::File;
pub use expires::{Expires, ExpiresConfig, Proxied, is_extension};
pub use extra_headers::{ExtraHeaderError, ExtraHeaders};
pub use folder::{Folder, Lookup};
pub use resource::{Resource, ResourceMaker};
pub use root::{FileError, Root, Symlinks};
pub use root_path::RootPath;
pub use variants::{VariantCache, VariantCell};
