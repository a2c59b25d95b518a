//! Upstreams by script, a front by hyper, and clients that write bytes.

use crate::body::Source;
use crate::config::Misconfigured;
use crate::grace_end::GraceEnd;
use crate::peer::Peer;
use crate::proxy::{
    ClassTable, Proxy, ProxyTable, ProxyTables, Report, RouteTable, SharedReport, UpstreamTable,
    WorkerPart,
};
use crate::request_body::{BodyError, Http1Body, RequestBody};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use sooner_config::Spanned;
use sooner_config::classes::LateName;
use sooner_http::forwarding::routes::host_name;
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::timeout;

/// Longer than anything takes that works.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a test on the kind of runtime the server has.
pub fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let ended = LocalSet::new().block_on(&runtime, async { timeout(PATIENCE, test).await });
    ended.expect("the test hangs");
}

/// Waits until `condition` holds.
pub async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// What a scripted upstream does with a request.
pub enum Reply {
    /// Writes this, and keeps the connection.
    Send(Vec<u8>),
    /// Writes this, and closes.
    Last(Vec<u8>),
    /// Closes without a word.
    Close,
    /// Says nothing until the other side closes.
    Hang,
    /// Writes the first, and the second when the number of requests that were let go is above the
    /// request's own.
    SendThenWait(Vec<u8>, Vec<u8>),
}

/// A reply with a body of known length.
pub fn ok(body: &str) -> Reply {
    let length = body.len();
    text(&format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}"
    ))
}

pub fn text(response: &str) -> Reply {
    Reply::Send(response.as_bytes().to_vec())
}

/// The beginning of a response that has no end.
pub fn endless() -> Reply {
    let start = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nbeg\r\n";
    Reply::SendThenWait(start.to_vec(), Vec::new())
}

/// What a scripted upstream has seen.
#[derive(Clone, Default)]
pub struct ScriptedRequests {
    /// Complete requests, as they came.
    pub requests: Rc<RefCell<Vec<String>>>,
    /// Connections that were made.
    pub connections: Rc<Cell<usize>>,
    /// Connections that are open.
    pub open: Rc<Cell<usize>>,
    /// Replies of kind `SendThenWait` that may go on.
    pub let_go: Rc<Cell<usize>>,
}

impl ScriptedRequests {
    pub fn count(&self) -> usize {
        self.requests.borrow().len()
    }

    pub fn request(&self, index: usize) -> String {
        self.requests.borrow()[index].clone()
    }

    /// The request line and the headers but those about the client and the signature, which every
    /// request gets.
    pub fn lines(&self, index: usize) -> Vec<String> {
        let request = self.request(index);
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let about_us = ["x-forwarded-", "x-real-ip:", "forwarded:", "via:"];
        let mut lines: Vec<String> = head
            .split("\r\n")
            .filter(|line| !about_us.iter().any(|start| line.starts_with(start)))
            .map(str::to_owned)
            .collect();
        if !body.is_empty() {
            lines.push(body.to_owned());
        }
        lines
    }
}

/// An upstream that does with request number n what `script` says; its address, and what it sees.
pub async fn scripted(
    script: impl Fn(usize, &str) -> Reply + 'static,
) -> (String, ScriptedRequests) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (seen, _) = scripted_on(listener, script);
    (url, seen)
}

/// An address without a listener.
pub async fn unused_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// The same on a listener that is there; aborting the task closes it, and no connection.
pub fn scripted_on(
    listener: TcpListener,
    script: impl Fn(usize, &str) -> Reply + 'static,
) -> (ScriptedRequests, JoinHandle<()>) {
    let seen = ScriptedRequests::default();
    let (watching, script) = (seen.clone(), Rc::new(script));
    let accepting = spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            spawn_local(play(stream, watching.clone(), script.clone()));
        }
    });
    (seen, accepting)
}

