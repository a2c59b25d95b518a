//! Body bytes that were handed to the HTTP/2 library and have not been written yet.
//!
//! The library takes whatever the windows of HTTP/2 allow, also when the socket is full; that may be megabytes, in an order that cannot be
//! changed any more. So only a frame's worth is handed over before it has been written. The library drops a frame's bytes when it has
//! written them, and that is how this is known.

use bytes::{Buf, Bytes};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// While less than this waits to be written, more may come: enough for the small responses of one packet's requests to be written in one
/// go.
const ROOM_BYTES: usize = 16 << 10;

/// The way out of one connection.
#[derive(Debug, Default)]
pub struct Outlet {
    held_bytes: Cell<usize>,
    waiting: RefCell<Vec<Waker>>,
}

/// Bytes on the way out.
#[derive(Debug)]
pub struct Outgoing {
    bytes: Bytes,
    counted_bytes: usize,
    outlet: Rc<Outlet>,
}

impl Outlet {
    /// Whether more may be handed over.
    pub fn has_room(&self) -> bool {
        self.held_bytes.get() < ROOM_BYTES
    }

    /// Ready when more may be handed over. Everybody who waits is woken, because only the uplink knows whose turn it is.
    pub fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.has_room() {
            return Poll::Ready(());
        }
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Counts `bytes` until they are dropped.
    pub fn hand_over(self: &Rc<Self>, bytes: Bytes) -> Outgoing {
        self.held_bytes.set(self.held_bytes.get() + bytes.len());
        Outgoing {
            counted_bytes: bytes.len(),
            bytes,
            outlet: self.clone(),
        }
    }

    fn written(&self, bytes: usize) {
        self.held_bytes.set(self.held_bytes.get() - bytes);
        if self.has_room() {
            let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.outlet.written(self.counted_bytes);
    }
}

impl Buf for Outgoing {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_full_outlet_opens_when_bytes_are_dropped() {
        let outlet = Rc::<Outlet>::default();
        let count = Arc::<Count>::default();
        let waker = Waker::from(count.clone());
        let mut cx = Context::from_waker(&waker);
        let small = outlet.hand_over(Bytes::from_static(b"abc"));
        assert!(outlet.poll_room(&mut cx).is_ready());
        let large = outlet.hand_over(Bytes::from(vec![0; ROOM_BYTES]));
        assert!(outlet.poll_room(&mut cx).is_pending());
        assert!(outlet.poll_room(&mut cx).is_pending());
        drop(small);
        assert_eq!(count.0.load(Ordering::Relaxed), 0, "still full");
        drop(large);
        assert_eq!(count.0.load(Ordering::Relaxed), 1, "once for each task");
        assert!(outlet.poll_room(&mut cx).is_ready());
        assert_eq!(outlet.held_bytes.get(), 0);
    }
}
