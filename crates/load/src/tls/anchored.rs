//! Trusts what leads to an authority, and a server whose certificate is itself one of those to trust, as curl and browsers do.
//!
//! `openssl req -x509` says CA:TRUE of every self-signed certificate, and WebPKI takes no authority for a server. Its name and its
//! dates are checked here.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use std::sync::Arc;
use x509_parser::prelude::{ASN1Time, FromDer, X509Certificate};

/// Checks as WebPKI does, and knows those to trust by themselves.
#[derive(Debug)]
pub struct Anchored {
    by_chain: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl Anchored {
    /// Trusts what `by_chain` does, and each of `trusted`.
    pub fn new(by_chain: Arc<WebPkiServerVerifier>, trusted: Vec<CertificateDer<'static>>) -> Self {
        Self { by_chain, trusted }
    }
}

impl ServerCertVerifier for Anchored {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let by_chain = self.by_chain.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        let is_trusted = |shown: &CertificateDer<'_>| {
            let shown = shown.as_ref();
            self.trusted.iter().any(|trusted| trusted.as_ref() == shown)
        };
        if by_chain.is_ok() || !is_trusted(end_entity) {
            return by_chain;
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        verify_dates(end_entity, now)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_chain.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_chain.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_chain.supported_verify_schemes()
    }
}

fn verify_dates(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let unreadable = || Error::from(CertificateError::BadEncoding);
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| unreadable())?;
    let seconds = i64::try_from(now.as_secs()).map_err(|_| unreadable())?;
    let now = ASN1Time::from_timestamp(seconds).map_err(|_| unreadable())?;
    let validity = parsed.validity();
    if now < validity.not_before {
        return Err(CertificateError::NotValidYet.into());
    }
    match now > validity.not_after {
        true => Err(CertificateError::Expired.into()),
        false => Ok(()),
    }
}