pub async fn play<S, F>(mut stream: S, seen: ScriptedRequests, script: Rc<F>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Fn(usize, &str) -> Reply,
{
    seen.connections.set(seen.connections.get() + 1);
    seen.open.set(seen.open.get() + 1);
    while let Some(request) = read_message(&mut stream).await {
        let number = seen.count();
        seen.requests.borrow_mut().push(request.clone());
        match script(number, &request) {
            Reply::Send(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    break;
                }
            }
            Reply::Last(bytes) => {
                let _ = stream.write_all(&bytes).await;
                break;
            }
            Reply::Close => break,
            Reply::Hang => {
                let _ = stream.read_to_end(&mut Vec::new()).await;
                break;
            }
            Reply::SendThenWait(first, second) => {
                stream.write_all(&first).await.unwrap();
                let mut one = [0];
                tokio::select! {
                    () = until(|| seen.let_go.get() > number) => {}
                    _ = stream.read(&mut one) => break,
                }
                let _ = stream.write_all(&second).await;
            }
        }
    }
    seen.open.set(seen.open.get() - 1);
}

/// One message, head and body, as it comes; `None` at the end of the connection.
pub async fn read_message(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut message = Vec::new();
    let mut byte = [0];
    while !is_whole(&message) {
        if stream.read(&mut byte).await.ok()? == 0 {
            return None;
        }
        message.push(byte[0]);
    }
    Some(String::from_utf8_lossy(&message).into_owned())
}

fn is_whole(message: &[u8]) -> bool {
    let Some(end) = message.windows(4).position(|end| end == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&message[..end]).to_ascii_lowercase();
    let body = &message[end + 4..];
    if head.contains("transfer-encoding: chunked") {
        // The last chunk, perhaps with trailers.
        let last = body.windows(3).rposition(|mark| mark == b"0\r\n");
        return last.is_some_and(|at| {
            let after = &body[at + 3..];
            (at == 0 || body[at - 1] == b'\n') && (after == b"\r\n" || after.ends_with(b"\r\n\r\n"))
        });
    }
    let length = head
        .split("\r\n")
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().unwrap());
    body.len() >= length
}

#[derive(serde::Deserialize)]
struct Tables {
    #[serde(default)]
    proxy: ProxyTable,
    late: Option<Spanned<LateName>>,
    #[serde(default)]
    class: Vec<ClassTable>,
    upstream: Vec<UpstreamTable>,
    route: Vec<RouteTable>,
}

/// The proxy of a configuration; to be called inside a `LocalSet`.
pub fn proxy(config: &str) -> Rc<Proxy> {
    proxy_after(config, None)
}

/// The same behind `previous`, as after a reload.
pub fn proxy_after(config: &str, previous: Option<&Proxy>) -> Rc<Proxy> {
    let proxy = build(config, previous).unwrap();
    proxy.start();
    Rc::new(proxy)
}

/// The same where it may be wrong; nothing is started.
pub fn build(config: &str, previous: Option<&Proxy>) -> Result<Proxy, Misconfigured> {
    build_for(config, WorkerPart::First(1), previous)
}

/// The same for one of several workers.
pub fn build_for(
    config: &str,
    part: WorkerPart<'_>,
    previous: Option<&Proxy>,
) -> Result<Proxy, Misconfigured> {
    let tables: Tables = toml::from_str(config).unwrap();
    let tables = ProxyTables {
        proxy: &tables.proxy,
        classes: &tables.class,
        late: tables.late.as_ref(),
        upstreams: &tables.upstream,
        routes: &tables.route,
    };
    Proxy::of_worker(tables, part, previous)
}

/// All paths to one upstream with these servers and keys.
pub fn to(servers: &[&str], keys: &str) -> Rc<Proxy> {
    proxy(&format!(
        "[[upstream]]\nname = 'app'\nservers = {servers:?}\n{keys}\n[[route]]\npath = '/'\nupstream = 'app'\n"
    ))
}

pub fn peer() -> Peer {
    let remote = SocketAddr::from(([192, 0, 2, 7], 4711));
    Peer::new(remote, SocketAddr::from(([192, 0, 2, 1], 80)), None)
}

pub fn get(path: &str) -> Request<RequestBody> {
    Request::builder()
        .uri(path)
        .header("host", "example.org")
        .body(RequestBody::Empty)
        .unwrap()
}

