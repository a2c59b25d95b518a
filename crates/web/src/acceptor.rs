//! From a listener to connections that are served: room, the PROXY protocol, TLS, and which HTTP is spoken.

use crate::connection::Client;
use crate::http2::{self, Connected};
use crate::limits::{CloseReason, Connections, Guest, Lingering, Watched};
use crate::message::{Peer, TlsPeer};
use crate::metrics::Refusal;
use crate::proxy_protocol;
use crate::request_text::RequestText;
use crate::service::Service;
use crate::tls::{Alpn, Tls, TlsStream};
use sooner_config::ClientNetwork;
use sooner_http::frames::PREFACE;
use sooner_operate::say;
use sooner_policy::ClientId;
use sooner_uplink::{Flow, GatedStream, Uplink};
use std::future::{pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::spawn_local;
use tokio::time::timeout;

/// After an accept that failed for want of descriptors or memory: long enough for some to come back.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// When to look again for the rest of a preface that comes in pieces; later each time, as thousands may send one byte.
const REST_OF_PREFACE_AFTER: Duration = Duration::from_millis(5);
const REST_OF_PREFACE_AFTER_MAX: Duration = Duration::from_secs(1);

/// What is read of a client, and thrown away, after the answer that ends its connection, bytes. 64 MiB: half a minute at 18 Mbit/s; who
/// sends faster has seen the answer before it has sent so much, or does not look.
const LINGER_BYTES_MAX: u64 = 64 << 20;

/// What is spoken on a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speech {
    /// HTTP.
    Clear,
    /// HTTP within TLS.
    Tls,
}

