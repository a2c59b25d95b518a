//! One HTTP/1 connection: requests in, answers out through the uplink.

use crate::body::ResponseBody;
use crate::clock::Moment;
use crate::limits::{Activity, AwaitedAnswer};
use crate::peer::ConnectionContext;
use crate::request_body::{Http1Body, Reading, RequestBody};
use crate::response::{Response, own_reason};
use crate::service::{Reply, RequestContext};
use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, DATE, EXPECT, HeaderMap, HeaderValue, UPGRADE};
use hyper::server::conn::http1::{Builder, UpgradeableConnection};
use hyper::service::Service as HyperService;
use hyper::{Request, StatusCode, Version};
use hyper_util::rt::TokioIo;
use std::cell::RefCell;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

/// hyper refuses less.
const BUFFER_BYTES_MIN: usize = 16 << 10;
/// The most header fields of a request; more get status 431. nginx takes 300 and more where they
/// fit its buffers.
const FIELDS_MAX: usize = 400;
/// What hyper adds to every head: the date, and the empty line at the end.
const DATE_BYTES: usize = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n".len();

/// HTTP/1 as hyper serves it, within bounds.
pub struct Http1(Builder);

/// What bounds an HTTP/1 connection.
#[derive(Debug, Clone, Copy)]
pub struct Http1Limits {
    /// Longest request head, bytes; others get status 431. As much of each response is read ahead
    /// of the socket, where it is more than the chunks say.
    pub head_bytes_max: usize,
    /// Bytes read from a file at once; twice that is read ahead of the socket, or
    /// `head_bytes_max` where that is more.
    pub chunk_bytes: usize,
}

impl Http1 {
    /// HTTP/1 within `limits`.
    pub fn new(limits: Http1Limits) -> Self {
        // hyper has one size for two things: what it takes of a head that has not come to its end,
        // and how far it reads a response ahead of the socket. So longer heads allow more of both.
        let buffer_bytes_max = BUFFER_BYTES_MIN
            .max(2 * limits.chunk_bytes)
            .max(limits.head_bytes_max);
        let mut builder = Builder::new();
        builder
            // One that waits for a backend is given up all the same, see [`AwaitedAnswer`].
            .half_close(true)
            // Times are kept for all connections together, see `limits`.
            .header_read_timeout(None)
            .max_header_size(limits.head_bytes_max)
            .max_headers(FIELDS_MAX)
            // Bounds how far hyper reads a response's body ahead of the socket.
            .max_buf_size(buffer_bytes_max);
        Self(builder)
    }

    /// Serves requests on `io` until either side ends it.
    pub fn serve<Io>(
        &self,
        io: Io,
        service: Http1Service,
    ) -> UpgradeableConnection<TokioIo<Io>, Http1Service>
    where
        Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        self.0
            .serve_connection(TokioIo::new(io), service)
            .with_upgrades()
    }
}

/// The service behind one connection.
pub struct Http1Service(Rc<Connection>);

/// What a connection's requests share.
pub struct Connection {
    context: ConnectionContext,
    activity: Arc<Activity>,
    upgrade: UpgradeWait,
}

/// An extension of requests that ask to switch protocols: while a clone of it lives, the client's
/// connection counts as one, though HTTP has ended on it.
#[derive(Clone)]
pub struct UpgradeGuard {
    _open: Arc<oneshot::Sender<()>>,
}

/// Waits for the end of an [`UpgradeGuard`].
pub struct UpgradeEnd(oneshot::Receiver<()>);

impl UpgradeGuard {
    /// A guard, and what waits for its end.
    pub fn begin() -> (Self, UpgradeEnd) {
        let (upgrade_guard, upgrade_end) = oneshot::channel();
        let upgrade_guard = Self {
            _open: Arc::new(upgrade_guard),
        };
        (upgrade_guard, UpgradeEnd(upgrade_end))
    }
}

impl UpgradeEnd {
    /// Waits until all guards are dropped.
    pub async fn end(self) {
        // Nothing is ever sent: it ends when the last sending side is dropped.
        let _ = self.0.await;
    }
}

/// What one connection's last request to switch protocols has led to.
#[derive(Clone, Default)]
pub struct UpgradeWait(Rc<RefCell<Option<UpgradeEnd>>>);

