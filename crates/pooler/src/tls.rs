//! Encryption on both sides: clients that ask for it or begin it at once, and servers that are
//! asked for it.
//!
//! Nothing that came in clear text before a handshake may be taken for what was sent after it
//! (CVE-2021-23214).

use crate::config::{Encryption, Endpoint, ServerAddress};
use crate::stream::Stream;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use sooner_config::{Misconfigured, Spanned};
use sooner_tls::{certificates, private_key, read_roots, system_roots};
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

/// What is spoken inside (ALPN), as IANA has it.
pub const PROTOCOL: &[u8] = b"postgresql";
/// SSLRequest.
const REQUEST: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";
const KEY: &str = "database.server";

/// Takes a client's handshake; `is_direct` where it has not asked first.
pub async fn accept(
    config: Arc<rustls::ServerConfig>,
    stream: TcpStream,
    is_direct: bool,
) -> io::Result<Stream> {
    let stream = TlsAcceptor::from(config).accept(stream).await?;
    if is_direct && stream.get_ref().1.alpn_protocol() != Some(PROTOCOL) {
        let words = "TLS without asking, and not for PostgreSQL (ALPN)";
        return Err(io::Error::other(words));
    }
    Ok(Stream::encrypted(TlsStream::from(stream)))
}

/// What encrypts connections to one server.
#[derive(Clone)]
pub struct Connector {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Connector {
    /// For a server, by its address; `None` where nothing is encrypted.
    pub fn for_server(address: &Spanned<ServerAddress>) -> Result<Option<Self>, Misconfigured> {
        let wrong = |what: String| Misconfigured::at(address, KEY, what);
        let server = address.get_ref();
        let (Endpoint::Tcp(host, _), true) =
            (&server.endpoint, server.encryption != Encryption::Disable)
        else {
            return Ok(None);
        };
        let name = ServerName::try_from(host.clone())
            .map_err(|_| wrong(format!("`{host}` is no name that a certificate can have")))?;
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier(server, provider).map_err(wrong)?);
        let mut config = match &server.certificate {
            Some((certificate, key)) => {
                let handle = |path: &std::path::Path| Spanned::new(address.span(), path.to_owned());
                let chain = certificates(&handle(certificate), KEY)?;
                let key = private_key(&handle(key), KEY)?;
                let with = builder.with_client_auth_cert(chain, key);
                with.map_err(|error| wrong(error.to_string()))?
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Some(Self { connector, name }))
    }

    /// Encrypts a new connection as the address says.
    pub async fn encrypt(
        &self,
        address: &ServerAddress,
        mut stream: TcpStream,
    ) -> io::Result<Stream> {
        if !address.is_direct {
            let agrees = ask(&mut stream).await?;
            if !agrees && address.encryption == Encryption::Prefer {
                return Ok(Stream::Tcp(stream));
            }
            if !agrees {
                let words = "it does not speak TLS, and sslmode wants it";
                return Err(io::Error::new(io::ErrorKind::Unsupported, words));
            }
        }
        let stream = self.connector.connect(self.name.clone(), stream).await?;
        Ok(Stream::encrypted(TlsStream::from(stream)))
    }
}

/// Asks a server for encryption: whether it agrees. What it says beyond its one byte is not read.
async fn ask(stream: &mut TcpStream) -> io::Result<bool> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    stream.write_all(REQUEST).await?;
    match stream.read_u8().await? {
        b'S' => Ok(true),
        b'N' => Ok(false),
        // A server that is full or too old says so in an error.
        _ => Err(io::Error::other(
            "it answers the request for TLS by neither yes nor no",
        )),
    }
}

fn verifier(
    server: &ServerAddress,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let strictness = server.encryption;
    if strictness < Encryption::VerifyCa {
        let inner = None;
        return Ok(Arc::new(Lenient { inner, provider }));
    }
    let roots = match &server.authorities {
        Some(path) => read_roots(path).map_err(|error| {
            format!(
                "no certificate can be read from {}: {error}",
                path.display()
            )
        })?,
        None => system_roots()
            .ok_or("the system has no file of trusted certificates; name one by sslrootcert")?,
    };
    let strict = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let strict = strict.build().map_err(|error| error.to_string())?;
    if strictness == Encryption::VerifyFull {
        return Ok(strict);
    }
    let inner = Some(strict);
    Ok(Arc::new(Lenient { inner, provider }))
}

/// Takes any name, and without `inner` any certificate; what the handshake proves is checked all
/// the same.
#[derive(Debug)]
struct Lenient {
    inner: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(strict) = &self.inner else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified =
            strict.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The name is looked at last: all else was good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

/// Asks whether the client's first byte begins a handshake, and leaves it where it is.
pub async fn begins_at_once(stream: &TcpStream) -> io::Result<bool> {
    /// How a handshake begins (RFC 8446, 5.1).
    const HANDSHAKE: u8 = 0x16;
    let mut first = [0];
    Ok(stream.peek(&mut first).await? == 1 && first[0] == HANDSHAKE)
}
