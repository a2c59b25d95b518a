//! The client of a connection, and what the connection came through.

use crate::access_log::Remote;
use crate::limits::ConnectionHandle;
use crate::service::Service;
use crate::tls::Framing;
use sooner_uplink::Flow;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// The client, and how it is connected.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The client as log lines name it.
    pub named: Arc<Remote>,
    /// The client's address, after the PROXY protocol where that is on.
    pub remote: SocketAddr,
    /// The address the client connected to.
    pub local: SocketAddr,
    /// What TLS found out; `None` in clear text.
    pub tls: Option<Arc<TlsPeer>>,
}

/// What the TLS handshake told of the client.
#[derive(Debug, Clone, Default)]
pub struct TlsPeer {
    /// The name the client requested (SNI).
    pub server_name: Option<String>,
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// The subject of the client's certificate, if it showed one that was accepted.
    pub client_subject: Option<String>,
    /// How what is written is cut into records.
    pub framing: Framing,
}

impl Peer {
    /// A client at `remote` that connected to `local`.
    pub fn new(remote: SocketAddr, local: SocketAddr, tls: Option<TlsPeer>) -> Self {
        Self {
            named: Arc::new(Remote::new(remote, tls.as_ref())),
            remote,
            local,
            tls: tls.map(Arc::new),
        }
    }

    /// The scheme of the URLs this peer sees.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

/// One client's connection: what serves it, and what it holds.
pub struct ConnectionContext {
    /// The client.
    pub peer: Peer,
    /// What answers its requests.
    pub service: Rc<Service>,
    /// The connection in the uplink.
    pub flow: Flow,
    /// The connection among all of the server.
    pub handle: Rc<ConnectionHandle>,
}