/// Passes a request on by the route of its path.
pub fn forward(
    proxy: &Rc<Proxy>,
    request: Request<RequestBody>,
) -> impl Future<Output = Forwarded> + use<> {
    let route = proxy.route(Some("example.org"), request.uri().path());
    let route = route.expect("a route fits").clone();
    let (report, passage) = proxy.forward(&route, request, &peer(), &GraceEnd::default());
    async move {
        let response = passage.response().await;
        Forwarded { response, report }
    }
}

/// A response, and how it came about.
pub struct Forwarded {
    pub response: crate::response::Response,
    pub report: SharedReport,
}

/// Status, headers, body and trailers; `Err` if the body broke off.
pub struct FullResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Result<Bytes, BodyError>,
    pub trailers: Option<HeaderMap>,
    pub report: Report,
}

impl FullResponse {
    pub fn text(&self) -> &str {
        std::str::from_utf8(self.body.as_ref().expect("the body is whole")).unwrap()
    }
}

/// Passes a request on and reads all of the answer.
pub async fn ask(proxy: &Rc<Proxy>, request: Request<RequestBody>) -> FullResponse {
    let forwarded = forward(proxy, request).await;
    let announced_bytes = forwarded.response.source.len();
    let collected = SourceBody(forwarded.response.source).collect().await;
    let (body, trailers) = match collected {
        Ok(collected) => {
            let trailers = collected.trailers().cloned();
            let body = collected.to_bytes();
            assert!(announced_bytes.is_none_or(|bytes| bytes == body.len() as u64));
            (Ok(body), trailers)
        }
        Err(error) => (Err(error), None),
    };
    FullResponse {
        status: forwarded.response.status.as_u16(),
        headers: forwarded.response.headers,
        body,
        trailers,
        report: forwarded.report.lock().clone(),
    }
}

/// A source as a body.
pub struct SourceBody(pub Source);

impl Body for SourceBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.0.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end()
    }

    fn size_hint(&self) -> SizeHint {
        self.0
            .len()
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// Serves `proxy` to HTTP/1 clients; the address, and how requests went.
pub async fn front(proxy: &Rc<Proxy>) -> (SocketAddr, Rc<RefCell<Vec<SharedReport>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let reports = Rc::new(RefCell::new(Vec::new()));
    let (proxy, written) = (proxy.clone(), reports.clone());
    spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (proxy, reports) = (proxy.clone(), written.clone());
            let service =
                service_fn(move |request| respond(proxy.clone(), request, reports.clone()));
            let connection = hyper::server::conn::http1::Builder::new()
                .half_close(false)
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades();
            spawn_local(async move { drop(connection.await) });
        }
    });
    (address, reports)
}

async fn respond(
    proxy: Rc<Proxy>,
    request: Request<Incoming>,
    reports: Rc<RefCell<Vec<SharedReport>>>,
) -> Result<Response<SourceBody>, Infallible> {
    let host = request
        .headers()
        .get("host")
        .and_then(|host| host.to_str().ok())
        .map(|host| host_name(host).to_owned());
    let route = proxy.route(host.as_deref(), request.uri().path()).cloned();
    let Some(route) = route else {
        let mut response = Response::new(SourceBody(Source::Empty));
        *response.status_mut() = hyper::StatusCode::NOT_FOUND;
        return Ok(response);
    };
    let request = request.map(|body| {
        if body.is_end_stream() {
            RequestBody::Empty
        } else {
            RequestBody::Http1(Http1Body::new(body, false).0)
        }
    });
    let (report, passage) = proxy.forward(&route, request, &peer(), &GraceEnd::default());
    let answer = passage.response().await;
    reports.borrow_mut().push(report);
    let mut response = Response::new(SourceBody(answer.source));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    Ok(response)
}

/// A client that has written `bytes` to `address`.
pub async fn client(address: SocketAddr, bytes: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    stream
}

/// Everything `stream` says from now on until it ends.
pub async fn rest(mut stream: TcpStream) -> String {
    let mut all = Vec::new();
    // A reset is an end as well.
    let _ = stream.read_to_end(&mut all).await;
    String::from_utf8_lossy(&all).into_owned()
}
