//! Which servers a file of certificates makes trusted: those with a certificate that leads to one
//! in it, for their name and in its time, and those that show one of the file's certificates
//! themselves, whatever names and dates it has.
//!
//! A server proves in the handshake that it has the key of what it shows.

use crate::tls::TlsError;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;

/// Trusts the certificates of a file, and what they lead to.
#[derive(Debug)]
pub(crate) struct OwnOrIssued {
    own: Vec<CertificateDer<'static>>,
    issued: Arc<WebPkiServerVerifier>,
}

impl OwnOrIssued {
    /// By the certificates in this PEM file.
    pub(crate) fn of(path: &Path) -> Result<Self, TlsError> {
        let unreadable = |reason: String| TlsError::Unreadable {
            path: path.into(),
            reason,
        };
        let found = CertificateDer::pem_file_iter(path);
        let found = found.map_err(|error| unreadable(error.to_string()))?;
        // What is no certificate is no reason to refuse the others.
        let own: Vec<CertificateDer<'static>> = found.filter_map(Result::ok).collect();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(own.iter().cloned());
        let provider = Arc::new(ring::default_provider());
        let issued = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let issued = issued.map_err(|error| unreadable(error.to_string()))?;
        Ok(Self { own, issued })
    }
}

impl ServerCertVerifier for OwnOrIssued {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.own.contains(end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        self.issued
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.issued
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.issued
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.issued.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
    use rustls::CertificateError;

    /// A certificate of `other.example`, valid until `year`.
    fn params(year: i32) -> CertificateParams {
        let mut params = CertificateParams::new(["other.example".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        params
    }

    fn verified(file: &str, shown: &CertificateDer<'_>, name: &str) -> Result<(), Error> {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), file).unwrap();
        let verifier = OwnOrIssued::of(path.path()).unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let verified = verifier.verify_server_cert(shown, &[], &name, &[], UnixTime::now());
        verified.map(|_| ())
    }

    #[test]
    fn the_file_s_own_certificate_is_trusted_whatever_it_says_of_itself() {
        let key = KeyPair::generate().unwrap();
        for year in [2021, 4096] {
            for is_ca in [IsCa::NoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
                let mut own = params(year);
                own.is_ca = is_ca;
                let own = own.self_signed(&key).unwrap();
                let stranger = params(year)
                    .self_signed(&KeyPair::generate().unwrap())
                    .unwrap();
                assert_eq!(verified(&own.pem(), own.der(), "127.0.0.1"), Ok(()));
                assert!(verified(&own.pem(), stranger.der(), "other.example").is_err());
            }
        }
    }

    #[test]
    fn what_an_authority_has_signed_is_checked_for_name_and_date() {
        let key = KeyPair::generate().unwrap();
        let mut authority = params(4096);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let file = authority.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(authority, key);
        let issued = |year| {
            let own = KeyPair::generate().unwrap();
            params(year).signed_by(&own, &issuer).unwrap()
        };
        let (good, old) = (issued(4096), issued(2021));
        assert_eq!(verified(&file, good.der(), "other.example"), Ok(()));
        let is = |found: Result<(), Error>, date: bool| match found {
            Err(Error::InvalidCertificate(why)) if date => matches!(
                why,
                CertificateError::Expired | CertificateError::ExpiredContext { .. }
            ),
            Err(Error::InvalidCertificate(why)) => matches!(
                why,
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
            ),
            _ => false,
        };
        assert!(is(verified(&file, good.der(), "127.0.0.1"), false));
        assert!(is(verified(&file, old.der(), "other.example"), true));
    }
}
