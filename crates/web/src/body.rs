//! Response bodies: nothing, bytes in memory, or a part of a file read chunk by chunk.

use crate::files::File;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use sooner_uplink::Flow;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::task::{JoinHandle, spawn_blocking};

/// Where the bytes of a response come from.
#[derive(Debug)]
pub enum Source {
    /// There are none (left).
    Empty,
    /// From memory, in one frame that is not copied.
    Memory(Bytes),
    /// From a file, read when they are asked for.
    File(Part),
}

/// What is left to send of a file, whatever its path leads to by now.
#[derive(Debug)]
pub struct Part {
    file: Arc<File>,
    offset: u64,
    end: u64,
    chunk_bytes: usize,
    /// A read that has to wait for the disk, and must not make everybody else wait too.
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

    /// How many bytes are left.
    pub fn len(&self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(part) => part.end - part.offset,
        }
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if let Self::File(part) = self {
            let chunk = ready!(part.poll_chunk(cx));
            if chunk.is_err() || part.offset == part.end {
                *self = Self::Empty;
            }
            return Poll::Ready(Some(chunk));
        }
        match std::mem::replace(self, Self::Empty) {
            Self::Memory(bytes) => Poll::Ready(Some(Ok(bytes))),
            _ => Poll::Ready(None),
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

/// The body of one response; tells its flow when it has given everything or will give no more.
pub struct ResponseBody {
    source: Source,
    flow: Flow,
}

impl ResponseBody {
    /// A body that yields `source` into the connection of `flow`.
    pub fn new(source: Source, flow: Flow) -> Self {
        Self { source, flow }
    }
}

impl Drop for ResponseBody {
    // hyper drops a body as soon as it has the last frame.
    fn drop(&mut self) {
        self.flow.body_done();
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.source
            .poll_chunk(cx)
            .map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.source.len() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.source.len())
    }
}
