//! A connection to a server of an upstream: reached, wrapped in TLS where asked, and ready to take
//! requests.

use super::config::UpstreamTable;
use super::endpoint::{Address, Endpoint, EndpointProtocol};
use super::fastcgi::Bridge;
use super::open_connections::Place;
use super::upstream_connection::{Transport, UpstreamConnection, handshake};
use crate::config::Misconfigured;
use rustix::net::sockopt;
use rustls::pki_types::ServerName;
use sooner_http::forwarding::request::Protocol;
use sooner_kernel::socket::set_user_timeout;
use sooner_tls::{Authorities, Trust};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use toml::Spanned;

/// TCP probes a connection that is silent for so long.
const PROBE_AFTER: Duration = Duration::from_secs(20);
/// And once more after so long.
const PROBE_EACH: Duration = Duration::from_secs(10);
/// It ends a connection when so many probes get no answer.
const PROBES_MAX: u32 = 3;
/// Over HTTP/2 it also ends one when the server's host takes nothing of what was sent for so long,
/// ms: all requests to the server would go there. Over HTTP/1 a server may leave an upload in its
/// socket for longer.
const UNACKNOWLEDGED_MS_MAX: u32 = 30_000;

/// Reaches one server.
pub struct Connector {
    endpoint: Endpoint,
    tls: Option<Tls>,
    bridge: Bridge,
}

/// TLS to one server, with and without the offer of HTTP/2.
struct Tls {
    authorities: Authorities,
    any: TlsConnector,
    http1: TlsConnector,
    name: ServerName<'static>,
}

/// The authorities that the servers of an upstream are trusted by; `None` where no server speaks
/// TLS.
pub fn authorities(table: &UpstreamTable) -> Result<Option<Authorities>, Misconfigured> {
    let speaks_tls = |text: &Spanned<String>| {
        Endpoint::parse(text.get_ref())
            .is_ok_and(|endpoint| endpoint.protocol == EndpointProtocol::Tls)
    };
    if !table.servers.iter().any(speaks_tls) {
        return Ok(None);
    }
    if let Some(ca) = &table.ca {
        let path = ca.get_ref();
        let read = Authorities::read(path).map_err(|error| {
            Misconfigured::at(
                ca,
                "upstream.ca",
                format!(
                    "no certificate can be read from {}: {error}",
                    path.display()
                ),
            )
        });
        return read.map(Some);
    }
    let of_system = Authorities::of_system().ok_or_else(|| {
        Misconfigured::at(
            &table.name,
            "upstream.ca",
            "the system has no file of trusted certificates; name one: ca = \"FILE.pem\"",
        )
    });
    of_system.map(Some)
}

impl Connector {
    /// For `endpoint`; a server that speaks TLS is trusted by `authorities`.
    pub fn new(
        endpoint: Endpoint,
        authorities: Option<&Authorities>,
    ) -> Result<Self, Misconfigured> {
        let tls = match (&endpoint.protocol, &endpoint.address, authorities) {
            (EndpointProtocol::Tls, Address::Tcp { host, .. }, Some(authorities)) => {
                Some(Tls::new(host, authorities.clone())?)
            }
            _ => None,
        };
        Ok(Self {
            bridge: Bridge::new(endpoint.to_string()),
            endpoint,
            tls,
        })
    }

    /// Whether both reach the same server in the same way.
    pub fn is_like(&self, other: &Self) -> bool {
        let authorities = |it: &Self| it.tls.as_ref().map(|tls| tls.authorities.clone());
        self.endpoint == other.endpoint && authorities(self) == authorities(other)
    }

    /// The server's address and protocol.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whether requests go through TLS.
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether a protocol can be switched there: HTTP/2 has no `Upgrade`, nor has FastCGI.
    pub fn can_switch(&self) -> bool {
        !matches!(
            self.endpoint.protocol,
            EndpointProtocol::Http2 | EndpointProtocol::FastCgi
        )
    }

    /// Whether connections outlive a request and take one after the other.
    pub fn keeps_connections(&self) -> bool {
        match self.endpoint.protocol {
            EndpointProtocol::Http1 | EndpointProtocol::Tls => true,
            EndpointProtocol::Http2 | EndpointProtocol::FastCgi => false,
        }
    }

