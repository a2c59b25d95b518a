//! Kept-alive connections, used as clients with a pool use them.
//!
//! HTTP/1.1: a request takes the connection that has been idle for the shortest time and opens a
//! new one when none is idle, so no request waits behind another one in the client. A connection
//! ends with its K-th request, which asks the server to close. Since one is opened only while all
//! others are busy, never more are open than requests were once under way together.
//!
//! HTTP/2: a request goes on the oldest connection that has room for one more stream, as in
//! browsers, even while that one is still being made, and opens a new one when none has room. A
//! connection takes no request after its K-th and ends with its last stream.
//!
//! A pool may have a most of connections. A request that would need one more goes on the one with
//! the fewest, and waits there for a stream that the server allows. A connection that the server
//! ends counts no more, while its last streams run out. What it turned away asks the pool again: so
//! all of it shares the connection that takes its place (RFC 9113, section 9.1).
//!
//! A pool has one source address. A client that shall not share connections with others has a pool
//! of its own.

use crate::client::Client;
use crate::connection::Connection;
use crate::exchange::{Expected, Served};
use crate::failure::Failure;
use crate::http2::{Http2Connection, Stream};
use crate::message::Message;
use crate::sending::Parts;
use crate::socket::ConnectingSocket;
use crate::target::{Endpoint, Target};
use crate::unanswered::Again;
use bytes::Bytes;
use std::cell::RefCell;
use std::num::NonZeroU32;
use std::rc::Rc;

/// How connections are used.
#[derive(Clone, Copy, Debug)]
pub struct Reuse {
    /// Requests after which a connection takes no more.
    pub requests_per_connection: NonZeroU32,
    /// HTTP/2 with at most so many streams at a time on a connection; `None`: HTTP/1.1.
    pub http2_streams: Option<NonZeroU32>,
}

/// The connections of one run.
pub struct Pool {
    client: Rc<Client>,
    endpoint: Endpoint,
    reuse: Reuse,
    /// HTTP/2 alone: who uses HTTP/1.1 counts its requests.
    connections_max: Option<u32>,
    /// HTTP/1.1, in the order in which they became idle.
    idle: RefCell<Vec<Connection>>,
    /// HTTP/2, in the order in which they were made; those that take no more requests are not kept.
    shared: RefCell<Vec<Rc<Http2Connection>>>,
}

/// What carries one request.
pub enum Carrier {
    /// A connection of its own.
    Connection(Connection),
    /// A stream beside others.
    Stream(Stream),
}

impl Pool {
    /// No connection yet.
    pub fn new(client: Rc<Client>, endpoint: Endpoint, reuse: Reuse) -> Pool {
        Pool {
            client,
            endpoint,
            reuse,
            connections_max: None,
            idle: RefCell::default(),
            shared: RefCell::default(),
        }
    }

    /// The same with at most so many connections of HTTP/2 at a time.
    pub fn with_at_most(self, connections: u32) -> Pool {
        Pool {
            connections_max: Some(connections),
            ..self
        }
    }

    /// Most requests that a connection carries at a time, as far as it is this pool's choice.
    pub fn requests_at_a_time(&self) -> u32 {
        let streams = self.reuse.http2_streams.unwrap_or(NonZeroU32::MIN);
        streams.min(self.reuse.requests_per_connection).get()
    }

    /// How many streams the server allows on a connection; none where it has not said so.
    pub fn streams_allowed(&self) -> Option<u32> {
        let shared = self.shared.borrow();
        let allowed = shared.iter().filter_map(|connection| connection.allowed());
        allowed.min()
    }

    /// Body bytes that were received on its connections, and on those of all pools that share its
    /// client.
    pub fn body_bytes(&self) -> u64 {
        self.client.receiver().body_bytes()
    }

    /// One with the same way of making connections, and none yet.
    pub fn without_connections(&self) -> Pool {
        Pool {
            connections_max: self.connections_max,
            ..Pool::new(self.client.clone(), self.endpoint.clone(), self.reuse)
        }
    }

    /// A place on a connection that is there already; those that the server has closed meanwhile
    /// are forgotten.
    pub fn take(&self) -> Option<Carrier> {
        match self.reuse.http2_streams {
            None => self.take_idle().map(Carrier::Connection),
            Some(most) => self.take_stream(most.get()).map(Carrier::Stream),
        }
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.borrow_mut();
        std::iter::from_fn(|| idle.pop())
            .find_map(|mut connection| connection.is_open().then_some(connection))
    }

    fn take_stream(&self, streams_max: u32) -> Option<Stream> {
        let mut shared = self.shared.borrow_mut();
        shared.retain(|connection| self.takes_more(connection));
        let with_room = shared
            .iter()
            .find(|connection| connection.has_room(streams_max));
        let is_full = self
            .connections_max
            .is_some_and(|most| shared.len() >= most as usize);
        let emptiest = || shared.iter().min_by_key(|connection| connection.streams());
        let chosen = match with_room {
            None if is_full => emptiest()?,
            with_room => with_room?,
        };
        Some(chosen.clone().stream(false))
    }

