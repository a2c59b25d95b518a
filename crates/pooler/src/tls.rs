//! Encryption on both sides: clients request it or begin it at once, and the gate requests it of
//! servers.
//!
//! Nothing that came in clear text before a handshake may be taken for what was sent after it
//! (CVE-2021-23214).

use crate::config::{Encryption, Endpoint, ServerAddress};
use crate::stream::Stream;
use rustls::pki_types::ServerName;
use sooner_config::{Misconfigured, Spanned};
use sooner_tls::{Authorities, Trust, certificates, private_key};
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
        let name = ServerName::try_from(host.clone()).map_err(|_| {
            wrong(format!(
                "`{host}` is not a name that a certificate can have"
            ))
        })?;
        let identity = match &server.certificate {
            Some((certificate, key)) => {
                let handle = |path: &std::path::Path| Spanned::new(address.span(), path.to_owned());
                let chain = certificates(&handle(certificate), KEY)?;
                Some((chain, private_key(&handle(key), KEY)?))
            }
            None => None,
        };
        let trust = trust(server).map_err(wrong)?;
        let config = sooner_tls::client(trust, identity, &[PROTOCOL]).map_err(wrong)?;
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
            "it answers the request for TLS with neither yes nor no",
        )),
    }
}

fn trust(server: &ServerAddress) -> Result<Trust, String> {
    let strictness = server.encryption;
    if strictness < Encryption::VerifyCa {
        return Ok(Trust::Any);
    }
    let authorities = match &server.authorities {
        Some(path) => Authorities::read(path).map_err(|error| {
            format!(
                "no certificate can be read from {}: {error}",
                path.display()
            )
        })?,
        None => Authorities::of_system()
            .ok_or("the system has no file of trusted certificates; name one by sslrootcert")?,
    };
    Ok(if strictness == Encryption::VerifyFull {
        Trust::Name(authorities)
    } else {
        Trust::Chain(authorities)
    })
}

/// Asks whether the client's first byte begins a handshake, and leaves it where it is. A client
/// that is gone begins none.
pub async fn begins_at_once(stream: &TcpStream) -> bool {
    /// How a handshake begins (RFC 8446, 5.1).
    const HANDSHAKE: u8 = 0x16;
    let mut first = [0];
    matches!(stream.peek(&mut first).await, Ok(1)) && first[0] == HANDSHAKE
}
