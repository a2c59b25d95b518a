//! TLS of a client: rustls with ring, TLS 1.3 and 1.2.
//!
//! Sessions are not resumed unless [`TlsOptions::resume`] is set: every new connection pays the
//! whole handshake, as that of a new visitor does. The handshake's cost here is part of the
//! response time, as it is a browser's, and of the processor share that the verdict judges.

use crate::failure::Failure;
use crate::own_certificate::OwnOrIssued;
use crate::transport::CountedStream;
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use sooner_tls::{Authorities, Trust};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Name of HTTP/1.1 in ALPN (RFC 7301, section 6).
const ALPN_HTTP1: &[u8] = b"http/1.1";
/// Name of HTTP/2 in ALPN (RFC 9113, section 3.1).
const ALPN_HTTP2: &[u8] = b"h2";
/// Sessions kept for resumption; servers give two tickets a connection, so this is more than are
/// used.
const SESSIONS_MAX: usize = 256;

/// How servers are trusted, and what is offered to them.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// Accept any certificate: for test servers with a self-signed one.
    pub insecure: bool,
    /// PEM file of the authorities to trust instead of the system's.
    pub authorities: Option<PathBuf>,
    /// Resume sessions where the server offers it.
    pub resume: bool,
    /// Ask for HTTP/2 instead of HTTP/1.1.
    pub http2: bool,
}

/// TLS that cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// No authorities were found on this system.
    #[error(
        "the system has no certificate authorities; give --ca FILE, or --insecure for a test server"
    )]
    NoAuthorities,
    /// The file of authorities cannot be read, or has none that can be used.
    #[error("{}: cannot read certificates ({reason}); give a PEM file", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The host is neither a DNS name nor an IP address.
    #[error(
        "`{0}` is not a name a certificate can be issued for; give a DNS name or an IP address"
    )]
    Name(String),
    /// The library refuses the authorities or the settings.
    #[error("cannot set up TLS: {0}")]
    Settings(String),
}

impl TlsOptions {
    /// Fails where the file of authorities holds none, also if it is not needed.
    pub fn check(&self) -> Result<(), TlsError> {
        match self.authorities.as_deref() {
            Some(path) => authorities(Some(path)).map(|_| ()),
            None => Ok(()),
        }
    }
}

/// TLS to one server.
#[derive(Clone, Debug)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    http2: bool,
    resumes: bool,
}

impl TlsClient {
    /// TLS to the server called `host`; fails without authorities to trust or with a name that none
    /// can certify.
    pub fn new(host: &str, options: &TlsOptions) -> Result<TlsClient, TlsError> {
        let name =
            ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Name(host.to_owned()))?;
        let given = options.authorities.as_deref();
        let trust = if options.insecure {
            Trust::Any
        } else {
            Trust::Name(authorities(given)?)
        };
        let protocol = if options.http2 {
            ALPN_HTTP2
        } else {
            ALPN_HTTP1
        };
        let config = sooner_tls::client(trust, None, &[protocol]);
        let mut config = config.map_err(TlsError::Settings)?;
        if let Some(path) = given.filter(|_| !options.insecure) {
            let verifier = OwnOrIssued::of(path)?;
            config
                .dangerous()
                .set_certificate_verifier(Arc::new(verifier));
        }
        config.resumption = if options.resume {
            Resumption::in_memory_sessions(SESSIONS_MAX)
        } else {
            Resumption::disabled()
        };
        Ok(TlsClient {
            config: Arc::new(config),
            name,
            http2: options.http2,
            resumes: options.resume,
        })
    }

    /// Whether sessions are resumed where the server offers it.
    pub fn resumes(&self) -> bool {
        self.resumes
    }

    /// Makes the handshake; fails with [`Failure::Certificate`], [`Failure::NoHttp2`] or
    /// [`Failure::Tls`].
    pub async fn handshake(
        &self,
        stream: CountedStream,
    ) -> Result<TlsStream<CountedStream>, Failure> {
        let connector = TlsConnector::from(self.config.clone());
        let stream = connector
            .connect(self.name.clone(), stream)
            .await
            .map_err(|error| Failure::from_io(&error))?;
        let agreed = stream.get_ref().1.alpn_protocol();
        if self.http2 && agreed != Some(ALPN_HTTP2) {
            return Err(Failure::NoHttp2);
        }
        Ok(stream)
    }
}

/// The authorities in `file`, or the system's.
fn authorities(file: Option<&Path>) -> Result<Authorities, TlsError> {
    match file {
        Some(path) => Authorities::read(path).map_err(|reason| TlsError::Unreadable {
            path: path.into(),
            reason,
        }),
        None => Authorities::of_system().ok_or(TlsError::NoAuthorities),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(options: &TlsOptions) -> String {
        TlsClient::new("localhost", options)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn what_cannot_be_trusted_says_what_would_be_right() {
        let missing = TlsOptions {
            authorities: Some("/no/such/file.pem".into()),
            ..TlsOptions::default()
        };
        assert!(message(&missing).contains("/no/such/file.pem"));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "no certificate").unwrap();
        let empty = TlsOptions {
            authorities: Some(file.path().into()),
            ..TlsOptions::default()
        };
        assert!(message(&empty).contains("PEM file"));
    }

    #[test]
    fn names_that_cannot_be_certified_are_refused() {
        let insecure = TlsOptions {
            insecure: true,
            ..TlsOptions::default()
        };
        assert!(TlsClient::new("127.0.0.1", &insecure).is_ok());
        assert!(TlsClient::new("example.org", &insecure).is_ok());
        assert!(matches!(
            TlsClient::new("not a name", &insecure),
            Err(TlsError::Name(_))
        ));
    }
}