impl UpgradeWait {
    /// Lets `request` hold the connection, if it asks to switch protocols.
    fn offer<B>(&self, request: &mut Request<B>) {
        if !request.headers().contains_key(UPGRADE) {
            return;
        }
        let (upgrade_guard, upgrade_end) = UpgradeGuard::begin();
        request.extensions_mut().insert(upgrade_guard);
        self.0.replace(Some(upgrade_end));
    }

    /// After the end of HTTP: waits until the other protocol has ended as well, if there is one.
    pub async fn end(&self) {
        let upgrade_end = self.0.take();
        if let Some(upgrade_end) = upgrade_end {
            upgrade_end.end().await;
        }
    }
}

impl Http1Service {
    /// Answers the client of `context` through its flow, and tells its activity what happens. A
    /// client that has shut its sending side gets its answers; while they come from a backend it
    /// cannot be told from one that has left, and the backend is spared.
    pub fn new(context: ConnectionContext) -> Self {
        Self(Rc::new(Connection {
            activity: context.handle.activity().clone(),
            context,
            upgrade: UpgradeWait::default(),
        }))
    }

    /// What becomes of the connection after the protocol was switched.
    pub fn upgrade(&self) -> UpgradeWait {
        self.0.upgrade.clone()
    }
}

impl HyperService<Request<Incoming>> for Http1Service {
    type Response = hyper::Response<ResponseBody>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn call(&self, mut request: Request<Incoming>) -> ResponseFuture {
        let now = Moment::now();
        let connection = &self.0;
        connection.activity.request_started();
        connection
            .activity
            .set_sending(!request.body().is_end_stream());
        connection.upgrade.offer(&mut request);
        let (parts, body) = request.into_parts();
        let (body, reading) = Http1Body::new(body, parts.headers.contains_key(EXPECT));
        let request = Request::from_parts(parts, body);
        let sent = Sent::of(&request, reading);
        let mut request_context = connection.context.service.begin_request(
            &request,
            &connection.context.peer,
            now.instant,
        );
        let request = request.map(RequestBody::Http1);
        match connection.context.service.respond(
            &mut request_context,
            request,
            &connection.context.peer,
            now,
        ) {
            Reply::Now(response) => {
                let http_response = connection.respond(request_context, sent, response, None);
                ResponseFuture::Now(Some(http_response))
            }
            Reply::Later(future) => ResponseFuture::Later {
                future,
                awaited: (request_context.is_forwarded())
                    .then(|| AwaitedAnswer::begin(connection.context.handle.clone())),
                pending: Some((self.0.clone(), request_context, sent)),
            },
        }
    }
}

/// The response to one request, now or later.
pub enum ResponseFuture {
    /// It is here.
    Now(Option<hyper::Response<ResponseBody>>),
    /// A backend makes it.
    Later {
        /// What makes it.
        future: Pin<Box<dyn Future<Output = Response>>>,
        /// What is needed when it is there.
        pending: Option<(Rc<Connection>, RequestContext, Sent)>,
        /// Until then, and while a backend sends it, its client may leave unnoticed.
        awaited: Option<AwaitedAnswer>,
    },
}

impl Future for ResponseFuture {
    type Output = Result<hyper::Response<ResponseBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let http_response = match &mut *self {
            Self::Now(http_response) => http_response.take(),
            Self::Later {
                future,
                pending,
                awaited,
            } => {
                let response = ready!(future.as_mut().poll(cx));
                pending.take().map(|(connection, request_context, sent)| {
                    connection.respond(request_context, sent, response, awaited.take())
                })
            }
        };
        // hyper polls no future again that was ready.
        http_response.map_or(Poll::Pending, |http_response| {
            Poll::Ready(Ok(http_response))
        })
    }
}

impl Drop for ResponseFuture {
    // hyper drops it as soon as it is ready, or its client has left.
    fn drop(&mut self) {
        if let Self::Later { pending, .. } = self
            && let Some((connection, request_context, _)) = pending.take()
        {
            connection.context.service.abandoned(request_context);
        }
    }
}

