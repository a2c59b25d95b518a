//! One HTTP/2 connection with many requests at a time: over TLS by ALPN, in clear text by prior
//! knowledge (RFC 9113, section 3.3).
//!
//! Windows, of every stream and of the connection, are as large as the protocol allows and what is
//! read is given back at once: only the server and the link decide when bytes come, never this
//! client's flow control. There is no way to ask a server to close an HTTP/2 connection, so the
//! client closes first, and its port stays taken for a minute: with a new connection for every
//! request that is enough for about four hundred a second, and more fail as "no local port left".
//!
//! A server ends a connection with GOAWAY, as nginx does after a thousand requests. What it turned
//! away goes on where the pool says, and not on a connection of its own. Only the first request of a
//! connection is lost with it, so that each connection of a server that takes none ends a request.

use crate::client::Client;
use crate::exchange::{Answer, Arrivals, Expected, Served};
use crate::failure::Failure;
use crate::socket::ConnectingSocket;
use crate::target::Endpoint;
use crate::transport::Transport;
use crate::unanswered::{Again, Unanswered};
use bytes::Bytes;
use h2::RecvStream;
use h2::client::SendRequest;
use http::Request;
use sooner_kernel::clock::monotonic_ns;
use std::cell::Cell;
use std::rc::Rc;
use tokio::sync::watch;
use tokio::task::spawn_local;

/// Receive window of every stream and of the connection, in bytes: the most there is (RFC 9113,
/// section 6.9.1).
const WINDOW_BYTES: u32 = (1 << 31) - 1;

/// A stream that the server did not act on (RFC 9113, section 8.7).
const REFUSED: Failure = Failure::Http2(7);

/// What requests can be sent with, once it is known whether the connection could be made.
type Sender = Option<Result<SendRequest<Bytes>, Failure>>;

/// A connection that is made, is open, or has ended; it closes when the last reference to it is
/// gone and its last stream has ended.
pub struct Http2Connection {
    client: Rc<Client>,
    sender: watch::Receiver<Sender>,
    ended: Rc<Cell<bool>>,
    /// Whether a request has gone out on it, or tried to.
    is_used: Cell<bool>,
    streams: Cell<u32>,
    requests: Cell<u32>,
}

/// A place on a connection for one request, given back when dropped.
pub struct Stream {
    connection: Rc<Http2Connection>,
    new_connection: bool,
}

impl Http2Connection {
    /// A connection that has sent its SYN already; call it inside a `LocalSet`.
    pub fn connecting(
        client: Rc<Client>,
        endpoint: Endpoint,
        socket: ConnectingSocket,
    ) -> Rc<Http2Connection> {
        let (told, sender) = watch::channel(None);
        let ended = Rc::new(Cell::new(false));
        spawn_local(drive(client.clone(), endpoint, socket, told, ended.clone()));
        Rc::new(Http2Connection {
            client,
            sender,
            ended,
            is_used: Cell::new(false),
            streams: Cell::new(0),
            requests: Cell::new(0),
        })
    }

    /// Requests put on it so far.
    pub fn requests(&self) -> u32 {
        self.requests.get()
    }

    /// Whether new requests can be put on it, now or later.
    pub fn is_open(&self) -> bool {
        !self.ended.get()
    }

    /// Requests that have a place on it now.
    pub fn streams(&self) -> u32 {
        self.streams.get()
    }

    /// How many streams the server allows; none before the connection is made. At least one: a
    /// server may allow none for a while.
    pub fn allowed(&self) -> Option<u32> {
        match &*self.sender.borrow() {
            Some(Ok(sender)) => {
                let allowed = sender.current_max_send_streams();
                Some(u32::try_from(allowed).unwrap_or(u32::MAX).max(1))
            }
            _ => None,
        }
    }

    /// Whether one more stream would be at most number `streams_max`, and the server allows it.
    pub fn has_room(&self, streams_max: u32) -> bool {
        let allowed = match &*self.sender.borrow() {
            Some(Ok(sender)) => sender.current_max_send_streams(),
            Some(Err(_)) => 0,
            None => usize::MAX,
        };
        self.is_open() && (self.streams.get() as usize) < allowed.min(streams_max as usize)
    }

    /// A place for one request; `new_connection` if the connection was made for it.
    pub fn stream(self: Rc<Self>, new_connection: bool) -> Stream {
        self.streams.set(self.streams.get() + 1);
        self.requests.set(self.requests.get() + 1);
        Stream {
            connection: self,
            new_connection,
        }
    }

    /// Sends `request` and reads the response to the end of its stream; fails as
    /// [`crate::exchange::Receiver::exchange`] does.
    async fn exchange(
        &self,
        request: &Request<()>,
        body: &Bytes,
        expected: Expected,
    ) -> Result<Answer, Unanswered> {
        let mut arrivals = Arrivals::asked(monotonic_ns());
        let is_first = !self.is_used.get();
        let mut response = self.respond(request, body).await;
        // The server's limit came after the stream had begun: now the library keeps to it.
        if is_refused(&response) && self.is_open() {
            self.client.note_resent();
            response = self.respond(request, body).await;
            if is_first || (is_refused(&response) && self.is_open()) {
                response = response.map_err(|lost| lost.with(Again::Never));
            }
        }
        let response = response?;
        arrivals.came(monotonic_ns());
        let status = response.status().as_u16();
        expected.status(status)?;
        let body_bytes = self.read(response.into_body(), &mut arrivals).await?;
        expected.length(body_bytes)?;
        Ok(arrivals.answer(status, None, body_bytes, self.is_open()))
    }

