//! One request and its response on a connected socket.
//!
//! All connections share one receive buffer: a run with thousands of open connections touches the
//! same cache-warm memory, and nothing is allocated while a body is read.

use crate::failure::Failure;
use crate::response::Response;
use crate::transport::Transport;
use sooner_kernel::clock::monotonic_ns;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};

/// Receive buffer, in bytes: large enough that one read empties a socket at 1 Gbit/s, small enough
/// to stay in the second-level cache.
const BUFFER_BYTES: usize = 128 * 1024;

/// What all connections of a run share.
pub struct Receiver {
    buffer: RefCell<Box<[u8]>>,
    body_bytes: Cell<u64>,
}

/// A finished response; times are CLOCK_MONOTONIC nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// When the first byte was read.
    pub first_byte_ns: u64,
    /// When the last byte was read.
    pub last_byte_ns: u64,
    /// Length of the response head in bytes; `None` where the protocol packs it and only the probe has measured it.
    pub head_bytes: Option<u32>,
    /// Length of the body in bytes.
    pub body_bytes: u64,
    /// Whether the connection can carry another request.
    pub keep_alive: bool,
}

/// What a request got, and whether it opened the connection it came on.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// The response.
    pub answer: Answer,
    /// Whether the connection was made for this request.
    pub new_connection: bool,
}

impl Default for Receiver {
    fn default() -> Receiver {
        Receiver {
            buffer: RefCell::new(vec![0; BUFFER_BYTES].into_boxed_slice()),
            body_bytes: Cell::new(0),
        }
    }
}

impl Receiver {
    /// Body bytes received by all connections so far.
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes.get()
    }

    /// Counts body bytes that were received otherwise.
    pub fn note_body_bytes(&self, bytes: u64) {
        self.body_bytes.set(self.body_bytes.get() + bytes);
    }

    /// Sends `request` and reads the response to its last byte; fails unless it has status 200 and,
    /// where `expected_body_bytes` is given, exactly that length.
    pub async fn exchange(
        &self,
        stream: &mut Transport,
        request: &[u8],
        expected_body_bytes: Option<u64>,
    ) -> Result<Answer, Failure> {
        send(stream, request)
            .await
            .map_err(|error| Failure::from_io(&error).before_response())?;
        let mut response = Response::default();
        let mut first_byte_ns = None;
        loop {
            let received = poll_fn(|cx| self.poll_receive(stream, &mut response, cx)).await;
            let received = received.map_err(|failure| match first_byte_ns {
                None => failure.before_response(),
                Some(_) => failure,
            })?;
            let now_ns = monotonic_ns();
            let first_byte_ns = *first_byte_ns.get_or_insert(now_ns);
            if received == 0 {
                response.end_of_stream()?;
            }
            if received == 0 || response.is_complete() {
                return answer(&response, expected_body_bytes, first_byte_ns, now_ns);
            }
        }
    }

    /// Reads and forgets what still comes until the peer closes.
    pub async fn read_to_end(&self, stream: &mut Transport) {
        let mut rest = Response::rest_of_stream();
        while let Ok(1..) = poll_fn(|cx| self.poll_receive(stream, &mut rest, cx)).await {}
    }

    /// Reads once into the shared buffer and passes what came to `response`; returns how many bytes
    /// came, 0 at the end of the stream.
    fn poll_receive(
        &self,
        stream: &mut Transport,
        response: &mut Response,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, Failure>> {
        let mut buffer = self.buffer.borrow_mut();
        let mut target = ReadBuf::new(&mut buffer);
        ready!(Pin::new(stream).poll_read(cx, &mut target))
            .map_err(|error| Failure::from_io(&error))?;
        let received = target.filled();
        let body_bytes = response.receive(received)?;
        self.note_body_bytes(body_bytes);
        Poll::Ready(Ok(received.len()))
    }
}

async fn send(stream: &mut Transport, request: &[u8]) -> io::Result<()> {
    stream.write_all(request).await?;
    stream.flush().await
}

fn answer(
    response: &Response,
    expected_body_bytes: Option<u64>,
    first_byte_ns: u64,
    last_byte_ns: u64,
) -> Result<Answer, Failure> {
    let head = response.head().ok_or(Failure::BadHead)?;
    if head.status != 200 {
        return Err(Failure::Status(head.status));
    }
    let body_bytes = response.body_bytes();
    match expected_body_bytes {
        Some(expected_bytes) if body_bytes != expected_bytes => Err(Failure::WrongLength {
            received_bytes: body_bytes,
            expected_bytes,
        }),
        _ => Ok(Answer {
            first_byte_ns,
            last_byte_ns,
            head_bytes: Some(head.bytes),
            body_bytes,
            keep_alive: head.keep_alive,
        }),
    }
}
