//! A connection to a server, ready to take requests.

use super::answered_stream::AnsweredStream;
use super::counted_stream::{CountedStream, StreamCounts};
use super::fastcgi::Slot;
use super::open_connections::Place;
use super::response_stream::ResponseStream;
use super::upload::Upload;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper::rt::Executor;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use sooner_http::forwarding::request::Protocol;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_local;

/// The longest head of a response, bytes.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// The most header fields of a response over HTTP/1; those over HTTP/2 are bounded by their length
/// alone.
const FIELDS_MAX: usize = 400;
/// What HTTP/1 reads of a body at once at most, bytes; bounds what a connection holds.
const READ_BYTES_MAX: usize = 64 << 10;
/// What one response over HTTP/2 may have on its way, bytes.
const STREAM_WINDOW_BYTES: u32 = 128 << 10;
/// What all responses of one connection may: enough for more streams than most servers allow, so
/// that slow clients do not hold up the others. The library ends a connection when the small DATA
/// frames that wait on it cost half as much beside their bytes, about 250 bytes each: with a
/// smaller window a few slow clients of such streams would end all responses.
const CONNECTION_WINDOW_BYTES: u32 = 1024 * STREAM_WINDOW_BYTES;
/// Streams whose requests were cancelled and that may still get frames that were on the way. A
/// frame for any other one is answered by a reset.
const RESET_STREAMS_MAX: usize = 4096;
/// A connection with requests in flight that is silent for so long is sent a PING. Servers of gRPC
/// allow one in five minutes, and end the connection of a client that sends more. TCP finds a path
/// that leads nowhere earlier, see [`Connector`](super::connect::Connector).
const PING_AFTER: Duration = Duration::from_secs(310);
/// And has so long to say so.
const PING_WITHIN: Duration = Duration::from_secs(10);

/// What carries the bytes of a connection.
pub trait Transport: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Transport for T {}

/// Takes requests for one connection.
pub struct UpstreamConnection {
    requests: Requests,
    counts: Arc<StreamCounts>,
    /// Where parameters of its request go, if it is one over FastCGI.
    slot: Option<Slot>,
    /// Where it counts, if it is one over HTTP/1 and several workers have some.
    place: Option<Place>,
}

enum Requests {
    /// One after the other.
    Http1(http1::SendRequest<Upload>),
    /// Many at once.
    Http2(Streams),
}

/// What moves the bytes of a connection over HTTP/2.
type Http2Connection = http2::Connection<
    TokioIo<CountedStream<AnsweredStream<Box<dyn Transport>>>>,
    Upload,
    OnThisThread,
>;

/// Takes requests for one connection over HTTP/2; clones are handles for the same one.
#[derive(Clone)]
struct Streams {
    sender: http2::SendRequest<Upload>,
    /// Gone when the connection has ended.
    connection: Weak<RefCell<Http2Connection>>,
    /// Counts the handles.
    handles: Rc<()>,
}

impl Streams {
    /// Moves the bytes of `connection` from now on.
    fn begin(sender: http2::SendRequest<Upload>, connection: Http2Connection) -> Self {
        let connection = Rc::new(RefCell::new(connection));
        let streams = Self {
            sender,
            connection: Rc::downgrade(&connection),
            handles: Rc::default(),
        };
        spawn_local(poll_fn(move |cx| {
            Pin::new(&mut *connection.borrow_mut()).poll(cx).map(drop)
        }));
        streams
    }

    /// How many requests the server allows at once.
    fn allowed(&self) -> usize {
        let connection = self.connection.upgrade();
        connection.map_or(0, |connection| match connection.try_borrow() {
            Ok(connection) => connection.current_max_send_streams(),
            Err(_) => 0,
        })
    }
}

/// A request that got no response: why, and the request if nothing of it was sent.
pub type SendError = (hyper::Error, Option<Request<Upload>>);

/// Begins to speak HTTP on `stream`.
pub async fn handshake(
    stream: Box<dyn Transport>,
    protocol: Protocol,
) -> io::Result<UpstreamConnection> {
    let counts = Arc::<StreamCounts>::default();
    let stream = AnsweredStream::new(stream);
    let io = TokioIo::new(CountedStream::new(stream, &counts));
    let requests = match protocol {
        Protocol::Http1 => {
            let (sender, connection) = http1::Builder::new()
                .max_header_size(HEAD_BYTES_MAX)
                .max_headers(FIELDS_MAX)
                .max_buf_size(READ_BYTES_MAX)
                .handshake(io)
                .await
                .map_err(io::Error::other)?;
            // The task that waits for a response hears how it ends.
            spawn_local(async move { drop(connection.with_upgrades().await) });
            Requests::Http1(sender)
        }
        Protocol::Http2 => {
            let (sender, connection) = http2::Builder::new(OnThisThread)
                .timer(TokioTimer::new())
                .initial_stream_window_size(STREAM_WINDOW_BYTES)
                .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
                .max_header_list_size(HEAD_BYTES_MAX as u32)
                .max_send_buf_size(READ_BYTES_MAX)
                .max_concurrent_reset_streams(RESET_STREAMS_MAX)
                // Those count for the life of the connection, and clients that leave use them up.
                .max_local_error_reset_streams(None)
                .keep_alive_interval(PING_AFTER)
                .keep_alive_timeout(PING_WITHIN)
                .handshake(io)
                .await
                .map_err(io::Error::other)?;
            Requests::Http2(Streams::begin(sender, connection))
        }
    };
    Ok(UpstreamConnection {
        requests,
        counts,
        slot: None,
        place: None,
    })
}