    async fn respond(
        &self,
        request: &Request<()>,
        body: &Bytes,
    ) -> Result<http::Response<RecvStream>, Unanswered> {
        let sender = self.opened().await?;
        let is_first = !self.is_used.replace(true);
        let response = self.respond_on(sender, request, body).await;
        response.map_err(|lost| match is_first {
            true => lost.with(Again::Never),
            false => lost,
        })
    }

    async fn respond_on(
        &self,
        sender: SendRequest<Bytes>,
        request: &Request<()>,
        body: &Bytes,
    ) -> Result<http::Response<RecvStream>, Unanswered> {
        let unsent = |error: h2::Error| match self.lost(&error) {
            lost if lost.failure == Failure::BadHttp2 => lost,
            lost => lost.with(Again::Unsent),
        };
        let mut sender = sender.ready().await.map_err(unsent)?;
        let is_whole = body.is_empty();
        let (response, mut stream) = sender
            .send_request(request.clone(), is_whole)
            .map_err(unsent)?;
        drop(sender);
        if !is_whole {
            // The library keeps what the windows do not let out yet; bodies are shared, not copied.
            let sent = stream.send_data(body.clone(), true);
            sent.map_err(|error| self.lost(&error))?;
        }
        response.await.map_err(|error| self.lost(&error))
    }

    /// What an error before the response says of the request. Unless it is of one stream alone, the
    /// connection takes no more of them.
    fn lost(&self, error: &h2::Error) -> Unanswered {
        if error.is_go_away() || error.is_io() {
            self.ended.set(true);
        }
        let failure = Failure::from_http2(error);
        let lost = Unanswered::from(failure.before_response());
        // Of the streams that a GOAWAY leaves to be answered, none ends with it.
        let is_turned_away = error.is_go_away() && lost.failure == Failure::ClosedBeforeResponse;
        match is_turned_away || failure == REFUSED {
            true => lost.with(Again::Unread),
            false => lost,
        }
    }

    /// Waits until the connection has been made, or could not be.
    async fn opened(&self) -> Result<SendRequest<Bytes>, Failure> {
        let mut sender = self.sender.clone();
        let told = sender.wait_for(Option::is_some).await;
        match told.as_deref() {
            Ok(Some(sender)) => sender.clone(),
            _ => Err(Failure::ClosedBeforeResponse),
        }
    }

    async fn read(&self, mut body: RecvStream, arrivals: &mut Arrivals) -> Result<u64, Failure> {
        let mut body_bytes = 0;
        while let Some(data) = body.data().await {
            let data = data.map_err(|error| Failure::from_http2(&error))?;
            arrivals.came(monotonic_ns());
            body_bytes += data.len() as u64;
            self.client.receiver().note_body_bytes(data.len() as u64);
            // It fails only for a stream that has ended meanwhile and needs no window any more.
            body.flow_control().release_capacity(data.len()).ok();
        }
        arrivals.came(monotonic_ns());
        Ok(body_bytes)
    }
}

impl Stream {
    /// The connection it is on.
    pub fn connection(&self) -> &Rc<Http2Connection> {
        &self.connection
    }

    /// Sends one request and reads its response.
    pub async fn request(
        &self,
        request: &Request<()>,
        body: &Bytes,
        expected: Expected,
    ) -> Result<Served, Unanswered> {
        let answer = self.connection.exchange(request, body, expected).await?;
        Ok(Served {
            answer,
            new_connection: self.new_connection,
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let streams = &self.connection.streams;
        streams.set(streams.get() - 1);
    }
}

fn is_refused(response: &Result<http::Response<RecvStream>, Unanswered>) -> bool {
    matches!(response, Err(lost) if lost.failure == REFUSED)
}

/// Makes the connection, tells whether it could be made, and carries its frames until it ends.
async fn drive(
    client: Rc<Client>,
    endpoint: Endpoint,
    socket: ConnectingSocket,
    told: watch::Sender<Sender>,
    ended: Rc<Cell<bool>>,
) {
    match open(&client, socket, &endpoint).await {
        Ok((sender, frames)) => {
            told.send_replace(Some(Ok(sender)));
            // What is told keeps the connection open as long as a receiver can hear it.
            drop(told);
            // Why it ended is told to its streams.
            frames.await.ok();
            ended.set(true);
        }
        Err(failure) => {
            ended.set(true);
            told.send_replace(Some(Err(failure)));
        }
    }
}

async fn open(
    client: &Client,
    socket: ConnectingSocket,
    endpoint: &Endpoint,
) -> Result<(SendRequest<Bytes>, h2::client::Connection<Transport>), Failure> {
    let transport = client.open(socket, endpoint).await?;
    h2::client::Builder::new()
        .initial_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .enable_push(false)
        .handshake(transport)
        .await
        .map_err(|error| Failure::from_http2(&error))
}
