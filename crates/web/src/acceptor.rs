//! From a listener to connections that are served: room, the PROXY protocol, TLS, and which HTTP is
//! spoken.

use crate::http1::Http1Service;
use crate::http2;
use crate::limits::{ActivityStream, CloseReason, ConnectionHandle, Connections, LingeringStream};
use crate::metrics::Refusal;
use crate::peer::{ConnectionContext, Peer};
use crate::proxy_protocol;
use crate::request_text::RequestText;
use crate::service::Service;
use crate::tls::{Alpn, Tls, TlsStream};
use sooner_config::ClientNetwork;
use sooner_http::frames::PREFACE;
use sooner_operate::{AcceptFailures, say};
use sooner_uplink::{Flow, GatedStream, Uplink};
use std::future::{pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::spawn_local;
use tokio::time::timeout;

/// After an accept that failed for want of descriptors or memory: long enough for some to come
/// back.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// When to look again for the rest of a preface that comes in pieces; later each time, as thousands
/// may send one byte.
const REST_OF_PREFACE_AFTER: Duration = Duration::from_millis(5);
const REST_OF_PREFACE_AFTER_MAX: Duration = Duration::from_secs(1);

/// What is read of a client, and thrown away, after the answer that ends its connection, bytes. 64
/// MiB: half a minute at 18 Mbit/s; a faster client has seen the response before it has sent so
/// much, or does not look.
const LINGER_BYTES_MAX: u64 = 64 << 20;

/// What is spoken on a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// HTTP.
    Clear,
    /// HTTP within TLS.
    Tls,
}

/// Accepts connections from one listener.
pub struct Acceptor {
    /// What answers requests.
    pub service: Rc<Service>,
    /// All connections of the server.
    pub connections: Connections,
    /// With it TLS is spoken here.
    pub tls: Option<Rc<Tls>>,
    /// What responses leave through.
    pub uplink: Uplink,
    /// Held by every connection until its end.
    pub alive: mpsc::Sender<()>,
}

impl Acceptor {
    /// Accepts connections; never returns.
    pub async fn accept_all(self, listener: TcpListener) {
        let acceptor = Rc::new(self);
        let mut failures = AcceptFailures::new(
            "cannot accept connections",
            "closing idle ones and trying again",
        );
        loop {
            acceptor.connections.wait_for_room().await;
            match listener.accept().await {
                Ok((stream, remote)) => {
                    failures.end();
                    let handle = acceptor.connections.enter(stream.as_raw_fd()).await;
                    acceptor.spawn(stream, remote, handle);
                }
                // The client went away while it waited: not our trouble.
                Err(error) if !failures.is_ours(&error) => {}
                Err(error) => {
                    let line = failures.line(&error, std::time::Instant::now());
                    line.into_iter().for_each(say);
                    acceptor
                        .service
                        .metrics()
                        .connection_refused(Refusal::System);
                    acceptor.connections.evict();
                    tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
                }
            }
        }
    }

    fn spawn(self: &Rc<Self>, stream: TcpStream, remote: SocketAddr, handle: ConnectionHandle) {
        let handle = Rc::new(handle);
        let metrics = self.service.metrics();
        metrics.connection_opened();
        let (stream, flow) = self.uplink.wrap(stream);
        let acceptor = self.clone();
        spawn_local(async move {
            let _alive = acceptor.alive.clone();
            acceptor
                .serve_connection(stream, flow, remote, handle)
                .await;
            acceptor.service.metrics().connection_closed();
        });
    }

    /// Negotiates the protocol of a connection and serves it.
    async fn serve_connection(
        &self,
        stream: GatedStream,
        flow: Flow,
        remote: SocketAddr,
        handle: Rc<ConnectionHandle>,
    ) {
        // Boxed, so that its room is given back before the connection idles.
        let negotiation = Box::pin(self.negotiate(stream, flow, remote, handle.clone()));
        let Ending::Finished(Some(negotiated)) = until_closed(pin!(negotiation), &handle).await
        else {
            return;
        };
        match negotiated {
            Negotiated::Clear(stream, context, is_http2) => {
                self.serve(stream, context, is_http2).await;
            }
            Negotiated::Tls(stream, context, is_http2) => {
                self.serve(stream, context, is_http2).await;
            }
        }
    }

