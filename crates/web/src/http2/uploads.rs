//! The windows that a connection gets for its uploads.
//!
//! The body of a request that waits for a backend is read by none, and what its client has sent of
//! it keeps its part of the connection's window. A few such bodies would take all of it, and those
//! that a backend reads could not go on: they would wait for the window, and the others for them.
//! So each upload brings a window of a stream with it, as long as there are some to lend.

use super::bounds::{CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The most windows that all connections of this process have together beyond their own: 64 MiB of
/// request bodies.
const LENT_MAX: u32 = 256;
static LENT: AtomicU32 = AtomicU32::new(0);

/// The uploads of a connection.
#[derive(Debug, Default)]
pub struct Uploads {
    open: Arc<AtomicU32>,
    lent: Cell<u32>,
}

/// One that has not been received to its end.
#[derive(Debug)]
pub struct Upload(Arc<AtomicU32>);

impl Uploads {
    /// A request comes with a body.
    pub fn begin(&self) -> Upload {
        self.open.fetch_add(1, Ordering::Relaxed);
        Upload(self.open.clone())
    }

    /// What the connection's window is to be now, bytes.
    pub fn window_bytes(&self) -> u32 {
        let (wanted, lent) = (self.open.load(Ordering::Relaxed), self.lent.get());
        if wanted < lent {
            LENT.fetch_sub(lent - wanted, Ordering::Relaxed);
            self.lent.set(wanted);
        }
        for _ in lent..wanted {
            if !borrow() {
                break;
            }
            self.lent.set(self.lent.get() + 1);
        }
        let bytes = u64::from(self.lent.get()) * u64::from(STREAM_WINDOW_BYTES);
        // Far below the most that a window may be, whatever is lent.
        CONNECTION_WINDOW_BYTES + u32::try_from(bytes).unwrap_or(0)
    }
}

/// Whether one more window could be had.
fn borrow() -> bool {
    let more = |lent: u32| (lent < LENT_MAX).then_some(lent + 1);
    LENT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
        .is_ok()
}

impl Drop for Uploads {
    fn drop(&mut self) {
        LENT.fetch_sub(self.lent.get(), Ordering::Relaxed);
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let before = self.0.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "an upload ends once");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_upload_brings_a_window_as_long_as_there_are_some() {
        let (one, other) = (Uploads::default(), Uploads::default());
        let windows = |uploads: &Uploads| {
            (uploads.window_bytes() - CONNECTION_WINDOW_BYTES) / STREAM_WINDOW_BYTES
        };
        assert_eq!(windows(&one), 0);
        let mut of_one: Vec<Upload> = (0..3).map(|_| one.begin()).collect();
        assert_eq!(windows(&one), 3);
        let of_other: Vec<Upload> = (0..2 * LENT_MAX).map(|_| other.begin()).collect();
        let rest = windows(&other);
        assert!(rest <= LENT_MAX - 3, "{rest} beside 3");
        of_one.pop();
        assert_eq!(windows(&one), 2);
        assert_eq!(windows(&other), rest + 1);
        drop(one);
        assert_eq!(windows(&other), rest + 3);
        drop((of_one, of_other));
        assert_eq!(windows(&other), 0);
    }
}
