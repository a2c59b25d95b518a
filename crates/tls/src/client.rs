//! TLS of a client: which servers it trusts, once for upstreams, databases and the load generator.
//!
//! Trusted is what leads to an authority, and a server that shows one of the trusted certificates
//! itself, as for curl, libpq and browsers: `openssl req -x509` says CA:TRUE of every self-signed
//! certificate, and WebPKI takes no authority for a server. Its name and its dates are checked
//! here.

use crate::trust::Authorities;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::sync::Arc;
use x509_parser::prelude::{ASN1Time, FromDer, X509Certificate};

/// Which servers are trusted. Whatever it is, a server proves that it has the key of what it shows.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Those of the requested name with a certificate of these authorities.
    Name(Authorities),
    /// Those with a certificate of these authorities, whatever its name (libpq's `verify-ca`).
    Chain(Authorities),
    /// Any (`--insecure`, libpq's `require`).
    Any,
}

/// A certificate with those that lead to its authority, and its key.
pub type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A client's configuration with ring, TLS 1.3 and 1.2, which offers `protocols` (ALPN) and shows
/// `identity`, if there is one. An error is one line without place.
pub fn client(
    trust: Trust,
    identity: Option<Identity>,
    protocols: &[&[u8]],
) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier::new(trust, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match identity {
        Some((chain, key)) => builder
            .with_client_auth_cert(chain, key)
            .map_err(|error| error.to_string())?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// Checks as WebPKI does, and knows the trusted certificates by themselves.
#[derive(Debug)]
struct Verifier {
    /// `None`: any certificate is trusted.
    by_chain: Option<Arc<WebPkiServerVerifier>>,
    trusted: Arc<[CertificateDer<'static>]>,
    checks_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn new(trust: Trust, provider: &Arc<CryptoProvider>) -> Result<Self, String> {
        let checks_name = matches!(trust, Trust::Name(_));
        let (by_chain, trusted) = match trust {
            Trust::Any => (None, Arc::default()),
            Trust::Name(authorities) | Trust::Chain(authorities) => {
                let (roots, provider) = (authorities.roots, provider.clone());
                let strict = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
                let strict = strict.map_err(|error| error.to_string())?;
                (Some(strict), authorities.certificates)
            }
        };
        Ok(Self {
            by_chain,
            trusted,
            checks_name,
            algorithms: provider.signature_verification_algorithms,
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(strict) = &self.by_chain else {
            return Ok(ServerCertVerified::assertion());
        };
        let by_chain =
            strict.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match by_chain {
            // The name is looked at last: all else was good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.checks_name => Ok(ServerCertVerified::assertion()),
            Err(_) if self.trusted.contains(end_entity) => {
                if self.checks_name {
                    verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                }
                verify_dates(end_entity, now)?;
                Ok(ServerCertVerified::assertion())
            }
            by_chain => by_chain,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
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
    if now > validity.not_after {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};
    use std::io::Write;
    use std::time::Duration;

    /// A certificate of `shop.example` that signs itself and says that it is an authority, as
    /// `openssl req -x509` makes one.
    fn signed_by_itself() -> rcgen::Certificate {
        let mut params = CertificateParams::new(vec!["shop.example".into()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2030, 1, 1);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap()
    }

    fn authorities(certificate: &rcgen::Certificate) -> Authorities {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(certificate.pem().as_bytes()).unwrap();
        Authorities::read(file.path()).unwrap()
    }

    fn is_trusted(trust: Trust, shown: &rcgen::Certificate, name: &str, year: u64) -> bool {
        let verifier = Verifier::new(trust, &Arc::new(ring::default_provider())).unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs((year - 1970) * 31_557_600));
        let verified = verifier.verify_server_cert(shown.der(), &[], &name, &[], now);
        verified.is_ok()
    }

    #[test]
    fn a_trusted_certificate_is_trusted_by_itself_and_no_other_is() {
        let (own, other) = (signed_by_itself(), signed_by_itself());
        let by_name = || Trust::Name(authorities(&own));
        assert!(is_trusted(by_name(), &own, "shop.example", 2025));
        assert!(!is_trusted(by_name(), &other, "shop.example", 2025));
        assert!(!is_trusted(by_name(), &own, "bank.example", 2025));
        assert!(!is_trusted(by_name(), &own, "shop.example", 2031));
        assert!(!is_trusted(by_name(), &own, "shop.example", 2019));
    }

    #[test]
    fn less_is_checked_where_less_is_wanted() {
        let (own, other) = (signed_by_itself(), signed_by_itself());
        let by_chain = || Trust::Chain(authorities(&own));
        assert!(is_trusted(by_chain(), &own, "bank.example", 2025));
        assert!(!is_trusted(by_chain(), &own, "bank.example", 2031));
        assert!(!is_trusted(by_chain(), &other, "shop.example", 2025));
        assert!(is_trusted(Trust::Any, &other, "bank.example", 2031));
    }
}