impl Connection {
    /// Announces the answer to the uplink and hands it to hyper.
    fn respond(
        &self,
        request_context: RequestContext,
        sent: Sent,
        mut response: Response,
        awaited: Option<AwaitedAnswer>,
    ) -> hyper::Response<ResponseBody> {
        let is_switched = response.status == StatusCode::SWITCHING_PROTOCOLS;
        let is_awaited = response.source.is_awaited() && !is_switched;
        let must_close = sent.must_close(&response);
        if must_close {
            let headers = &mut response.headers;
            // Beside `upgrade`, where a client is told that it must switch.
            headers.append(CONNECTION, HeaderValue::from_static("close"));
        }
        let head_bytes = sent.head_bytes(&response);
        let announcement = self
            .context
            .service
            .announce(request_context, &response, head_bytes);
        self.context
            .flow
            .start(announcement.start, announcement.on_end);
        let mut body = ResponseBody::new(
            response.source,
            self.context.flow.clone(),
            self.activity.clone(),
            announcement.given,
            awaited.filter(|_| is_awaited),
        );
        if is_switched {
            body.lasts_as_long_as_its_connection();
            self.activity.switch();
        }
        let mut http_response = hyper::Response::new(body);
        *http_response.status_mut() = response.status;
        *http_response.headers_mut() = response.headers;
        if must_close {
            // In HTTP/1.1 hyper would add that it keeps the connection of a client of HTTP/1.0.
            *http_response.version_mut() = sent.version;
        }
        if let Some(reason) = own_reason(response.status, response.reason) {
            http_response.extensions_mut().insert(reason);
        }
        http_response
    }
}

/// What of a request decides what stands in the response's head beside its own fields.
#[derive(Debug)]
pub struct Sent {
    connection_bytes: usize,
    version: Version,
    reading: Reading,
}

impl Sent {
    fn of<B>(request: &Request<B>, reading: Reading) -> Self {
        Self {
            connection_bytes: connection_bytes(request),
            version: request.version(),
            reading,
        }
    }

    /// Whether the connection ends with the response, which hyper does not say by itself: HTTP/1.0
    /// has no other end for a body of unknown length (RFC 9112, 9.3), and hyper may find out too late
    /// that nothing reads the rest of a request (9.6).
    fn must_close(&self, response: &Response) -> bool {
        let is_ended_by_close = self.version < Version::HTTP_11 && response.source.len().is_none();
        let is_switched = response.status == StatusCode::SWITCHING_PROTOCOLS;
        (is_ended_by_close || self.reading.is_left()) && !is_switched
    }

    /// The length of the head as hyper writes it.
    fn head_bytes(&self, response: &Response) -> u32 {
        let reason_bytes = match &response.reason {
            Some(reason) => reason.as_bytes().len(),
            None => response.status.canonical_reason().map_or(0, str::len),
        };
        let status_line = "HTTP/1.1 200 ".len() + reason_bytes + "\r\n".len();
        let headers: usize = response
            .headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len())
            .sum();
        // A backend's answer has its own.
        let date = if response.headers.contains_key(DATE) {
            "\r\n".len()
        } else {
            DATE_BYTES
        };
        let connection_bytes = match response.headers.contains_key(CONNECTION) {
            true => 0,
            false => self.connection_bytes,
        };
        (status_line + headers + connection_bytes + date) as u32
    }
}

/// The `connection` header hyper adds when keeping the connection is not what the version implies.
fn connection_bytes<B>(request: &Request<B>) -> usize {
    match request.version() {
        Version::HTTP_10 if mentions(request.headers(), "keep-alive") => {
            "connection: keep-alive\r\n".len()
        }
        Version::HTTP_11 if mentions(request.headers(), "close") => "connection: close\r\n".len(),
        _ => 0,
    }
}

fn mentions(headers: &HeaderMap, option: &str) -> bool {
    let options = headers
        .get_all(CONNECTION)
        .into_iter()
        .filter_map(|value| value.to_str().ok());
    options
        .flat_map(|value| value.split(','))
        .any(|named| named.trim().eq_ignore_ascii_case(option))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Source;

    #[test]
    fn counts_the_head_as_it_is_written() {
        let mut headers = HeaderMap::new();
        headers.insert("content-length", HeaderValue::from_static("0"));
        let response = Response {
            status: StatusCode::NOT_FOUND,
            reason: None,
            headers,
            source: Source::Empty,
        };
        let written = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n";
        let plain = Sent::of(&Request::new(()), Reading::default());
        assert_eq!(plain.head_bytes(&response) as usize, written.len());
        let closing = Request::builder()
            .header("connection", "te, Close")
            .body(())
            .unwrap();
        assert_eq!(
            Sent::of(&closing, Reading::default()).head_bytes(&response) as usize,
            written.len() + "connection: close\r\n".len()
        );
        let date = HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT");
        let mut dated = response;
        dated.headers.insert(DATE, date);
        assert_eq!(plain.head_bytes(&dated) as usize, written.len());
    }
}