    /// Connects, in `place` if that is counted; `http1_only` where the request cannot go over
    /// HTTP/2.
    pub async fn connect(
        &self,
        http1_only: bool,
        mut place: Option<Place>,
    ) -> io::Result<UpstreamConnection> {
        let mut note = |stream: BorrowedFd<'_>| match &mut place {
            Some(place) => place.connected(&stream),
            None => Ok(()),
        };
        let connection = match &self.endpoint.address {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path).await?;
                note(stream.as_fd())?;
                self.handshake(Box::new(stream)).await?
            }
            Address::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port))
                    .await
                    .map_err(true_cause)?;
                note(stream.as_fd())?;
                stream.set_nodelay(true)?;
                match &self.tls {
                    None => {
                        guard(&stream, self.protocol())?;
                        self.handshake(Box::new(stream)).await?
                    }
                    Some(tls) => tls.connect(stream, http1_only).await?,
                }
            }
        };
        Ok(connection.with_place(place))
    }

    /// What a server is spoken to in where nothing is negotiated.
    fn protocol(&self) -> Protocol {
        match self.endpoint.protocol {
            EndpointProtocol::Http2 => Protocol::Http2,
            EndpointProtocol::Http1 | EndpointProtocol::Tls | EndpointProtocol::FastCgi => {
                Protocol::Http1
            }
        }
    }

    async fn handshake(&self, stream: Box<dyn Transport>) -> io::Result<UpstreamConnection> {
        if self.endpoint.protocol != EndpointProtocol::FastCgi {
            return handshake(stream, self.protocol()).await;
        }
        let (near, slot) = self.bridge.begin(stream);
        let connection = handshake(Box::new(near), self.protocol()).await?;
        Ok(connection.with_slot(slot))
    }
}

/// Has TCP find out that the server's host, or the path to it, is gone.
fn guard(stream: &TcpStream, protocol: Protocol) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, PROBE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, PROBE_EACH)?;
    sockopt::set_tcp_keepcnt(stream, PROBES_MAX)?;
    match protocol {
        Protocol::Http1 => Ok(()),
        Protocol::Http2 => set_user_timeout(stream, UNACKNOWLEDGED_MS_MAX),
    }
}

/// Where nothing can be opened any more, looking up a name fails as if there were no such name.
fn true_cause(error: io::Error) -> io::Error {
    if error.raw_os_error().is_some() {
        return error;
    }
    match File::open("/dev/null") {
        Ok(_) => error,
        Err(lack) => lack,
    }
}

impl Tls {
    fn new(host: &str, authorities: Authorities) -> Result<Self, Misconfigured> {
        let wrong = |what: String| Misconfigured::without_place("upstream.servers", what);
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| wrong(format!("`{host}` is not a name a certificate can have")))?;
        let trust = Trust::Name(authorities.clone());
        let any = sooner_tls::client(trust, None, &[b"h2", b"http/1.1"]);
        let any = any.map_err(wrong)?;
        let mut http1 = any.clone();
        http1.alpn_protocols.clear();
        Ok(Self {
            authorities,
            any: TlsConnector::from(Arc::new(any)),
            http1: TlsConnector::from(Arc::new(http1)),
            name,
        })
    }

    async fn connect(&self, stream: TcpStream, http1_only: bool) -> io::Result<UpstreamConnection> {
        let connector = if http1_only { &self.http1 } else { &self.any };
        let stream = connector.connect(self.name.clone(), stream).await?;
        let protocol = match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => Protocol::Http2,
            _ => Protocol::Http1,
        };
        guard(stream.get_ref().0, protocol)?;
        handshake(Box::new(stream), protocol).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn tcp_watches_the_path_to_a_server() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        for (protocol, unacknowledged_ms_max) in [
            (Protocol::Http1, 0),
            (Protocol::Http2, UNACKNOWLEDGED_MS_MAX),
        ] {
            let stream = TcpStream::connect(address).await.unwrap();
            guard(&stream, protocol).unwrap();
            assert!(sockopt::socket_keepalive(&stream).unwrap());
            assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), PROBE_AFTER);
            assert_eq!(sockopt::tcp_keepintvl(&stream).unwrap(), PROBE_EACH);
            let set = sockopt::tcp_user_timeout(&stream).unwrap();
            assert_eq!(set, unacknowledged_ms_max);
        }
    }
}
