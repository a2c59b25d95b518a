//! The certificates of authorities that a client trusts.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use std::path::Path;
use std::sync::Arc;

/// Certificates that are trusted, and all that they lead to.
#[derive(Clone, Debug)]
pub struct Authorities {
    pub(crate) roots: Arc<RootCertStore>,
    pub(crate) certificates: Arc<[CertificateDer<'static>]>,
}

impl PartialEq for Authorities {
    fn eq(&self, other: &Self) -> bool {
        self.certificates == other.certificates
    }
}

impl Authorities {
    /// Those that the system trusts, or `SSL_CERT_FILE` and `SSL_CERT_DIR` name; `None` where there
    /// are none.
    pub fn of_system() -> Option<Self> {
        Self::new(rustls_native_certs::load_native_certs().certs)
    }

    /// Those in a PEM file, at least one; else why there are none.
    pub fn read(path: &Path) -> Result<Self, String> {
        let found = CertificateDer::pem_file_iter(path).map_err(|error| error.to_string())?;
        let mut certificates = Vec::new();
        for certificate in found {
            match certificate {
                Ok(certificate) => certificates.push(certificate),
                Err(pem::Error::Io(error)) => return Err(error.to_string()),
                // What is no certificate is no reason to refuse the others.
                Err(_) => {}
            }
        }
        Self::new(certificates).ok_or_else(|| "it holds none".into())
    }

    fn new(certificates: Vec<CertificateDer<'static>>) -> Option<Self> {
        let mut roots = RootCertStore::empty();
        // Systems ship certificates that no strict reader takes: no reason to refuse the others.
        let (usable, _) = roots.add_parsable_certificates(certificates.iter().cloned());
        (usable > 0).then_some(Self {
            roots: Arc::new(roots),
            certificates: certificates.into(),
        })
    }
}
