//! Response bodies: nothing, bytes in memory, a part of a file read chunk by chunk, several of
//! those in turn, what an upstream sends, or the compressed form of any of them.

use crate::compress::CompressedBody;
use crate::files::File;
use crate::limits::{Activity, AwaitedAnswer};
use crate::request_body::BodyError;
use crate::service::GivenBytes;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use sooner_uplink::Flow;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::task::{JoinHandle, spawn_blocking};

/// A body that an upstream sends.
pub type BoxBody = Pin<Box<dyn Body<Data = Bytes, Error = BodyError> + Send>>;

type FrameResult = Result<Frame<Bytes>, BodyError>;

/// Where the bytes of a response come from.
pub enum Source {
    /// There are none (left).
    Empty,
    /// From memory, in one frame that is not copied.
    Memory(Bytes),
    /// From a file, read on demand.
    File(Part),
    /// From one source after the other.
    Chain(VecDeque<Source>),
    /// From a backend.
    Stream(BoxBody),
    /// Made of another source.
    Compressed(Box<CompressedBody>),
}

/// What is left to send of a file, whatever its path leads to by now.
#[derive(Debug)]
pub struct Part {
    file: Arc<File>,
    offset: u64,
    end: u64,
    chunk_bytes: usize,
    /// A read that has to wait for the disk, on a thread that may wait.
    from_disk: Option<JoinHandle<io::Result<Bytes>>>,
}

impl Source {
    /// The bytes `start..end` of `file`, both within its length.
    pub fn part(file: &Arc<File>, start: u64, end: u64, chunk_bytes: usize) -> Self {
        match file.in_memory() {
            _ if start == end => Self::Empty,
            Some(bytes) => Self::Memory(bytes.slice(start as usize..end as usize)),
            None => Self::File(Part {
                file: file.clone(),
                offset: start,
                end,
                chunk_bytes,
                from_disk: None,
            }),
        }
    }

    /// Reads `bytes` of a file at once from now on.
    pub fn set_chunk_bytes(&mut self, bytes: usize) {
        match self {
            Self::File(part) => part.chunk_bytes = bytes,
            Self::Chain(sources) => {
                for source in sources {
                    source.set_chunk_bytes(bytes);
                }
            }
            Self::Empty | Self::Memory(_) | Self::Stream(_) | Self::Compressed(_) => {}
        }
    }

    /// What `body` yields, trailers included.
    pub fn stream(body: BoxBody) -> Self {
        if body.is_end_stream() {
            Self::Empty
        } else {
            Self::Stream(body)
        }
    }

    /// A body that breaks off before its first byte.
    pub fn failed(error: BodyError) -> Self {
        Self::Stream(Box::pin(Failed(Some(error))))
    }

    /// Whether it may have nothing to give for long.
    pub fn is_awaited(&self) -> bool {
        match self {
            Self::Empty | Self::Memory(_) | Self::File(_) | Self::Chain(_) => false,
            Self::Stream(_) | Self::Compressed(_) => true,
        }
    }

    /// About how many bytes there will be, where that is not known but can be told.
    pub fn estimated_bytes(&self) -> Option<u64> {
        match self {
            Self::Compressed(body) => body.estimated_bytes(),
            _ => None,
        }
    }

    /// How many bytes more than estimated there will be, where that is worth telling.
    pub fn take_growth(&mut self) -> Option<u64> {
        match self {
            Self::Compressed(body) => body.take_growth(),
            _ => None,
        }
    }

    /// How many bytes of data are left; `None` if only the end will tell.
    pub fn len(&self) -> Option<u64> {
        match self {
            Self::Empty => Some(0),
            Self::Memory(bytes) => Some(bytes.len() as u64),
            Self::File(part) => Some(part.end - part.offset),
            Self::Chain(sources) => sources.iter().map(Self::len).sum(),
            Self::Stream(body) => body.size_hint().exact(),
            Self::Compressed(_) => None,
        }
    }

    /// Whether nothing more will come, not even trailers.
    pub fn is_end(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Memory(bytes) => bytes.is_empty(),
            Self::File(part) => part.offset == part.end,
            Self::Chain(sources) => sources.iter().all(Self::is_end),
            Self::Stream(body) => body.is_end_stream(),
            Self::Compressed(body) => body.is_end(),
        }
    }

    /// The next frame: data, or the trailers of a stream.
    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<FrameResult>> {
        match self {
            Self::Empty => Poll::Ready(None),
            Self::Memory(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = Self::Empty;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Self::File(part) => {
                let chunk = ready!(part.poll_chunk(cx));
                if chunk.is_err() || part.offset == part.end {
                    *self = Self::Empty;
                }
                Poll::Ready(Some(chunk.map(Frame::data).map_err(Into::into)))
            }
            Self::Chain(sources) => poll_chain(sources, cx),
            Self::Stream(body) => {
                let frame = ready!(body.as_mut().poll_frame(cx));
                if !matches!(frame, Some(Ok(_))) {
                    *self = Self::Empty;
                }
                Poll::Ready(frame)
            }
            Self::Compressed(body) => {
                let frame = ready!(body.poll_frame(cx));
                if !matches!(frame, Some(Ok(_))) {
                    *self = Self::Empty;
                }
                Poll::Ready(frame)
            }
        }
    }
}