    /// Takes the PROXY header, the TLS handshake and the HTTP version; `None` if the connection is
    /// refused.
    async fn negotiate(
        &self,
        mut stream: GatedStream,
        flow: Flow,
        mut remote: SocketAddr,
        handle: Rc<ConnectionHandle>,
    ) -> Option<Negotiated> {
        let active_config = self.service.active_config();
        let metrics = self.service.metrics();
        let head_time = active_config.limits.head_time();
        let mut local = stream.get_ref().local_addr().unwrap_or(remote);
        if active_config.proxy_protocol.contains(remote.ip()) {
            match proxy_protocol::read(&mut stream, head_time).await {
                Ok(Some(addresses)) => (remote, local) = (addresses.source, addresses.destination),
                Ok(None) => {}
                Err(_) => {
                    metrics.connection_refused(Refusal::ProxyProtocol);
                    return None;
                }
            }
        }
        if handle.admit(remote.ip()).is_err() {
            metrics.connection_refused(Refusal::ConnectionsPerAddress);
            return None;
        }
        flow.of_client(ClientNetwork::from(remote.ip()).payer());
        let Some(tls) = &self.tls else {
            let is_http2 = timeout(head_time, is_http2(stream.get_ref())).await;
            let is_http2 = is_http2.ok()?.ok()?;
            let context = self.context(Peer::new(remote, local, None), flow, handle);
            return Some(Negotiated::Clear(stream, context, is_http2));
        };
        let accepted = tls.accept(stream, head_time).await;
        metrics.handshake(accepted.is_ok());
        let (stream, tls_peer, alpn) = accepted.ok()?;
        handle.head_begins();
        flow.in_records(tls.record_bytes());
        let context = self.context(Peer::new(remote, local, Some(tls_peer)), flow, handle);
        Some(Negotiated::Tls(stream, context, alpn == Alpn::Http2))
    }

    fn context(&self, peer: Peer, flow: Flow, handle: Rc<ConnectionHandle>) -> ConnectionContext {
        ConnectionContext {
            peer,
            service: self.service.clone(),
            flow,
            handle,
        }
    }

    async fn serve<Io>(&self, stream: Io, context: ConnectionContext, is_http2: bool)
    where
        Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        // Boxed, or every connection would hold the room of both, and of finding out which.
        if is_http2 {
            Box::pin(self.serve_http2(stream, context)).await;
        } else {
            Box::pin(self.serve_http1(stream, context)).await;
        }
    }

    async fn serve_http2<Io>(&self, stream: Io, context: ConnectionContext)
    where
        Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let bounds = self.service.active_config().http2;
        // How a connection breaks concerns its client alone.
        let _ = http2::serve(stream, context, bounds, pending()).await;
    }

    async fn serve_http1<Io>(&self, stream: Io, context: ConnectionContext)
    where
        Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let active_config = self.service.active_config();
        let (peer, handle) = (context.peer.clone(), context.handle.clone());
        let activity = handle.activity().clone();
        let stream = RequestText::new(stream, activity.clone());
        let stream = LingeringStream::new(stream, activity.clone(), LINGER_BYTES_MAX);
        let stream = ActivityStream::new(stream, activity.clone());
        let service = Http1Service::new(context);
        let upgrade = service.upgrade();
        let connection = active_config.http1.serve(stream, service);
        drop(active_config);
        {
            let mut connection = pin!(connection);
            let result = match until_closed(connection.as_mut(), &handle).await {
                Ending::Finished(result) => result,
                Ending::Closed(CloseReason::SlowHead | CloseReason::Left) => return,
                // It has its response; now others need its place, or the server stops.
                Ending::Closed(CloseReason::Idle) if activity.is_lingering() => return,
                Ending::Closed(CloseReason::Idle) => {
                    activity.drain();
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        biased;
                        result = connection => result,
                        () = handle.left() => return,
                    }
                }
            };
            if let Err(error) = result {
                self.service.broken_request(&peer, &error);
            }
            // Here ends what still waits for the answer to a request that asked for another
            // protocol: it holds what is waited for below.
        }
        // A connection that speaks something else now is still one, to its client's share as to the
        // server that stops.
        upgrade.end().await;
    }
}

/// A connection with its client known, and whether it speaks HTTP/2.
enum Negotiated {
    Clear(GatedStream, ConnectionContext, bool),
    Tls(TlsStream, ConnectionContext, bool),
}

/// How a connection came to its end.
enum Ending<T> {
    Finished(T),
    Closed(CloseReason),
}

/// Drives `connection` until it ends or is asked to end. Polls the handle only when it was
/// notified: a request costs no more than a look at a flag.
async fn until_closed<F: Future>(
    mut connection: Pin<&mut F>,
    handle: &ConnectionHandle,
) -> Ending<F::Output> {
    let mut closing = pin!(handle.closing());
    let mut is_listening = false;
    poll_fn(|cx| {
        if let Poll::Ready(output) = connection.as_mut().poll(cx) {
            return Poll::Ready(Ending::Finished(output));
        }
        if is_listening && !handle.is_closing() {
            return Poll::Pending;
        }
        is_listening = true;
        closing.as_mut().poll(cx).map(Ending::Closed)
    })
    .await
}

/// Whether the client begins with HTTP/2's preface (RFC 9113, 3.3: with prior knowledge); takes
/// nothing out.
async fn is_http2(stream: &TcpStream) -> io::Result<bool> {
    // No method of HTTP/1 begins with these three.
    let mut first = [0; 3];
    let mut pause = REST_OF_PREFACE_AFTER;
    loop {
        let peeked_bytes = stream.peek(&mut first).await?;
        let is_undecided =
            (1..first.len()).contains(&peeked_bytes) && PREFACE.starts_with(&first[..peeked_bytes]);
        if !is_undecided {
            return Ok(peeked_bytes == first.len() && PREFACE.starts_with(&first));
        }
        // Readiness does not tell of more while something is unread.
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(REST_OF_PREFACE_AFTER_MAX);
    }
}
