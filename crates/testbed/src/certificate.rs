//! A certificate for the servers of one run, made on the spot.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

/// Files with a self-signed certificate of an elliptic curve (P-256) and its key.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate, PEM.
    pub certificate: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
}

impl Certificate {
    /// One for these names and addresses, in `folder`; every user may read both files, because
    /// servers without privilege need them.
    pub fn make(folder: &Path, names: &[&str]) -> io::Result<Certificate> {
        Self::write(folder, params(names)?)
    }

    /// One that is an authority as well, as `openssl req -x509` makes it.
    pub fn make_authority(folder: &Path, names: &[&str]) -> io::Result<Certificate> {
        let mut params = params(names)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self::write(folder, params)
    }

    /// The authority in `folder`, made if it is not there yet.
    pub fn of_authority(folder: &Path, names: &[&str]) -> io::Result<Certificate> {
        let made = Self::files(folder);
        if made.certificate.exists() {
            Ok(made)
        } else {
            Self::make_authority(folder, names)
        }
    }

    fn files(folder: &Path) -> Certificate {
        Certificate {
            certificate: folder.join("certificate.pem"),
            key: folder.join("key.pem"),
        }
    }

    fn write(folder: &Path, params: CertificateParams) -> io::Result<Certificate> {
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let certificate = params.self_signed(&key).map_err(io::Error::other)?;
        let files = Self::files(folder);
        fs::write(&files.certificate, certificate.pem())?;
        fs::write(&files.key, key.serialize_pem())?;
        Ok(files)
    }
}

fn params(names: &[&str]) -> io::Result<CertificateParams> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    CertificateParams::new(names).map_err(io::Error::other)
}
