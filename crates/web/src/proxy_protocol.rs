//! The PROXY protocol: a proxy in front names the client before the client's first byte.
//!
//! Any client could say so, therefore only the addresses named in the configuration are believed,
//! and from those a header is demanded: where it is optional, a client behind the proxy could write
//! one of its own.

use crate::config::Misconfigured;
use serde::Deserialize;
use sooner_config::Network;
use sooner_http::proxy_protocol::{Addresses, HeaderError, parse};
use sooner_uplink::GatedStream;
use std::io;
use std::net::IpAddr;
use std::time::Duration;
use thiserror::Error;
use tokio::io::AsyncReadExt;
use toml::Spanned;

/// Bytes looked at once; most headers are shorter.
const PEEK_BYTES: usize = 256;

/// The `[proxy_protocol]` table.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyProtocolConfig {
    /// Addresses and networks of the proxies in front, such as `10.0.0.0/8`; their connections must
    /// begin with a header.
    pub from: Vec<Spanned<String>>,
}

/// The proxies that may name the client of a connection; none by default.
#[derive(Debug, Clone, Default)]
pub struct Senders(Vec<Network>);

impl Senders {
    /// The proxies that the table names.
    pub fn new(config: &ProxyProtocolConfig) -> Result<Self, Misconfigured> {
        let network = |text: &Spanned<String>| {
            let network = text.get_ref().parse::<Network>();
            network.map_err(|error| Misconfigured::at(text, "proxy_protocol.from", error))
        };
        let networks = config.from.iter().map(network).collect::<Result<_, _>>()?;
        Ok(Self(networks))
    }

    /// Whether a connection from `address` begins with a header.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

/// Why a connection from a proxy is closed.
#[derive(Debug, Error)]
pub enum ProxyProtocolError {
    /// What came is no header.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The header did not come in time.
    #[error("no PROXY protocol header within {} s", within.as_secs())]
    TimedOut {
        /// The time it had.
        within: Duration,
    },
    /// The connection ended before the header did.
    #[error("the connection ended within the PROXY protocol header")]
    Ended,
    /// The connection broke.
    #[error("while reading the PROXY protocol header: {0}")]
    Io(#[from] io::Error),
}

/// Takes the header off the start of `stream`, and not a byte more, so that TLS or a request can
/// follow; `None` when the proxy connects for itself (a health check) or does not name a client.
pub async fn read(
    stream: &mut GatedStream,
    within: Duration,
) -> Result<Option<Addresses>, ProxyProtocolError> {
    tokio::time::timeout(within, receive(stream))
        .await
        .map_err(|_| ProxyProtocolError::TimedOut { within })?
}

async fn receive(stream: &mut GatedStream) -> Result<Option<Addresses>, ProxyProtocolError> {
    let mut received = Vec::with_capacity(PEEK_BYTES);
    let mut peeked = [0; PEEK_BYTES];
    loop {
        let taken = received.len();
        let count = stream.get_ref().peek(&mut peeked).await?;
        if count == 0 {
            return Err(ProxyProtocolError::Ended);
        }
        received.extend_from_slice(&peeked[..count]);
        let header = parse(&received)?;
        // Without a whole header all of it belongs to one.
        let end = header.map_or(received.len(), |header| header.length_bytes);
        stream.read_exact(&mut received[taken..end]).await?;
        if let Some(header) = header {
            return Ok(header.addresses);
        }
    }
}
