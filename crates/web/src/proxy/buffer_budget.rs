//! The memory that bodies may take which wait here: of responses for their clients, of requests for
//! their turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that may be held of all bodies together.
#[derive(Debug)]
pub struct BufferBudget {
    used_bytes: AtomicUsize,
    bytes_max: usize,
    /// For one response.
    pub(super) each_bytes_max: usize,
}

impl BufferBudget {
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
    pub fn has_room(&self) -> bool {
        self.used_bytes() < self.bytes_max
    }

    /// Counts bytes that are held from now on.
    pub fn take(&self, bytes: usize) {
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes that are held no more.
    pub fn give_back(&self, bytes: usize) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes of one body that count in a budget until they are released or this is dropped.
#[derive(Debug)]
pub struct Held {
    budget: Arc<BufferBudget>,
    bytes: usize,
}

impl Held {
    /// None yet.
    pub fn none(budget: &Arc<BufferBudget>) -> Self {
        Self {
            budget: budget.clone(),
            bytes: 0,
        }
    }

    /// Whether more may be held.
    pub fn has_room(&self) -> bool {
        self.budget.has_room()
    }

    /// So many more are held.
    pub fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.budget.take(bytes);
    }

    /// So many of them are held no more.
    pub fn release(&mut self, bytes: usize) {
        assert!(bytes <= self.bytes, "what is released was held");
        self.bytes -= bytes;
        self.budget.give_back(bytes);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}
