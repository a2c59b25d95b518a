//! One handshake, and the response to HTTP in clear text where TLS is expected.

use super::framing::Framing;
use super::stream::TlsStream;
use crate::peer::TlsPeer;
use rustls::{ProtocolVersion, ServerConfig, ServerConnection};
use sooner_tls::subject_of;
use sooner_uplink::GatedStream;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// What is spoken inside TLS (ALPN, RFC 7301).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alpn {
    /// HTTP/1.1, or a client that did not say.
    Http1,
    /// HTTP/2.
    Http2,
}

/// Why there is no TLS connection.
#[derive(Debug, Error)]
pub enum HandshakeError {
    /// The client was too slow.
    #[error("the client did not finish the TLS handshake within {} s", within.as_secs())]
    TimedOut {
        /// The time it had.
        within: Duration,
    },
    /// The client sent an HTTP request in clear text, and was told so.
    #[error("a request in clear text where TLS is spoken; answered with status 400")]
    ClearText,
    /// The client went away.
    #[error("the client left during the TLS handshake")]
    Gone,
    /// The two could not agree, or one of them does not trust the other.
    #[error("TLS handshake: {0}")]
    Failed(io::Error),
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        match error.kind() {
            BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof => Self::Gone,
            _ => Self::Failed(error),
        }
    }
}

/// Does the handshake on `stream`, in `within`. rustls has `room` then: for so many bytes that are
/// encrypted and not written, in records of up to so many.
pub async fn accept(
    config: Arc<ServerConfig>,
    stream: GatedStream,
    room: (usize, u64),
    within: Duration,
) -> Result<(TlsStream, TlsPeer, Alpn), HandshakeError> {
    // In a box, so that what only the handshake needs is given back after it.
    timeout(within, Box::pin(handshake(config, stream, room)))
        .await
        .map_err(|_| HandshakeError::TimedOut { within })?
}

async fn handshake(
    config: Arc<ServerConfig>,
    mut stream: GatedStream,
    room: (usize, u64),
) -> Result<(TlsStream, TlsPeer, Alpn), HandshakeError> {
    let mut first = [0];
    if stream.get_ref().peek(&mut first).await? == 0 {
        return Err(HandshakeError::Gone);
    }
    // A method; a handshake begins with 22 (RFC 8446, 5.1).
    if first[0].is_ascii_uppercase() {
        refuse_clear_text(&mut stream).await?;
        return Err(HandshakeError::ClearText);
    }
    let stream = TlsAcceptor::from(config)
        .accept_with(stream, |session| session.set_buffer_limit(Some(room.0)))
        .await?;
    let (_, session) = stream.get_ref();
    let (peer, alpn) = (peer(session, room), alpn(session));
    Ok((TlsStream::new(stream), peer, alpn))
}

fn peer(session: &ServerConnection, (buffer_bytes, record_bytes): (usize, u64)) -> TlsPeer {
    let version = match session.protocol_version() {
        Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
        _ => "TLSv1.3",
    };
    TlsPeer {
        server_name: session.server_name().map(str::to_owned),
        version,
        framing: Framing::new(version, buffer_bytes, record_bytes),
        client_subject: session
            .peer_certificates()
            .and_then(|chain| subject_of(chain.first()?)),
    }
}

fn alpn(session: &ServerConnection) -> Alpn {
    match session.alpn_protocol() {
        Some(b"h2") => Alpn::Http2,
        _ => Alpn::Http1,
    }
}

/// What a client gets that asks for `http://` on a port for `https://`.
const CLEAR_TEXT_ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    content-type: text/plain\r\n\
    content-length: 35\r\n\
    connection: close\r\n\
    \r\n\
    this port speaks TLS; use https://\n";

/// How long the client of such an answer may take to close.
const LINGER: Duration = Duration::from_secs(2);
/// How much of its request is read meanwhile, bytes: unread bytes would make the kernel reset the
/// connection, and lose the answer.
const LINGER_BYTES: u64 = 64 << 10;

async fn refuse_clear_text(stream: &mut GatedStream) -> io::Result<()> {
    stream.write_all(CLEAR_TEXT_ANSWER).await?;
    stream.flush().await?;
    stream.shutdown().await?;
    let mut unwanted = stream.take(LINGER_BYTES);
    // Whether the client was in time makes no difference.
    let _ = timeout(
        LINGER,
        tokio::io::copy(&mut unwanted, &mut tokio::io::sink()),
    )
    .await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_in_clear_text_is_as_long_as_it_says() {
        let text = std::str::from_utf8(CLEAR_TEXT_ANSWER).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())));
    }
}
