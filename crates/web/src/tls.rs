//! TLS 1.3 and 1.2: several certificates, chosen by the name the client asks for, and replaced
//! without dropping a connection.
//!
//! rustls does the work, with ring; what is decided here is which files are good enough to serve
//! with, and what every connection holds. An idle connection keeps its keys and one read buffer of
//! 4 KiB; what it has encrypted and not written is bounded, and given back when it is written.

mod accept;
mod framing;
mod stream;

pub use accept::{Alpn, HandshakeError};
pub use framing::Framing;
pub use sooner_tls::{Prepared, TlsConfig, TlsVersion, unreadable};
pub use stream::TlsStream;

use crate::config::Misconfigured;
use crate::peer::TlsPeer;
use rustls::ServerConfig;
use sooner_uplink::GatedStream;
use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What may lie encrypted and unwritten in one connection, bytes: a whole record at least; more
/// saves nothing any more.
const BUFFER_BYTES: RangeInclusive<usize> = (16 << 10)..=(64 << 10);

/// What a record may carry, bytes; the most is the protocol's (RFC 8446, 5.1).
const RECORD_BYTES: RangeInclusive<u64> = (1 << 10)..=(16 << 10);
/// rustls counts the header of a record with what it carries.
const RECORD_HEADER_BYTES: u64 = 5;

/// HTTP/2 first (RFC 7301).
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Reads and checks all files; a certificate that is not valid at `now` is a warning.
pub fn prepare(tables: &[TlsConfig], now: SystemTime) -> Result<Prepared, Misconfigured> {
    sooner_tls::prepare(tables, &PROTOCOLS, now)
}

/// The certificates of a server, and the keys of its session tickets.
pub struct Tls {
    config: RefCell<Arc<ServerConfig>>,
    buffer_bytes: usize,
    record_bytes: u64,
}

impl Tls {
    /// TLS by `config`, where every connection holds up to about `buffer_bytes` encrypted (16 to 64
    /// KiB): as much as is written at once. Records carry up to `record_bytes` (1 to 16 KiB).
    pub fn new(config: Arc<ServerConfig>, buffer_bytes: usize, record_bytes: u64) -> Self {
        let record_bytes = record_bytes.clamp(*RECORD_BYTES.start(), *RECORD_BYTES.end());
        Self {
            config: RefCell::new(in_records(config, record_bytes)),
            buffer_bytes: buffer_bytes.clamp(*BUFFER_BYTES.start(), *BUFFER_BYTES.end()),
            record_bytes,
        }
    }

    /// The most that a record carries, bytes.
    pub fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    /// Handshakes from now on go by `config`; connections that are there keep what they have.
    pub fn replace(&self, config: Arc<ServerConfig>) {
        *self.config.borrow_mut() = in_records(config, self.record_bytes);
    }

    /// Does the handshake; a client that speaks HTTP in clear text instead gets status 400 and the
    /// reason.
    pub async fn accept(
        &self,
        stream: GatedStream,
        handshake_timeout: Duration,
    ) -> Result<(TlsStream, TlsPeer, Alpn), HandshakeError> {
        let config = self.config.borrow().clone();
        let room = (self.buffer_bytes, self.record_bytes);
        accept::accept(config, stream, room, handshake_timeout).await
    }
}

fn in_records(config: Arc<ServerConfig>, record_bytes: u64) -> Arc<ServerConfig> {
    let mut config = Arc::unwrap_or_clone(config);
    config.max_fragment_size = Some((record_bytes + RECORD_HEADER_BYTES) as usize);
    Arc::new(config)
}
