//! A certificate for the servers of one run, made on the spot.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::hosts::SERVER_ADDRESS;

/// Files with a self-signed certificate of an elliptic curve (P-256) and its key.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate, PEM.
    pub certificate: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
}

impl Certificate {
    /// One for the server's address, in `folder`, for everybody to read, because servers without privilege need it too.
    pub fn make(folder: &Path) -> io::Result<Certificate> {
        let made = rcgen::generate_simple_self_signed([SERVER_ADDRESS.to_string()]);
        let made = made.map_err(io::Error::other)?;
        let files = Certificate {
            certificate: folder.join("certificate.pem"),
            key: folder.join("key.pem"),
        };
        fs::write(&files.certificate, made.cert.pem())?;
        fs::write(&files.key, made.signing_key.serialize_pem())?;
        Ok(files)
    }
}
