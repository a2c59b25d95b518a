//! What an HTTP/2 engine does with a gated socket: frames are queued by streams and written one
//! after the other, with a flush after each.

use sooner_link::{JobReport, ResponseStart};
use sooner_uplink::{FinishedStream, GatedStream, StreamFlow};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};
use tokio::io::AsyncWrite;

const FRAME_HEADER_BYTES: usize = 9;

/// Reports in the order in which responses ended, by the index of their stream.
pub type Ends = Arc<Mutex<Vec<(u8, JobReport)>>>;

/// What streams hand over.
#[derive(Default)]
pub struct Engine(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    frames: VecDeque<Piece>,
    bytes: u64,
    bytes_max: u64,
    waker: Option<Waker>,
    is_closed: bool,
}

/// What lies in the queue.
enum Piece {
    /// Of a stream, so many bytes.
    Frame(u8, u64),
    /// What comes before it was all of a stream.
    End(FinishedStream),
}

impl Engine {
    fn push(&self, stream: u8, bytes: u64) {
        let mut queue = self.0.lock().expect("no panic");
        queue.frames.push_back(Piece::Frame(stream, bytes));
        queue.bytes += bytes;
        queue.bytes_max = queue.bytes_max.max(queue.bytes);
        if let Some(waker) = queue.waker.take() {
            waker.wake();
        }
    }

    fn end(&self, stream: FinishedStream) {
        let mut queue = self.0.lock().expect("no panic");
        queue.frames.push_back(Piece::End(stream));
        if let Some(waker) = queue.waker.take() {
            waker.wake();
        }
    }

    /// After what is queued the connection ends.
    pub fn close(&self) {
        let mut queue = self.0.lock().expect("no panic");
        queue.is_closed = true;
        if let Some(waker) = queue.waker.take() {
            waker.wake();
        }
    }

    /// The most that was queued at a time, bytes.
    pub fn bytes_max(&self) -> u64 {
        self.0.lock().expect("no panic").bytes_max
    }

    fn next(&self, cx: &Context<'_>) -> Option<Piece> {
        let mut queue = self.0.lock().expect("no panic");
        queue.waker = Some(cx.waker().clone());
        queue.frames.pop_front()
    }

    fn is_closed(&self) -> bool {
        self.0.lock().expect("no panic").is_closed
    }
}

/// Writes what is queued until the engine is closed or the client is gone.
pub struct Driver {
    stream: GatedStream,
    engine: Arc<Engine>,
    frame: Vec<u8>,
    written: usize,
}

impl Driver {
    pub fn new(stream: GatedStream, engine: Arc<Engine>) -> Self {
        Self {
            stream,
            engine,
            frame: Vec::new(),
            written: 0,
        }
    }

    fn payload_written_bytes(&self) -> u64 {
        self.written.saturating_sub(FRAME_HEADER_BYTES) as u64
    }

    fn poll_drive(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        loop {
            while self.written < self.frame.len() {
                let rest = &self.frame[self.written..];
                let before_bytes = self.payload_written_bytes();
                self.written += ready!(Pin::new(&mut self.stream).poll_write(cx, rest))?;
                let written_bytes = self.payload_written_bytes() - before_bytes;
                self.engine.0.lock().expect("no panic").bytes -= written_bytes;
            }
            self.frame.clear();
            self.written = 0;
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            match self.engine.next(cx) {
                Some(Piece::End(stream)) => stream.written(),
                Some(Piece::Frame(stream, bytes)) => {
                    self.frame.push(stream);
                    self.frame.extend(bytes.to_be_bytes());
                    self.frame
                        .resize(FRAME_HEADER_BYTES + bytes as usize, stream);
                }
                None if self.engine.is_closed() => return Poll::Ready(Ok(())),
                None => return Poll::Pending,
            }
        }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.get_mut().poll_drive(cx).map(|_| ())
    }
}

/// Announces a response; its report goes to `ends`.
pub fn start(flow: &StreamFlow, index: u8, bytes: u64, class: u8, ends: &Ends) {
    let start = ResponseStart {
        body_bytes: Some(bytes),
        class,
        ..ResponseStart::default()
    };
    let ends = ends.clone();
    flow.start(start, move |report| {
        ends.lock().expect("no panic").push((index, report));
    });
}

/// Hands over `bytes` as they are granted.
pub async fn respond(mut flow: StreamFlow, engine: Arc<Engine>, index: u8, bytes: u64) {
    let mut left_bytes = bytes;
    while left_bytes > 0 {
        let granted = poll_fn(|cx| flow.poll_grant(cx, left_bytes)).await;
        engine.push(index, granted);
        flow.settle(granted);
        left_bytes -= granted;
    }
    engine.end(flow.finished());
}

/// The frames a client received: stream and payload bytes.
pub fn frames(mut received: &[u8]) -> Vec<(u8, u64)> {
    let mut frames = Vec::new();
    while let Some((header, rest)) = received.split_first_chunk::<FRAME_HEADER_BYTES>() {
        let bytes = u64::from_be_bytes(header[1..].try_into().expect("eight bytes"));
        assert!(rest[..bytes as usize].iter().all(|byte| *byte == header[0]));
        frames.push((header[0], bytes));
        received = &rest[bytes as usize..];
    }
    assert!(received.is_empty(), "the last frame is whole");
    frames
}
