//! One HTTP/1 connection: requests in, answers out through the uplink.

use crate::body::ResponseBody;
use crate::clock::Moment;
use crate::limits::{Activity, AwaitedAnswer};
use crate::peer::ConnectionContext;
use crate::request_body::RequestBody;
use crate::response::Response;
use crate::service::{Reply, RequestContext};
use hyper::body::{Body, Incoming};
use hyper::ext::ReasonPhrase;
use hyper::header::{CONNECTION, DATE, HeaderMap, UPGRADE};
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
pub struct Http1 {
    builder: Builder,
    half_close: bool,
}

/// What bounds an HTTP/1 connection.
#[derive(Debug, Clone, Copy)]
pub struct Http1Limits {
    /// Longest request head, bytes; others get status 431.
    pub head_bytes_max: usize,
    /// Bytes read from a file at once; twice that is read ahead of the socket.
    pub chunk_bytes: usize,
    /// Whether a client that has shut its sending side still gets its answers. While it waits for a
    /// backend it cannot be told from a client that has left, and then the backend should be
    /// spared.
    pub half_close: bool,
}

impl Http1 {
    /// HTTP/1 within `limits`.
    pub fn new(limits: Http1Limits) -> Self {
        let mut builder = Builder::new();
        builder
            .half_close(limits.half_close)
            // Times are kept for all connections together, see `limits`.
            .header_read_timeout(None)
            .max_header_size(limits.head_bytes_max)
            .max_headers(FIELDS_MAX)
            // Bounds how far hyper reads a body ahead of the socket.
            .max_buf_size(BUFFER_BYTES_MIN.max(2 * limits.chunk_bytes));
        Self {
            builder,
            half_close: limits.half_close,
        }
    }

    /// Whether a client that has shut its sending side still gets its answers.
    pub fn half_close(&self) -> bool {
        self.half_close
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
        self.builder
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
    /// Whether a client that has shut its sending side has left.
    is_watched: bool,
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
    /// Answers the client of `context` through its flow, and tells its activity what happens; where
    /// clients may not shut their sending side, one that does is given up while it waits.
    pub fn new(context: ConnectionContext, half_close: bool) -> Self {
        Self(Rc::new(Connection {
            is_watched: !half_close,
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
        let head = HeadSize::of(&request);
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
                ResponseFuture::Now(Some(connection.respond(request_context, head, response)))
            }
            Reply::Later(future) => ResponseFuture::Later {
                future,
                pending: Some((self.0.clone(), request_context, head)),
                _awaited: (connection.is_watched)
                    .then(|| AwaitedAnswer::begin(connection.context.handle.clone())),
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
        pending: Option<(Rc<Connection>, RequestContext, HeadSize)>,
        /// Until then its client may leave unnoticed.
        _awaited: Option<AwaitedAnswer>,
    },
}

impl Future for ResponseFuture {
    type Output = Result<hyper::Response<ResponseBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let http_response = match &mut *self {
            Self::Now(http_response) => http_response.take(),
            Self::Later {
                future, pending, ..
            } => {
                let response = ready!(future.as_mut().poll(cx));
                pending.take().map(|(connection, request_context, head)| {
                    connection.respond(request_context, head, response)
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
        head: HeadSize,
        response: Response,
    ) -> hyper::Response<ResponseBody> {
        let head_bytes = head.bytes(&response);
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
        );
        if response.status == StatusCode::SWITCHING_PROTOCOLS {
            body.lasts_as_long_as_its_connection();
            self.activity.switch();
        }
        let mut http_response = hyper::Response::new(body);
        *http_response.status_mut() = response.status;
        *http_response.headers_mut() = response.headers;
        if response.status.canonical_reason().is_none() {
            // hyper would write `<none>` otherwise.
            let extensions = http_response.extensions_mut();
            extensions.insert(ReasonPhrase::from_static(b""));
        }
        http_response
    }
}

/// What of a request decides how long hyper makes the response's head.
#[derive(Debug, Clone, Copy)]
pub struct HeadSize {
    connection_bytes: usize,
}

impl HeadSize {
    fn of<B>(request: &Request<B>) -> Self {
        Self {
            connection_bytes: connection_bytes(request),
        }
    }

    /// The length of the head as hyper writes it.
    fn bytes(self, response: &Response) -> u32 {
        let reason = response.status.canonical_reason().unwrap_or_default();
        let status_line = "HTTP/1.1 200 ".len() + reason.len() + "\r\n".len();
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
        (status_line + headers + self.connection_bytes + date) as u32
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
    use hyper::header::HeaderValue;

    #[test]
    fn counts_the_head_as_it_is_written() {
        let mut headers = HeaderMap::new();
        headers.insert("content-length", HeaderValue::from_static("0"));
        let response = Response {
            status: StatusCode::NOT_FOUND,
            headers,
            source: Source::Empty,
        };
        let written = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n";
        let plain = HeadSize::of(&Request::new(()));
        assert_eq!(plain.bytes(&response) as usize, written.len());
        let closing = Request::builder()
            .header("connection", "te, Close")
            .body(())
            .unwrap();
        assert_eq!(
            HeadSize::of(&closing).bytes(&response) as usize,
            written.len() + "connection: close\r\n".len()
        );
        let date = HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT");
        let mut dated = response;
        dated.headers.insert(DATE, date);
        assert_eq!(plain.bytes(&dated) as usize, written.len());
    }
}
