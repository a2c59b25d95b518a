//! One request and its response on a connected socket.
//!
//! All connections share one receive buffer: a run with thousands of open connections touches the
//! same cache-warm memory, and nothing is allocated while a body is read.

use crate::failure::Failure;
use crate::response::Response;
use crate::sending::{Parts, Sending};
use crate::transport::Transport;
use crate::unanswered::Unanswered;
use sooner_kernel::clock::monotonic_ns;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Receive buffer, in bytes: large enough that one read empties a socket at 1 Gbit/s, small enough
/// to stay in the second-level cache.
const BUFFER_BYTES: usize = 128 * 1024;

/// What a response has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Status 200 with a body of this length in bytes.
    Body(u64),
    /// A status of success, or 304 of a cache.
    Success,
    /// Any final status; `to_head` where the request is a HEAD, which is answered without a body.
    Any {
        /// Whether the request is a HEAD.
        to_head: bool,
    },
}

impl From<Option<u64>> for Expected {
    fn from(body_bytes: Option<u64>) -> Expected {
        body_bytes.map_or(Expected::Success, Expected::Body)
    }
}

/// What all connections of a run share.
pub struct Receiver {
    buffer: RefCell<Box<[u8]>>,
    body_bytes: Cell<u64>,
}

/// A finished response; times are CLOCK_MONOTONIC nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// When the first byte was read.
    pub first_byte_ns: u64,
    /// When the last byte was read.
    pub last_byte_ns: u64,
    /// Longest time without a byte, from the request to the last byte.
    pub longest_silence_ns: u64,
    /// Length of the response head in bytes; `None` where the protocol packs it and only the probe
    /// has measured it.
    pub head_bytes: Option<u32>,
    /// Length of the body in bytes.
    pub body_bytes: u64,
    /// Whether the connection can carry another request.
    pub keep_alive: bool,
}

/// When bytes of one response came; times are CLOCK_MONOTONIC nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals {
    first_byte_ns: Option<u64>,
    last_ns: u64,
    longest_silence_ns: u64,
}

impl Arrivals {
    /// Of a response to a request that goes out at `now_ns`.
    pub fn asked(now_ns: u64) -> Arrivals {
        Arrivals {
            first_byte_ns: None,
            last_ns: now_ns,
            longest_silence_ns: 0,
        }
    }

    /// Something came, or the end.
    pub fn came(&mut self, now_ns: u64) {
        self.first_byte_ns.get_or_insert(now_ns);
        self.broke_silence(now_ns);
    }

    /// Something came that is not of the response yet.
    pub fn broke_silence(&mut self, now_ns: u64) {
        self.longest_silence_ns = self.longest_silence_ns.max(now_ns - self.last_ns);
        self.last_ns = now_ns;
    }

    /// Whether anything has come.
    pub fn began(&self) -> bool {
        self.first_byte_ns.is_some()
    }

    /// All of it is there: which status, and what came of which length.
    pub fn answer(
        &self,
        status: u16,
        head_bytes: Option<u32>,
        body_bytes: u64,
        keep_alive: bool,
    ) -> Answer {
        Answer {
            status,
            first_byte_ns: self.first_byte_ns.unwrap_or(self.last_ns),
            last_byte_ns: self.last_ns,
            longest_silence_ns: self.longest_silence_ns,
            head_bytes,
            body_bytes,
            keep_alive,
        }
    }
}

/// What a request got, and whether it opened the connection it came on.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// The response.
    pub answer: Answer,
    /// Whether the connection was made for this request.
    pub new_connection: bool,
}

impl Served {
    /// Fails where the server says that it did not do what was asked: status 400 and above.
    pub fn without_error(self) -> Result<Served, Failure> {
        match self.answer.status {
            status @ 400.. => Err(Failure::Status(status)),
            _ => Ok(self),
        }
    }
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

