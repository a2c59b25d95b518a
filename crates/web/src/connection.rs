//! One connection: requests in, answers out through the uplink, lines into the log.

use crate::access_log::{AccessLog, Record, Remote, WallClock};
use crate::answer::{Answer, answer};
use crate::body::ResponseBody;
use crate::files::FileCache;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderMap};
use hyper::server::conn::http1::{Builder, Connection};
use hyper::service::Service;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use sooner_uplink::{Flow, GatedStream, JobReport, ResponseStart};
use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Longest request head; others get status 431.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// hyper refuses less.
const BUFFER_BYTES_MIN: usize = 16 << 10;
/// What hyper adds to every head: the date, and the empty line at the end.
const DATE_BYTES: usize = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n".len();

/// The report of a response the uplink was not told of.
const NEVER_QUEUED: JobReport = JobReport {
    wait_ns: 0,
    service_ns: 0,
    sent_bytes: 0,
    policy: "none",
    rank_at_start: 0,
    bytes_of_others_meanwhile: 0,
    completed: true,
};

/// What all connections of a server share.
pub struct Site {
    /// The files.
    pub files: RefCell<FileCache>,
    /// The log.
    pub log: AccessLog,
    /// Bytes read from a file at once.
    pub chunk_bytes: usize,
    wall_clock: RefCell<WallClock>,
    engine: Builder,
}

impl Site {
    /// A site whose clients have `head_timeout` to send a request, counted from the response before it.
    pub fn new(
        files: FileCache,
        log: AccessLog,
        chunk_bytes: usize,
        head_timeout: Duration,
    ) -> Self {
        let mut engine = Builder::new();
        engine
            .half_close(true)
            .timer(TokioTimer::new())
            .header_read_timeout(head_timeout)
            .max_header_size(HEAD_BYTES_MAX)
            // Bounds how far hyper reads a body ahead of the socket.
            .max_buf_size(BUFFER_BYTES_MIN.max(2 * chunk_bytes));
        Self {
            files: RefCell::new(files),
            log,
            chunk_bytes,
            wall_clock: RefCell::new(WallClock::new(Instant::now())),
            engine,
        }
    }

    /// Serves requests on `stream` until either side ends it.
    pub fn serve(
        self: &Rc<Self>,
        stream: GatedStream,
        flow: Flow,
        remote: SocketAddr,
    ) -> Connection<TokioIo<GatedStream>, Client> {
        let client = Client {
            site: self.clone(),
            flow,
            remote: Remote::new(remote),
        };
        self.engine.serve_connection(TokioIo::new(stream), client)
    }

    /// How a connection ended. Broken requests are logged here, because the engine answers them itself; a connection
    /// that breaks concerns nobody but its client.
    pub fn end(&self, remote: SocketAddr, result: hyper::Result<()>) {
        let Err(error) = result else { return };
        if error.is_parse() && self.log.is_on() {
            let status = if error.is_parse_too_large() { 431 } else { 400 };
            let mut clock = self.wall_clock.borrow_mut();
            let date = clock.date(Instant::now());
            let record = Record::of_unreadable(date, &Remote::new(remote), status);
            self.log.write(&record, &NEVER_QUEUED);
        }
    }
}

/// The service behind one connection.
pub struct Client {
    site: Rc<Site>,
    flow: Flow,
    remote: Remote,
}

impl Service<Request<Incoming>> for Client {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let now = Instant::now();
        let answer = answer(
            &request,
            &mut self.site.files.borrow_mut(),
            self.site.chunk_bytes,
            now,
        );
        self.start(&request, &answer, now);
        let mut response = Response::new(ResponseBody::new(answer.source, self.flow.clone()));
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        ready(Ok(response))
    }
}

impl Client {
    /// Announces the response to the uplink, and has it logged when its last byte is on the way.
    fn start(&self, request: &Request<Incoming>, answer: &Answer, now: Instant) {
        let (body_bytes, head_bytes) = (answer.source.len(), head_bytes(request, answer));
        let start = ResponseStart {
            body_bytes: Some(body_bytes),
            head_bytes,
            class: 0,
        };
        if !self.site.log.is_on() {
            return self.flow.start(start, |_| {});
        }
        let status = answer.status.as_u16();
        let mut clock = self.site.wall_clock.borrow_mut();
        let date = clock.date(now);
        let record = Record::new(date, &self.remote, request, status, head_bytes, body_bytes);
        let log = self.site.log.clone();
        self.flow
            .start(start, move |report| log.write(&record, &report));
    }
}

/// The length of the head as hyper writes it.
fn head_bytes<B>(request: &Request<B>, answer: &Answer) -> u32 {
    let reason = answer.status.canonical_reason().unwrap_or("<none>");
    let status_line = "HTTP/1.1 200 ".len() + reason.len() + "\r\n".len();
    let headers: usize = answer
        .headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len())
        .sum();
    (status_line + headers + connection_bytes(request) + DATE_BYTES) as u32
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
    use hyper::StatusCode;
    use hyper::header::HeaderValue;

    #[test]
    fn counts_the_head_as_it_is_written() {
        let mut headers = HeaderMap::new();
        headers.insert("content-length", HeaderValue::from_static("0"));
        let answer = Answer {
            status: StatusCode::NOT_FOUND,
            headers,
            source: Source::Empty,
        };
        let written = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n";
        assert_eq!(
            head_bytes(&Request::new(()), &answer) as usize,
            written.len()
        );
        let closing = Request::builder()
            .header("connection", "te, Close")
            .body(())
            .unwrap();
        assert_eq!(
            head_bytes(&closing, &answer) as usize,
            written.len() + "connection: close\r\n".len()
        );
    }
}
