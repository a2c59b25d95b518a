//! Response bodies: nothing, bytes in memory, or a part of a file read chunk by chunk.

use crate::files::File;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use sooner_uplink::Flow;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Where the bytes of a response come from.
#[derive(Debug)]
pub enum Source {
    /// There are none (left).
    Empty,
    /// From memory, in one frame that is not copied.
    Memory(Bytes),
    /// From a file, read when they are asked for.
    File {
        /// The file, whatever its path leads to by now.
        file: Rc<File>,
        /// Position of the next byte.
        offset: u64,
        /// Position after the last byte.
        end: u64,
        /// Bytes read at once.
        chunk_bytes: usize,
    },
}

impl Source {
    /// The bytes `start..end` of `file`, both within its length.
    pub fn part(file: &Rc<File>, start: u64, end: u64, chunk_bytes: usize) -> Self {
        match file.in_memory() {
            _ if start == end => Self::Empty,
            Some(bytes) => Self::Memory(bytes.slice(start as usize..end as usize)),
            None => Self::File {
                file: file.clone(),
                offset: start,
                end,
                chunk_bytes,
            },
        }
    }

    /// How many bytes are left.
    pub fn len(&self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File { offset, end, .. } => end - offset,
        }
    }

    fn next_chunk(&mut self) -> Option<io::Result<Bytes>> {
        if let Self::File {
            file,
            offset,
            end,
            chunk_bytes,
        } = self
        {
            let wanted = (*end - *offset).min(*chunk_bytes as u64);
            let chunk = file.read_at(*offset, wanted as usize);
            match &chunk {
                Ok(bytes) if *offset + (bytes.len() as u64) < *end => *offset += bytes.len() as u64,
                _ => *self = Self::Empty,
            }
            return Some(chunk);
        }
        match std::mem::replace(self, Self::Empty) {
            Self::Memory(bytes) => Some(Ok(bytes)),
            _ => None,
        }
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
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        Poll::Ready(self.source.next_chunk().map(|chunk| chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.source.len() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.source.len())
    }
}