/// A body that breaks off before its first byte.
struct Failed(Option<BodyError>);

impl Body for Failed {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<FrameResult>> {
        Poll::Ready(self.0.take().map(Err))
    }
}

fn poll_chain(sources: &mut VecDeque<Source>, cx: &mut Context<'_>) -> Poll<Option<FrameResult>> {
    while let Some(source) = sources.front_mut() {
        match ready!(source.poll_frame(cx)) {
            Some(Ok(frame)) => return Poll::Ready(Some(Ok(frame))),
            Some(Err(error)) => {
                sources.clear();
                return Poll::Ready(Some(Err(error)));
            }
            None => drop(sources.pop_front()),
        }
    }
    Poll::Ready(None)
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Memory(bytes) => write!(f, "Memory({} bytes)", bytes.len()),
            Self::File(part) => part.fmt(f),
            Self::Chain(sources) => sources.fmt(f),
            Self::Stream(_) => f.write_str("Stream"),
            Self::Compressed(_) => f.write_str("Compressed"),
        }
    }
}

impl Part {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        let chunk = match &mut self.from_disk {
            Some(reading) => {
                let read = ready!(Pin::new(reading).poll(cx));
                self.from_disk = None;
                read.unwrap_or_else(|gone| Err(io::Error::other(gone)))?
            }
            None => match self.file.read_cached(self.offset, self.wanted_bytes())? {
                Some(chunk) => chunk,
                None => {
                    self.from_disk = Some(self.read_from_disk());
                    return self.poll_chunk(cx);
                }
            },
        };
        self.offset += chunk.len() as u64;
        Poll::Ready(Ok(chunk))
    }

    fn wanted_bytes(&self) -> usize {
        (self.end - self.offset).min(self.chunk_bytes as u64) as usize
    }

    fn read_from_disk(&self) -> JoinHandle<io::Result<Bytes>> {
        let (file, offset, len) = (self.file.clone(), self.offset, self.wanted_bytes());
        spawn_blocking(move || file.read_at(offset, len))
    }
}

/// The body of one response over HTTP/1; tells its flow when it has given everything or will give
/// no more.
pub struct ResponseBody {
    source: Source,
    flow: Flow,
    activity: Arc<Activity>,
    given: Option<GivenBytes>,
    /// Where a backend sends it.
    _awaited: Option<AwaitedAnswer>,
    is_open_ended: bool,
    /// Why it breaks off, once the source has said so.
    broken: Option<BodyError>,
}

impl ResponseBody {
    /// A body that yields `source` into the connection of `flow`, which does `activity`, and tells
    /// `given` of it; while it lasts, its client may leave unnoticed where it is `awaited`.
    pub fn new(
        source: Source,
        flow: Flow,
        activity: Arc<Activity>,
        given: Option<GivenBytes>,
        awaited: Option<AwaitedAnswer>,
    ) -> Self {
        Self {
            source,
            flow,
            activity,
            given,
            _awaited: awaited,
            is_open_ended: false,
            broken: None,
        }
    }

    /// An error ends the connection with all that is not on its way, the head too. So it waits until
    /// everything before it has gone to the socket; hyper asks again then.
    fn poll_broken(&mut self) -> Poll<Option<FrameResult>> {
        if self.activity.is_flushed() {
            Poll::Ready(self.broken.take().map(Err))
        } else {
            Poll::Pending
        }
    }

    /// What follows speaks another protocol and takes its turns as a response without an end.
    pub fn lasts_as_long_as_its_connection(&mut self) {
        self.is_open_ended = true;
    }
}

impl Drop for ResponseBody {
    // hyper drops a body as soon as it has the last frame.
    fn drop(&mut self) {
        if self.is_open_ended {
            return;
        }
        self.flow.body_done();
        self.activity.response_ended();
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<FrameResult>> {
        if self.broken.is_some() {
            return self.poll_broken();
        }
        let frame = self.source.poll_frame(cx);
        if let Poll::Ready(Some(Err(error))) = frame {
            self.broken = Some(error);
            self.activity.expect_flush();
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(growth_bytes) = self.source.take_growth() {
            self.flow.enlarge(growth_bytes);
        }
        if let (Some(given), Poll::Ready(Some(Ok(frame)))) = (&self.given, &frame) {
            given.add(frame.data_ref().map_or(0, |data| data.len() as u64));
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.broken.is_none() && self.source.is_end()
    }

    fn size_hint(&self) -> SizeHint {
        self.source
            .len()
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    fn drain(mut source: Source) -> Vec<u8> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut all = Vec::new();
        while let Poll::Ready(Some(frame)) = source.poll_frame(&mut cx) {
            all.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
        assert!(source.is_end());
        all
    }

    #[test]
    fn a_chain_yields_its_parts_in_turn_and_knows_their_length() {
        let chain = Source::Chain(VecDeque::from([
            Source::Memory(Bytes::from_static(b"ab")),
            Source::Empty,
            Source::Memory(Bytes::from_static(b"c")),
        ]));
        assert_eq!(chain.len(), Some(3));
        assert!(!chain.is_end());
        assert_eq!(drain(chain), b"abc");
    }
}
