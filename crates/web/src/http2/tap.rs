//! The byte stream below the HTTP/2 library, looked into on the way: PRIORITY_UPDATE frames are
//! found in what is read, the ends of streams in both directions, and one setting is added to what
//! is written first. What is written is collected while the connection has more to write.
//!
//! What is read is counted, and heads are replaced for which the library would give up the
//! connection ([`HeadFilter`]). After a violation nothing more is read: the driver of the library
//! ends the connection.

use super::cork::{Collected, Cork};
use super::priorities::Priorities;
use super::unwritten::Unwritten;
use crate::clock::Clock;
use sooner_http::frames::{
    FrameBudget, FrameScanner, StreamEnd, StreamEnds, Violation, amend_settings,
};
use sooner_http::hpack::HeadFilter;
use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A byte stream that is looked into.
pub struct Tap<Io> {
    io: Io,
    scanner: FrameScanner,
    clock: Clock,
    budget: FrameBudget,
    heads: HeadFilter,
    head_bytes_max: u32,
    /// What was read, and is for the library instead of it.
    unread: Unread,
    priorities: Rc<RefCell<Priorities>>,
    cork: Cork,
    collected: Collected,
    has_written: bool,
    unwritten: Rc<RefCell<Unwritten>>,
    malformed: Rc<Cell<u32>>,
    read_ends: StreamEnds,
    written_ends: StreamEnds,
    /// The ends of streams among what is collected; no more than frames without payload fit in
    /// there.
    collected_ends: Vec<StreamEnd>,
}

/// Bytes for the library.
#[derive(Debug, Default)]
struct Unread {
    bytes: Vec<u8>,
    taken_bytes: usize,
}

impl Unread {
    /// Gives as much as there is room for; whether there was anything.
    fn give(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let left = &self.bytes[self.taken_bytes..];
        if left.is_empty() {
            return false;
        }
        let given = &left[..left.len().min(buf.remaining())];
        buf.put_slice(given);
        self.taken_bytes += given.len();
        if self.taken_bytes == self.bytes.len() {
            *self = Self::default();
        }
        true
    }
}

/// What is found in the bytes of one connection.
#[derive(Clone)]
pub struct TapEvents {
    /// What PRIORITY_UPDATE frames say.
    pub priorities: Rc<RefCell<Priorities>>,
    /// Which responses were written, and which taken back before.
    pub unwritten: Rc<RefCell<Unwritten>>,
    /// How many requests were malformed and are not logged yet.
    pub malformed: Rc<Cell<u32>>,
}

impl<Io> Tap<Io> {
    /// Looks into `io` from its first byte in both directions; `tap_events` hear what is found.
    /// Flushes wait while `cork` is in. Clients are told that heads may be up to `head_bytes_max`
    /// long.
    pub fn new(io: Io, tap_events: TapEvents, cork: Cork, head_bytes_max: u32) -> Self {
        let clock = Clock::start();
        Self {
            io,
            scanner: FrameScanner::default(),
            clock,
            budget: FrameBudget::new(clock.now()),
            heads: HeadFilter::new(head_bytes_max),
            head_bytes_max,
            unread: Unread::default(),
            priorities: tap_events.priorities,
            cork,
            collected: Collected::default(),
            has_written: false,
            unwritten: tap_events.unwritten,
            malformed: tap_events.malformed,
            read_ends: StreamEnds::of_client(),
            written_ends: StreamEnds::of_server(),
            collected_ends: Vec::new(),
        }
    }

    /// Tells the listeners what is in what was read.
    fn look_at(&mut self, read: &[u8]) {
        let (priorities, budget, clock) = (&self.priorities, &mut self.budget, self.clock);
        self.scanner.feed_counting(
            read,
            |found| priorities.borrow_mut().note(found),
            |frame| {
                if !budget.spend(frame.kind, frame.payload_bytes, || clock.now()) {
                    let too_many = Err(Violation::TooManyFrames);
                    priorities.borrow_mut().note(too_many);
                }
            },
        );
        let unwritten = &self.unwritten;
        self.read_ends.feed(read, |end| {
            unwritten.borrow_mut().received(end);
        });
    }