/// Runs what a connection spawns where the connection runs.
#[derive(Clone, Copy)]
struct OnThisThread;

impl<F: Future<Output = ()> + 'static> Executor<F> for OnThisThread {
    fn execute(&self, future: F) {
        spawn_local(future);
    }
}

impl UpstreamConnection {
    /// The same with a place for the parameters of its request.
    pub fn with_slot(self, slot: Slot) -> Self {
        Self {
            slot: Some(slot),
            ..self
        }
    }

    /// The same, counted there. One over HTTP/2 takes no place: other requests go beside its own.
    pub fn with_place(self, place: Option<Place>) -> Self {
        let place = place.filter(|_| self.protocol() == Protocol::Http1);
        Self { place, ..self }
    }

    /// It waits for a request, at a server of this limit; `false`: it is not to be kept.
    pub fn rest(&mut self, limit: usize) -> bool {
        self.place.as_mut().is_none_or(|place| place.rest(limit))
    }

    /// It gets a request; `false`: it was ended while it waited.
    pub fn take_up(&mut self) -> bool {
        self.place.as_mut().is_none_or(Place::take_up)
    }

    /// What it speaks.
    pub fn protocol(&self) -> Protocol {
        match self.requests {
            Requests::Http1(_) => Protocol::Http1,
            Requests::Http2(_) => Protocol::Http2,
        }
    }

    /// Bytes the server has sent so far.
    pub fn received_bytes(&self) -> u64 {
        self.counts.read_bytes()
    }

    /// Another handle for the same connection, where it takes many requests at once.
    pub fn share(&self) -> Option<Self> {
        let Requests::Http2(streams) = &self.requests else {
            return None;
        };
        Some(Self {
            requests: Requests::Http2(streams.clone()),
            counts: self.counts.clone(),
            slot: None,
            place: None,
        })
    }

    /// Whether both are handles for the same connection.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.counts, &other.counts)
    }

    /// Whether the server has said how many requests it allows at once: it begins with that.
    pub fn is_settled(&self) -> bool {
        self.received_bytes() > 0
    }

    /// Whether the server allows one more request beside those under way. Each of them has a handle
    /// until it ends; this handle has none. Of a request above the bound the server would see
    /// nothing before another one ends.
    pub fn has_room(&self) -> bool {
        let Requests::Http2(streams) = &self.requests else {
            return false;
        };
        let requests = Rc::strong_count(&streams.handles) - 1;
        match self.is_settled() {
            true => requests < streams.allowed(),
            false => requests == 0,
        }
    }

    /// Whether a script has said something to its request, though no response came of it.
    pub fn is_answered(&self) -> bool {
        self.slot.as_ref().is_some_and(Slot::is_answered)
    }

    /// Whether it would take a request now, as far as is known.
    pub fn is_open(&self) -> bool {
        match &self.requests {
            Requests::Http1(sender) => sender.is_ready() && !sender.is_closed(),
            Requests::Http2(streams) => !streams.sender.is_closed(),
        }
    }

    /// Waits until it takes a request; an error if it never will.
    pub async fn ready(&mut self) -> hyper::Result<()> {
        match &mut self.requests {
            Requests::Http1(sender) => sender.ready().await,
            Requests::Http2(streams) => streams.sender.ready().await,
        }
    }

    /// Sends a request; dropping the future takes it back (HTTP/1: by ending the connection).
    pub async fn send(
        &mut self,
        mut request: Request<Upload>,
    ) -> Result<Response<ResponseStream>, SendError> {
        let protocol = self.protocol();
        if let Some(slot) = &self.slot {
            slot.replace(request.extensions_mut().remove());
        }
        let sent = match &mut self.requests {
            Requests::Http1(sender) => sender.try_send_request(request).await,
            Requests::Http2(streams) => streams.sender.try_send_request(request).await,
        };
        let sent = sent.map(|response| response.map(|body| ResponseStream::new(body, protocol)));
        sent.map_err(|mut error: TrySendError<Request<Upload>>| {
            let request = error.take_message();
            (error.into_error(), request)
        })
    }
}