    /// Sends `request` and reads the response to its last byte; fails unless it is as expected.
    ///
    /// It reads while it sends: a server may answer before it has read the whole request, and read
    /// no more of it until its answer is taken. Behind an error, or an answer with which the server
    /// closes, no more of the request is sent (RFC 9112, section 9.5); such a connection carries no
    /// other request. Behind any other answer the rest of the request follows.
    pub async fn exchange(
        &self,
        stream: &mut Transport,
        request: Parts<'_>,
        expected: Expected,
    ) -> Result<Answer, Unanswered> {
        let mut arrivals = Arrivals::asked(monotonic_ns());
        let mut sending = Sending::new(request);
        let mut response = Response::to(expected == Expected::Any { to_head: true });
        loop {
            let received = poll_fn(|cx| {
                if let Poll::Ready(Err(lost)) = sending.poll(stream, cx) {
                    return Poll::Ready(Err(lost));
                }
                let received = self.poll_receive(stream, &mut response, cx);
                received.map_err(|failure| match arrivals.began() {
                    true => failure.into(),
                    false => sending.lost(failure.before_response()),
                })
            });
            let received = received.await?;
            if response.is_interim() && received > 0 {
                arrivals.broke_silence(monotonic_ns());
                continue;
            }
            arrivals.came(monotonic_ns());
            if received == 0 {
                let end = response.end_of_stream();
                end.map_err(|failure| sending.lost(failure))?;
            }
            if received == 0 || response.is_complete() {
                let mut answer = answer(&response, expected, arrivals)?;
                if !sending.is_done() {
                    let is_wanted = answer.keep_alive && answer.status < 400;
                    answer.keep_alive = is_wanted && self.send_rest(stream, &mut sending).await;
                    if !answer.keep_alive {
                        shut_down(stream).await;
                    }
                }
                return Ok(answer);
            }
        }
    }

    /// Sends what is left of a request behind its whole answer; returns whether all of it was
    /// sent. It ends early when the server closes, or sends what belongs to no request.
    async fn send_rest(&self, stream: &mut Transport, sending: &mut Sending<'_>) -> bool {
        poll_fn(|cx| {
            if sending.poll(stream, cx).is_ready() {
                return Poll::Ready(sending.is_done());
            }
            let mut rest = Response::rest_of_stream();
            self.poll_receive(stream, &mut rest, cx).map(|_| false)
        })
        .await
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

/// Ends what is sent, as far as that needs no wait.
async fn shut_down(stream: &mut Transport) {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *stream).poll_shutdown(cx).is_ready())).await;
}

fn answer(response: &Response, expected: Expected, arrivals: Arrivals) -> Result<Answer, Failure> {
    let head = response.head().ok_or(Failure::BadHead)?;
    let body_bytes = response.body_bytes();
    expected.status(head.status)?;
    expected.length(body_bytes)?;
    Ok(arrivals.answer(head.status, Some(head.bytes), body_bytes, head.keep_alive))
}

impl Expected {
    /// A body of a known length comes with 200. Where success is enough, so is what has no body:
    /// 204, or 304 of a cache.
    pub fn status(self, status: u16) -> Result<(), Failure> {
        match (status, self) {
            (200, _) | (201..=299 | 304, Expected::Success) | (_, Expected::Any { .. }) => Ok(()),
            _ => Err(Failure::Status(status)),
        }
    }

    /// Whether a body of this length is the one.
    pub fn length(self, received_bytes: u64) -> Result<(), Failure> {
        match self {
            Expected::Body(expected_bytes) if expected_bytes != received_bytes => {
                Err(Failure::WrongLength {
                    received_bytes,
                    expected_bytes,
                })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_lasts_from_the_request_or_a_byte_to_the_next_byte() {
        let mut arrivals = Arrivals::asked(100);
        assert!(!arrivals.began());
        for now_ns in [107, 110, 118] {
            arrivals.came(now_ns);
        }
        let answer = arrivals.answer(200, None, 3, true);
        assert_eq!((answer.first_byte_ns, answer.last_byte_ns), (107, 118));
        assert_eq!(answer.longest_silence_ns, 8);
    }
}
