//! Whose certificates are trusted.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use std::path::Path;

/// Where systems keep the certificates they trust.
const SYSTEM_ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Those that the system trusts; `None` where it has no file of them.
pub fn system_roots() -> Option<RootCertStore> {
    SYSTEM_ROOTS
        .iter()
        .find_map(|path| read_roots(Path::new(path)).ok())
}

/// Those in a PEM file, at least one; else why there are none.
pub fn read_roots(path: &Path) -> Result<RootCertStore, String> {
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| error.to_string())?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        match certificate {
            // Systems ship certificates that no strict reader takes: no reason to refuse the others.
            Ok(certificate) => drop(roots.add(certificate)),
            Err(pem::Error::Io(error)) => return Err(error.to_string()),
            Err(_) => {}
        }
    }
    if roots.is_empty() {
        return Err("it holds none".into());
    }
    Ok(roots)
}
