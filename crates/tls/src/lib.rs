//! From PEM files to what rustls needs: which certificate is for which name, which authorities'
//! certificates are trusted, and in one line why not.
//!
//! rustls does the work, with ring; what is decided here is which files are good enough to serve
//! with. No socket goes through this crate.

mod certificate;
mod client;
mod distinguished_name;
mod names;
mod pem;
mod prepare;
mod settings;
mod trust;

pub use certificate::{common_name_of, subject_of};
pub use client::{Identity, Trust, client};
pub use pem::{certificates, private_key};
pub use prepare::{Prepared, prepare, unreadable};
pub use settings::{TlsConfig, TlsVersion};
pub use trust::Authorities;
