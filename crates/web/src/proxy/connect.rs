//! A connection to a server of an upstream: reached, wrapped in TLS where asked, and ready to take requests.

use super::config::UpstreamTable;
use super::endpoint::{Endpoint, Place, Speech};
use super::request::Wire;
use super::upload::Upload;
use crate::config::Misconfigured;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper::rt::Executor;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::spawn_local;
use tokio_rustls::TlsConnector;

/// The longest head of a response, bytes.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// What HTTP/1 reads of a body at once at most, bytes; bounds what a connection holds.
const READ_BYTES_MAX: usize = 64 << 10;
/// What one response over HTTP/2 may have on its way, bytes.
const STREAM_WINDOW_BYTES: u32 = 128 << 10;
/// What all responses of one connection may: as much as the streams a server usually allows, so that one whose client is slow does not
/// hold up the others.
const CONNECTION_WINDOW_BYTES: u32 = 128 * STREAM_WINDOW_BYTES;
/// A connection with requests in flight that says nothing for so long is asked whether it lives.
const PING_AFTER: Duration = Duration::from_secs(20);
/// And has so long to say so.
const PING_WITHIN: Duration = Duration::from_secs(10);

/// Where systems keep the certificates they trust.
const SYSTEM_ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Reaches one server.
pub struct Connector {
    endpoint: Endpoint,
    tls: Option<Tls>,
}

/// TLS to one server, with and without the offer of HTTP/2.
struct Tls {
    any: TlsConnector,
    http1: TlsConnector,
    name: ServerName<'static>,
}

/// Takes requests for one connection.
pub enum Sender {
    /// One after the other.
    Http1(http1::SendRequest<Upload>),
    /// Many at once.
    Http2(http2::SendRequest<Upload>),
}

/// A request that got no response: why, and the request if nothing of it was sent.
pub type Unsent = (hyper::Error, Option<Request<Upload>>);

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// The certificates upstreams with TLS must lead to.
pub fn roots(table: &UpstreamTable) -> Result<RootCertStore, Misconfigured> {
    if let Some(ca) = &table.ca {
        let path = ca.get_ref();
        return read_roots(path).map_err(|error| {
            Misconfigured::at(
                ca,
                "upstream.ca",
                format!(
                    "no certificate can be read from {}: {error}",
                    path.display()
                ),
            )
        });
    }
    SYSTEM_ROOTS
        .iter()
        .find_map(|path| read_roots(Path::new(path)).ok())
        .ok_or_else(|| {
            Misconfigured::at(
                &table.name,
                "upstream.ca",
                "the system has no file of trusted certificates; name one: ca = \"FILE.pem\"",
            )
        })
}

fn read_roots(path: &Path) -> Result<RootCertStore, String> {
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

impl Connector {
    /// For `endpoint`; `roots` are asked for if it speaks TLS.
    pub fn new(
        endpoint: Endpoint,
        roots: impl FnOnce() -> Result<RootCertStore, Misconfigured>,
    ) -> Result<Self, Misconfigured> {
        let tls = match (&endpoint.speech, &endpoint.place) {
            (Speech::Tls, Place::Tcp { host, .. }) => Some(Tls::new(host, roots()?)?),
            _ => None,
        };
        Ok(Self { endpoint, tls })
    }

    /// The server's place and speech.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whether requests go through TLS.
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether a protocol can be switched there: HTTP/2 has no `Upgrade`.
    pub fn can_switch(&self) -> bool {
        self.endpoint.speech != Speech::Http2
    }

    /// Connects; `http1_alone` where the request cannot go over HTTP/2.
    pub async fn connect(&self, http1_alone: bool) -> io::Result<Sender> {
        match &self.endpoint.place {
            Place::Unix(path) => self.greet(Box::new(UnixStream::connect(path).await?)).await,
            Place::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                match &self.tls {
                    None => self.greet(Box::new(stream)).await,
                    Some(tls) => tls.connect(stream, http1_alone).await,
                }
            }
        }
    }

    async fn greet(&self, stream: Box<dyn Stream>) -> io::Result<Sender> {
        let wire = match self.endpoint.speech {
            Speech::Http2 => Wire::Http2,
            Speech::Http1 | Speech::Tls => Wire::Http1,
        };
        greet(stream, wire).await
    }
}

impl Tls {
    fn new(host: &str, roots: RootCertStore) -> Result<Self, Misconfigured> {
        let wrong = |what: String| Misconfigured::without_place("upstream.servers", what);
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| wrong(format!("`{host}` is no name a certificate can have")))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let http1 = TlsConnector::from(Arc::new(config.clone()));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            any: TlsConnector::from(Arc::new(config)),
            http1,
            name,
        })
    }

    async fn connect(&self, stream: TcpStream, http1_alone: bool) -> io::Result<Sender> {
        let connector = if http1_alone { &self.http1 } else { &self.any };
        let stream = connector.connect(self.name.clone(), stream).await?;
        let wire = match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => Wire::Http2,
            _ => Wire::Http1,
        };
        greet(Box::new(stream), wire).await
    }
}

async fn greet(stream: Box<dyn Stream>, wire: Wire) -> io::Result<Sender> {
    let io = TokioIo::new(stream);
    match wire {
        Wire::Http1 => {
            let (sender, connection) = http1::Builder::new()
                .max_header_size(HEAD_BYTES_MAX)
                .max_buf_size(READ_BYTES_MAX)
                .handshake(io)
                .await
                .map_err(io::Error::other)?;
            // How it ends, whoever waits for a response hears.
            spawn_local(async move { drop(connection.with_upgrades().await) });
            Ok(Sender::Http1(sender))
        }
        Wire::Http2 => {
            let (sender, connection) = http2::Builder::new(OnThisThread)
                .timer(TokioTimer::new())
                .initial_stream_window_size(STREAM_WINDOW_BYTES)
                .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
                .max_header_list_size(HEAD_BYTES_MAX as u32)
                .max_send_buf_size(READ_BYTES_MAX)
                .keep_alive_interval(PING_AFTER)
                .keep_alive_timeout(PING_WITHIN)
                .handshake(io)
                .await
                .map_err(io::Error::other)?;
            spawn_local(async move { drop(connection.await) });
            Ok(Sender::Http2(sender))
        }
    }
}

/// Runs what a connection spawns where the connection runs.
#[derive(Clone, Copy)]
struct OnThisThread;

impl<F: Future<Output = ()> + 'static> Executor<F> for OnThisThread {
    fn execute(&self, future: F) {
        spawn_local(future);
    }
}

impl Sender {
    /// What it speaks.
    pub fn wire(&self) -> Wire {
        match self {
            Self::Http1(_) => Wire::Http1,
            Self::Http2(_) => Wire::Http2,
        }
    }

    /// Sends a request; dropping the future takes it back (HTTP/1: by ending the connection).
    pub async fn send(&mut self, request: Request<Upload>) -> Result<Response<Incoming>, Unsent> {
        let sent = match self {
            Self::Http1(sender) => sender.try_send_request(request).await,
            Self::Http2(sender) => sender.try_send_request(request).await,
        };
        sent.map_err(|mut error: TrySendError<Request<Upload>>| {
            let request = error.take_message();
            (error.into_error(), request)
        })
    }
}