/// Accepts connections from one listener.
pub struct Acceptor {
    /// Who answers.
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
    /// Accepts for ever.
    pub async fn accept_all(self, listener: TcpListener) {
        let acceptor = Rc::new(self);
        let mut has_complained = false;
        loop {
            acceptor.connections.room().await;
            match listener.accept().await {
                Ok((stream, remote)) => acceptor.spawn(stream, remote),
                // The client went away while it waited: not our trouble.
                Err(error) if is_of_client(&error) => {}
                Err(error) => {
                    if !has_complained {
                        say(format_args!(
                            "cannot accept connections: {error}; closing idle ones and trying again (a higher `ulimit -n` may help)"
                        ));
                        has_complained = true;
                    }
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

    fn spawn(self: &Rc<Self>, stream: TcpStream, remote: SocketAddr) {
        let guest = Rc::new(self.connections.enter());
        let metrics = self.service.metrics();
        metrics.connection_opened();
        let (stream, flow) = self.uplink.wrap(stream);
        let acceptor = self.clone();
        spawn_local(async move {
            let _alive = acceptor.alive.clone();
            acceptor.greet(stream, flow, remote, guest).await;
            acceptor.service.metrics().connection_closed();
        });
    }

    /// Finds out who speaks and how, and serves it.
    async fn greet(&self, stream: GatedStream, flow: Flow, remote: SocketAddr, guest: Rc<Guest>) {
        // Boxed, so that its room is given back before the connection idles.
        let meeting = Box::pin(self.meet(stream, flow, remote, guest.clone()));
        let Ended::ByItself(Some(met)) = until_told(pin!(meeting), &guest).await else {
            return;
        };
        match met {
            Met::Clear(stream, visit, speaks_http2) => {
                self.serve(stream, visit, speaks_http2).await;
            }
            Met::Tls(stream, visit, speaks_http2) => {
                self.serve(stream, visit, speaks_http2).await;
            }
        }
    }

    /// Waits for what comes before the first request; `None` if the connection is not to be served.
    async fn meet(
        &self,
        mut stream: GatedStream,
        flow: Flow,
        mut remote: SocketAddr,
        guest: Rc<Guest>,
    ) -> Option<Met> {
        let generation = self.service.generation();
        let metrics = self.service.metrics();
        let head_time = generation.limits.head_time();
        let mut local = stream.get_ref().local_addr().unwrap_or(remote);
        if generation.proxy_protocol.contains(remote.ip()) {
            match proxy_protocol::read(&mut stream, head_time).await {
                Ok(Some(said)) => (remote, local) = (said.source, said.destination),
                Ok(None) => {}
                Err(_) => {
                    metrics.connection_refused(Refusal::ProxyProtocol);
                    return None;
                }
            }
        }
        if guest.claim(remote.ip()).is_err() {
            metrics.connection_refused(Refusal::ConnectionsPerAddress);
            return None;
        }
        flow.of_client(ClientId(ClientNetwork::from(remote.ip()).number()));
        let Some(tls) = &self.tls else {
            let speaks_http2 = timeout(head_time, speaks_http2(stream.get_ref())).await;
            let speaks_http2 = speaks_http2.ok()?.ok()?;
            let visit = Visit::new(remote, local, None, flow, guest);
            return Some(Met::Clear(stream, visit, speaks_http2));
        };
        let accepted = tls.accept(stream, head_time).await;
        metrics.handshake(accepted.is_ok());
        let (stream, tls_peer, alpn) = accepted.ok()?;
        guest.head_begins();
        flow.in_records(tls.record_bytes());
        let visit = Visit::new(remote, local, Some(tls_peer), flow, guest);
        Some(Met::Tls(stream, visit, alpn == Alpn::Http2))
    }

    async fn serve<Io>(&self, stream: Io, visit: Visit, speaks_http2: bool)
    where
        Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        // Boxed, or every connection would hold the room of both, and of finding out which.
        if speaks_http2 {
            Box::pin(self.serve_http2(stream, visit)).await;
        } else {
            Box::pin(self.serve_http1(stream, visit)).await;
        }
    }

    async fn serve_http2<Io>(&self, stream: Io, visit: Visit)
    where
        Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let bounds = self.service.generation().http2;
        let connected = Connected {
            peer: visit.peer,
            service: self.service.clone(),
            flow: visit.flow,
            guest: visit.guest.clone(),
        };
        // How a connection breaks concerns nobody but its client.
        let _ = http2::serve(stream, connected, bounds, pending()).await;
    }

    async fn serve_http1<Io>(&self, stream: Io, visit: Visit)
    where
        Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let generation = self.service.generation();
        let activity = visit.guest.activity().clone();
        let stream = RequestText::new(stream);
        let stream = Lingering::new(stream, activity.clone(), LINGER_BYTES_MAX);
        let stream = Watched::new(stream, activity.clone());
        let client = Client::new(
            self.service.clone(),
            visit.peer.clone(),
            visit.flow,
            activity.clone(),
        );
        let switch = client.switch();
        let connection = generation.engine.serve(stream, client);
        drop(generation);
        let mut connection = pin!(connection);
        let result = match until_told(connection.as_mut(), &visit.guest).await {
            Ended::ByItself(result) => result,
            Ended::Told(CloseReason::SlowHead) => return,
            // It was answered; now others need its place, or the server stops.
            Ended::Told(CloseReason::Idle) if activity.is_leaving() => return,
            Ended::Told(CloseReason::Idle) => {
                activity.dismissed();
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = result {
            self.service.broken_request(&visit.peer, &error);
        }
        // A connection that speaks something else now is still one, to its client's share as to the server that stops.
        switch.over().await;
    }
}

/// A connection of which it is known who speaks, and whether it is HTTP/2.
enum Met {
    Clear(GatedStream, Visit, bool),
    Tls(TlsStream, Visit, bool),
}

/// How a connection came to its end.
enum Ended<T> {
    ByItself(T),
    Told(CloseReason),
}

/// Drives `connection` until it ends or its guest is to go. Asks the guest only when there is something to hear: a
/// request costs no more than a look at a flag.
async fn until_told<F: Future>(mut connection: Pin<&mut F>, guest: &Guest) -> Ended<F::Output> {
    let mut closing = pin!(guest.closing());
    let mut is_listening = false;
    poll_fn(|cx| {
        if let Poll::Ready(output) = connection.as_mut().poll(cx) {
            return Poll::Ready(Ended::ByItself(output));
        }
        if is_listening && !guest.is_told() {
            return Poll::Pending;
        }
        is_listening = true;
        closing.as_mut().poll(cx).map(Ended::Told)
    })
    .await
}

/// One connection's client and what it came through.
struct Visit {
    peer: Peer,
    flow: Flow,
    guest: Rc<Guest>,
}

impl Visit {
    fn new(
        remote: SocketAddr,
        local: SocketAddr,
        tls: Option<TlsPeer>,
        flow: Flow,
        guest: Rc<Guest>,
    ) -> Self {
        Self {
            peer: Peer::new(remote, local, tls),
            flow,
            guest,
        }
    }
}

/// Whether the client begins with HTTP/2's preface (RFC 9113, 3.3: with prior knowledge); takes nothing out.
async fn speaks_http2(stream: &TcpStream) -> io::Result<bool> {
    // No method of HTTP/1 begins with these three.
    let mut first = [0; 3];
    let mut pause = REST_OF_PREFACE_AFTER;
    loop {
        let seen = stream.peek(&mut first).await?;
        let is_undecided = (1..first.len()).contains(&seen) && PREFACE.starts_with(&first[..seen]);
        if !is_undecided {
            return Ok(seen == first.len() && PREFACE.starts_with(&first));
        }
        // Readiness does not tell of more while something is unread.
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(REST_OF_PREFACE_AFTER_MAX);
    }
}

fn is_of_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
