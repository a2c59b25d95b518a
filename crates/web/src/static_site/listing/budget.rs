//! How much memory listings may take that are being made or sent, however many clients ask for
//! them.

use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that all listings of a server share. A clone is the same budget.
#[derive(Debug, Clone)]
pub struct Budget {
    free_bytes: Arc<AtomicU64>,
}

/// Some bytes of a budget; given back when dropped.
#[derive(Debug)]
pub struct Reserved {
    budget: Budget,
    bytes: u64,
}

impl Budget {
    /// A budget of so many bytes.
    pub fn new(bytes: u64) -> Self {
        Self {
            free_bytes: Arc::new(AtomicU64::new(bytes)),
        }
    }

    /// Takes bytes out of it, if there are as many.
    pub fn reserve(&self, bytes: u64) -> Option<Reserved> {
        let less = |free: u64| free.checked_sub(bytes);
        let free_bytes = &self.free_bytes;
        free_bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .ok()?;
        Some(Reserved {
            budget: self.clone(),
            bytes,
        })
    }
}

impl Reserved {
    /// The text as a body that gives its bytes back when it has been sent. What it does not need
    /// goes back at once; if it needs more than there is, there is no body.
    pub fn hold(mut self, text: String) -> Option<Bytes> {
        let wanted = text.len() as u64;
        let more = self.budget.reserve(wanted.saturating_sub(self.bytes))?;
        let surplus = self.bytes.saturating_sub(wanted);
        self.bytes -= surplus;
        self.budget.free_bytes.fetch_add(surplus, Ordering::Relaxed);
        Some(Bytes::from_owner(Held {
            text,
            _reserved: [self, more],
        }))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let free_bytes = &self.budget.free_bytes;
        free_bytes.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

struct Held {
    text: String,
    _reserved: [Reserved; 2],
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_missing_until_it_was_sent() {
        let budget = Budget::new(100);
        let reserved = budget.reserve(80).unwrap();
        assert!(budget.reserve(30).is_none());
        let body = reserved.hold("0123456789".into()).unwrap();
        let (half, all) = (body.slice(..5), body);
        assert_eq!(half, "01234");
        drop(all);
        assert!(budget.reserve(91).is_none());
        drop(budget.reserve(90).unwrap());
        drop(half);
        assert!(budget.reserve(100).is_some());
    }

    #[test]
    fn a_text_that_is_too_long_is_no_body() {
        let budget = Budget::new(100);
        let body = budget.reserve(10).unwrap().hold("x".repeat(60)).unwrap();
        let too_long = budget.reserve(10).unwrap().hold("x".repeat(41));
        assert!(too_long.is_none());
        assert!(budget.reserve(41).is_none());
        drop(body);
        assert!(budget.reserve(100).is_some());
    }
}
