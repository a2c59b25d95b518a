//! How much may be held of responses for clients that have not taken it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes all responses may be read ahead of their clients.
#[derive(Debug)]
pub struct Budget {
    used_bytes: AtomicUsize,
    bytes_max: usize,
    /// For one response.
    pub(super) each_bytes_max: usize,
}

impl Budget {
    /// At most `bytes_max` in all and `each_bytes_max` for one response.
    pub fn new(bytes_max: usize, each_bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            used_bytes: AtomicUsize::new(0),
            bytes_max,
            each_bytes_max,
        })
    }

    /// What is used.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Whether anything is left.
    pub(super) fn has_room(&self) -> bool {
        self.used_bytes() < self.bytes_max
    }

    /// Counts bytes that are held from now on.
    pub(super) fn take(&self, bytes: usize) {
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes that are held no more.
    pub(super) fn give_back(&self, bytes: usize) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