    /// Takes in as much of `slices` as there is room for; returns how much that was.
    fn collect(&mut self, slices: &[IoSlice<'_>]) -> usize {
        let taken = self.collected.take(slices);
        let (ends, heads) = (&mut self.collected_ends, &mut self.heads);
        self.written_ends.feed(self.collected.latest(taken), |end| {
            if let StreamEnd::Reset(stream) = end {
                heads.forget(stream);
            }
            ends.push(end);
        });
        let data = self.written_ends.take_data();
        self.budget.earn(data.frames, data.bytes);
        taken
    }
}

impl<Io: AsyncWrite + Unpin> Tap<Io> {
    /// Writes what was collected, and reports the responses that were in it.
    fn poll_write_collected(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.collected.poll_write_to(&mut self.io, cx))?;
        for end in self.collected_ends.drain(..) {
            self.unwritten.borrow_mut().written(end);
        }
        Poll::Ready(Ok(()))
    }
}

impl<Io: AsyncRead + Unpin> AsyncRead for Tap<Io> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let tap = self.get_mut();
        loop {
            if tap.priorities.borrow().violation().is_some() {
                // The driver looks at it when the library has nothing more to read.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if tap.unread.give(buf) {
                return Poll::Ready(Ok(()));
            }
            let read_before = buf.filled().len();
            ready!(Pin::new(&mut tap.io).poll_read(cx, buf))?;
            if buf.filled().len() == read_before {
                return Poll::Ready(Ok(()));
            }
            tap.look_at(&buf.filled()[read_before..]);
            let changed = tap.heads.pass(&buf.filled()[read_before..]);
            let malformed = tap.heads.take_malformed();
            tap.malformed.set(tap.malformed.get() + malformed);
            let Some(bytes) = changed else {
                return Poll::Ready(Ok(()));
            };
            buf.set_filled(read_before);
            tap.unread = Unread {
                bytes,
                taken_bytes: 0,
            };
        }
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for Tap<Io> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let tap = self.get_mut();
        if !std::mem::replace(&mut tap.has_written, true)
            && let Some(first) = slices.first()
            && let Some(settings) = amend_settings(first, tap.head_bytes_max)
        {
            tap.collect(&[IoSlice::new(&settings.frame)]);
            return Poll::Ready(Ok(settings.replaced_bytes));
        }
        if tap.collected.is_full() {
            ready!(tap.poll_write_collected(cx))?;
        }
        Poll::Ready(Ok(tap.collect(slices)))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tap = self.get_mut();
        let mut unwritten = tap.unwritten.borrow_mut();
        unwritten.flushed(&tap.collected_ends);
        drop(unwritten);
        if tap.cork.is_in() {
            return Poll::Ready(Ok(()));
        }
        ready!(tap.poll_write_collected(cx))?;
        Pin::new(&mut tap.io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tap = self.get_mut();
        ready!(tap.poll_write_collected(cx))?;
        // The library's own flush may have met the cork, and with a flush responses end.
        ready!(Pin::new(&mut tap.io).poll_flush(cx))?;
        Pin::new(&mut tap.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_link::ResponseStart;
    use sooner_uplink::{Flow, Uplink};
    use std::sync::{Arc, Mutex};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    const SETTINGS: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x80";
    const AMENDED: &[u8] = b"\0\0\x0c\x04\0\0\0\0\0\0\x03\0\0\0\x80\0\x09\0\0\0\x01";

    fn tap_events() -> TapEvents {
        TapEvents {
            priorities: Rc::new(RefCell::new(Priorities::new(1))),
            unwritten: Rc::default(),
            malformed: Rc::default(),
        }
    }

    fn tap<Io>(io: Io) -> Tap<Io> {
        Tap::new(io, tap_events(), Cork::default(), 16 << 10)
    }

    #[tokio::test]
    async fn bytes_pass_in_both_directions_whatever_the_buffers() {
        for buffer_bytes in [1, 7, 1000] {
            let (near, mut far) = tokio::io::duplex(buffer_bytes);
            let mut tap = tap(near);
            let writing = async {
                tap.write_all(SETTINGS).await.unwrap();
                tap.write_all(SETTINGS).await.unwrap();
                tap.flush().await.unwrap();
                let mut read = [0; 5];
                tap.read_exact(&mut read).await.unwrap();
                assert_eq!(&read, b"hello");
            };
            let reading = async {
                let mut read = vec![0; AMENDED.len() + SETTINGS.len()];
                far.read_exact(&mut read).await.unwrap();
                assert_eq!(read, [AMENDED, SETTINGS].concat());
                far.write_all(b"hello").await.unwrap();
            };
            tokio::join!(writing, reading);
        }
    }

    #[tokio::test]
    async fn nothing_leaves_while_the_cork_is_in() {
        let (near, mut far) = tokio::io::duplex(100);
        let cork = Cork::default();
        let mut tap = Tap::new(near, tap_events(), cork.clone(), 16 << 10);
        cork.put_in();
        for piece in ["a", "b", "c"] {
            tap.write_all(piece.as_bytes()).await.unwrap();
            tap.flush().await.unwrap();
        }
        cork.pull();
        tap.flush().await.unwrap();
        let mut read = [0; 100];
        assert_eq!(far.read(&mut read).await.unwrap(), 3, "in one piece");
    }

    /// The streams that have ended, and whether they count as completed.
    type Ended = Arc<Mutex<Vec<(u8, bool)>>>;

    /// As if the library had everything of a response.
    fn hand_over(stream: u8, flow: &Flow, unwritten: &RefCell<Unwritten>, ended: &Ended) {
        let flow = flow.open_stream();
        let ended = ended.clone();
        flow.start(ResponseStart::default(), move |report| {
            ended.lock().unwrap().push((stream, report.completed));
        });
        unwritten.borrow_mut().add(stream.into(), flow.finished());
    }

    fn last_frame(stream: u8) -> [u8; 10] {
        [0, 0, 1, 0, 1, 0, 0, 0, stream, b'x']
    }

    fn reset(stream: u8) -> [u8; 13] {
        [0, 0, 4, 3, 0, 0, 0, 0, stream, 0, 0, 0, 8]
    }

    #[tokio::test]
    async fn only_what_was_written_to_its_last_frame_is_completed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let connecting = TcpStream::connect(listener.local_addr().unwrap());
        let (client, accepted) = tokio::join!(connecting, listener.accept());
        let (mut client, uplink) = (client.unwrap(), Uplink::unlimited());
        let (io, flow) = uplink.wrap(accepted.unwrap().0);
        let (tap_events, cork, ended) = (tap_events(), Cork::default(), Ended::default());
        let unwritten = tap_events.unwritten.clone();
        let mut tap = Tap::new(io, tap_events, cork.clone(), 16 << 10);
        for stream in [1, 3, 5, 7] {
            hand_over(stream, &flow, &unwritten, &ended);
        }
        cork.put_in();
        tap.write_all(&last_frame(5)).await.unwrap();
        let resets = [&sooner_http::frames::PREFACE[..], &reset(3), &reset(5)].concat();
        client.write_all(&resets).await.unwrap();
        tap.read_exact(&mut vec![0; resets.len()]).await.unwrap();
        tap.flush().await.unwrap();
        let so_far = || ended.lock().unwrap().clone();
        assert_eq!(so_far(), [(3, false)], "the library has dropped it");
        tap.write_all(&last_frame(1)).await.unwrap();
        cork.pull();
        tap.flush().await.unwrap();
        assert_eq!(so_far()[1..], [(5, true), (1, true)]);
        assert!(!unwritten.borrow().is_empty());
        drop(tap);
        assert_eq!(so_far()[3..], [(7, false)], "its connection is gone");
    }

    #[tokio::test]
    async fn updates_are_found_on_the_way() {
        let (near, mut far) = tokio::io::duplex(3);
        let tap_events = tap_events();
        let table = tap_events.priorities.clone();
        let mut tap = Tap::new(near, tap_events, Cork::default(), 16 << 10);
        let sent = [&[0; 24][..], b"\0\0\x07\x10\0\0\0\0\0\0\0\0\0u=1"].concat();
        let writing = async { far.write_all(&sent).await.unwrap() };
        let reading = async {
            let mut read = vec![0; sent.len()];
            tap.read_exact(&mut read).await.unwrap();
            assert_eq!(read, sent);
        };
        tokio::join!(writing, reading);
        assert!(table.borrow().violation().is_some(), "of stream 0");
    }
}
