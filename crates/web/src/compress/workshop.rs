//! Where compressing is done, and what it may use: threads that may block, so many at a time, and
//! so much memory.

use super::config::Levels;
use super::counts::CompressionCounts;
use super::encoder::{Encoder, Step};
use bytes::Bytes;
use sooner_http::negotiation::Coding;
use std::io;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

/// The most bytes that are compressed at a time.
pub const SLICE_BYTES: usize = 64 << 10;
/// What is compressed where it is: to wake a thread for so little would cost about as much.
const AT_ONCE_BYTES: usize = 4 << 10;
/// What memory is counted in.
const UNIT_BYTES: u64 = 1 << 10;

/// What all compression of a server shares.
#[derive(Debug)]
pub struct Workshop {
    places: Arc<Semaphore>,
    memory: Arc<Semaphore>,
    levels: Levels,
    counts: Arc<CompressionCounts>,
}

/// Some memory of a [`Workshop`]; given back when dropped.
#[derive(Debug)]
pub struct Reserved {
    _units: OwnedSemaphorePermit,
}

/// A compressor and what is to be put into it.
pub struct Work {
    /// The compressor; none at the beginning of a body.
    pub encoder: Option<Encoder>,
    /// How it compresses.
    pub coding: Coding,
    /// How long the body is, if known.
    pub body_bytes: Option<u64>,
    /// What is to be put in.
    pub input: Vec<Bytes>,
    /// What was put in before and may not have come out, bytes.
    pub backlog_bytes: usize,
    /// What follows.
    pub step: Step,
}

/// What came of it.
pub struct Done {
    /// The compressor; none at the end of a body.
    pub encoder: Option<Encoder>,
    /// What came out.
    pub output: Vec<u8>,
}

impl Workshop {
    /// Room for `threads` slices at a time, and for `memory_bytes`.
    pub fn new(
        threads: usize,
        memory_bytes: u64,
        levels: Levels,
        counts: Arc<CompressionCounts>,
    ) -> Self {
        let units = usize::try_from(memory_bytes / UNIT_BYTES).unwrap_or(usize::MAX);
        Self {
            places: Arc::new(Semaphore::new(threads)),
            memory: Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS))),
            levels,
            counts,
        }
    }

    /// What it counts.
    pub fn counts(&self) -> &CompressionCounts {
        &self.counts
    }

    /// Takes memory, if there is as much.
    pub fn reserve(&self, bytes: u64) -> Option<Reserved> {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).ok()?;
        let units = self.memory.clone().try_acquire_many_owned(units).ok()?;
        Some(Reserved { _units: units })
    }

    /// Does `work`, of which there is a slice at most, when there is a place for it. Once begun it
    /// is done to its end, also when its future is dropped.
    pub async fn run(self: Arc<Self>, work: Work) -> io::Result<Done> {
        let levels = self.levels;
        // As long as the workshop lives its places are not closed.
        let place = self.places.clone().acquire_owned().await;
        let doing = spawn_blocking(move || {
            let done = work.run(levels);
            drop(place);
            done
        });
        doing.await.map_err(io::Error::other)?
    }

    /// Does `work` here and now.
    pub fn run_at_once(&self, work: Work) -> io::Result<Done> {
        work.run(self.levels)
    }
}

impl Work {
    /// Whether it is so little that a thread for it would cost more.
    pub fn is_little(&self) -> bool {
        let bytes: usize = self.input.iter().map(Bytes::len).sum();
        bytes + self.backlog_bytes <= AT_ONCE_BYTES
    }

    fn run(self, levels: Levels) -> io::Result<Done> {
        let mut encoder = match self.encoder {
            Some(encoder) => encoder,
            None => Encoder::new(self.coding, levels, self.body_bytes)?,
        };
        let output = encoder.put(&self.input, self.step)?;
        Ok(Done {
            encoder: (self.step != Step::Finish).then_some(encoder),
            output,
        })
    }
}

impl Reserved {
    /// `bytes` as something that gives the memory back when it has been sent.
    pub fn hold(self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(Held {
            bytes,
            _reserved: self,
        })
    }
}

struct Held {
    bytes: Vec<u8>,
    _reserved: Reserved,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