    fn takes_more(&self, connection: &Http2Connection) -> bool {
        connection.is_open() && connection.requests() < self.reuse.requests_per_connection.get()
    }

    /// Sends a SYN; gives the moment just before (CLOCK_MONOTONIC ns) and what the request will go
    /// on.
    pub fn connect(&self) -> (u64, Result<Carrier, Failure>) {
        let (sent_ns, socket) = self.client.connect(self.endpoint.address);
        let carrier = socket.map(|socket| match self.reuse.http2_streams {
            None => {
                let (client, endpoint) = (self.client.clone(), self.endpoint.clone());
                Carrier::Connection(Connection::connecting(client, endpoint, socket))
            }
            Some(_) => Carrier::Stream(self.new_stream(socket)),
        });
        (sent_ns, carrier)
    }

    /// The first place on a connection that others may go on too.
    fn new_stream(&self, socket: ConnectingSocket) -> Stream {
        let (client, endpoint) = (self.client.clone(), self.endpoint.clone());
        let stream = Http2Connection::connecting(client, endpoint, socket).stream(true);
        let connection = stream.connection();
        if self.takes_more(connection) {
            self.shared.borrow_mut().push(connection.clone());
        }
        stream
    }

    /// A place for what was turned away elsewhere.
    fn other_stream(&self, streams_max: u32) -> Result<Stream, Failure> {
        match self.take_stream(streams_max) {
            Some(stream) => Ok(stream),
            None => {
                let (_, socket) = self.client.connect(self.endpoint.address);
                socket.map(|socket| self.new_stream(socket))
            }
        }
    }

    /// Whether the next request is the last of `kept`, or of a new connection, and has to say so.
    pub fn is_last(&self, kept: Option<&Carrier>) -> bool {
        let before = match kept {
            Some(Carrier::Stream(_)) => return false,
            Some(Carrier::Connection(connection)) => connection.requests(),
            None => 0,
        };
        before + 1 >= self.reuse.requests_per_connection.get()
    }

    /// Keeps a connection after its response has ended, or gives it back to be closed when it has
    /// had its requests.
    pub fn keep(&self, carrier: Carrier) -> Option<Connection> {
        let mut connection = match carrier {
            Carrier::Connection(connection) => connection,
            // The pool has known its connection from the beginning.
            Carrier::Stream(_) => return None,
        };
        let has_more = connection.requests() < self.reuse.requests_per_connection.get();
        if has_more && connection.is_open() {
            self.idle.borrow_mut().push(connection);
            return None;
        }
        Some(connection)
    }

    /// The same, and closes what has had its requests.
    pub async fn put_back(&self, carrier: Carrier) {
        if let Some(mut connection) = self.keep(carrier) {
            connection.close().await;
        }
    }

    /// Asks `target` for `path` (of the server) on `carrier` and reads the response; in HTTP/1.1
    /// the server may be asked to `close`.
    pub async fn request(
        &self,
        carrier: &mut Carrier,
        target: &Target,
        path: &str,
        close: bool,
        body_bytes: Option<u64>,
    ) -> Result<Served, Failure> {
        let expected = body_bytes.into();
        match carrier {
            Carrier::Connection(connection) => {
                let request = target.http1_request(path, close);
                let request = Parts::from(request.as_slice());
                connection.request(request, true, expected).await
            }
            Carrier::Stream(stream) => {
                let head = target.http2_request(path).map_err(|_| Failure::BadHttp2)?;
                self.ask_on(stream, &head, &Bytes::new(), expected).await
            }
        }
    }

    /// Sends `message` on `carrier` and reads whatever answers; fails where it is made for another
    /// protocol.
    pub async fn send(&self, carrier: &mut Carrier, message: &Message) -> Result<Served, Failure> {
        let expected = Expected::Any {
            to_head: message.is_head(),
        };
        match (carrier, message) {
            (
                Carrier::Connection(connection),
                Message::Http1 {
                    begin,
                    rest,
                    method,
                },
            ) => {
                let request = Parts { begin, rest };
                let is_idempotent = method.is_idempotent();
                connection.request(request, is_idempotent, expected).await
            }
            (Carrier::Stream(stream), Message::Http2 { head, body }) => {
                self.ask_on(stream, head, body, expected).await
            }
            _ => Err(Failure::BadHttp2),
        }
    }

    /// Asks on a stream, and where the request may be sent again on another one: as often as it is
    /// certain that no server acted on it, and once on a guess.
    async fn ask_on(
        &self,
        stream: &mut Stream,
        head: &http::Request<()>,
        body: &Bytes,
        expected: Expected,
    ) -> Result<Served, Failure> {
        let mut may_guess = head.method().is_idempotent();
        loop {
            let lost = match stream.request(head, body, expected).await {
                Ok(served) => return Ok(served),
                Err(lost) => lost,
            };
            let most = self.reuse.http2_streams;
            let Some(most) = most.filter(|_| lost.may_go_again(may_guess)) else {
                return Err(lost.failure);
            };
            may_guess &= lost.again != Again::IfIdempotent;
            if lost.again != Again::Unsent {
                self.client.note_resent();
            }
            *stream = self.other_stream(most.get())?;
        }
    }
}
