//! A socket that writes only when it is granted a turn.
//!
//! hyper calls `poll_write_vectored` again after every short write, so a grant shorter than what it offered is where others get in. A flush
//! with nothing left to write marks the end of the responses whose bodies are done.
//!
//! TLS fits in between: rustls flushes its socket only when all its records are written, and what it writes on its own (handshake, tickets,
//! alerts) belongs to no response. A connection with streams writes without waiting; its streams waited before.

mod path_sample;
mod sending;

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use crate::flow::{Flow, Signals};
use crate::shared_link::SharedLink;
use path_sample::sample_of;
use sending::InFile;
use sooner_link::Effects;
use sooner_link::wire::HEADER_BYTES;
use sooner_link::{Answer, FlowId};

/// Slices of a vectored write that are passed on; hyper offers a head and up to 16 chunks, and comes back for what was left.
const SLICES_MAX: usize = 16;
/// Bytes between two looks at what the kernel really sent.
const ACCOUNT_BYTES: u64 = 65_536;
/// Bytes between two looks at the network to the client: as often as SWIFT weighs a response again.
const LOOK_BYTES: u64 = 8192;
/// Unsent bytes in the socket of a connection with streams where writes are not paced: enough to keep a fast client busy, and few enough
/// that a change of order is soon felt (RFC 9218, 10: do not buffer what cannot be sent).
const STREAMS_UNSENT_BYTES_MAX: u32 = 131_072;

/// Up to here copying pieces together is cheaper than a system call with several of them.
const GATHERED_BYTES_MAX: usize = 4096;

thread_local! {
    /// Room for one small write; what is in it is of no use after the call.
    static GATHERED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// An accepted connection that waits for its turns.
pub struct GatedStream {
    io: TcpStream,
    shared: Arc<SharedLink>,
    flow: FlowId,
    signals: Signals,
    /// Written and read since the kernel was last asked what it sent: what is read is acknowledged, and the link carries that too.
    unaccounted_bytes: u64,
    /// Written, but still in the socket when last asked: a window is shut.
    unsent_bytes: u64,
    /// Written and not yet settled; only without pacing, where nothing depends on it before the flush.
    unsettled_bytes: u64,
    /// Whether the socket was told to hold little because streams share it.
    holds_little: bool,
    /// Written since the kernel was last asked about the network to the client; only under a policy that wants to know.
    unlooked_bytes: u64,
}

impl GatedStream {
    pub(crate) fn new(io: TcpStream, flow: &Flow) -> Self {
        Self {
            io,
            shared: flow.shared.clone(),
            flow: flow.id,
            signals: flow.signals.clone(),
            unaccounted_bytes: 0,
            unsent_bytes: 0,
            unsettled_bytes: 0,
            holds_little: flow.shared.is_paced || flow.shared.marks_bands,
            unlooked_bytes: 0,
        }
    }

    /// Looks at the network to the client as the handshake left it, so that the first response has a rank.
    pub(crate) fn look_at_first(&mut self) {
        if self.shared.asks_for_paths {
            self.look();
        }
    }

    /// Looks at the network to the client when a response begins, and again after so many bytes; never under a policy that does not ask.
    fn look_again(&mut self) {
        if !self.shared.asks_for_paths || self.unlooked_bytes == 0 {
            return;
        }
        if self.signals.take_begun() || self.unlooked_bytes >= LOOK_BYTES {
            self.look();
        }
    }

    fn look(&mut self) {
        self.unlooked_bytes = 0;
        if let Ok(info) = sooner_kernel::socket::tcp_info(&self.io) {
            let sample = sample_of(&info, self.shared.now());
            self.shared.lock().link.sample_path(self.flow, sample);
        }
    }

    /// The socket itself.
    pub fn get_ref(&self) -> &TcpStream {
        &self.io
    }

    fn write_granted(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
        granted_bytes: usize,
    ) -> Poll<io::Result<usize>> {
        if granted_bytes <= GATHERED_BYTES_MAX && bufs.len() > 1 {
            return self.write_gathered(cx, bufs, granted_bytes);
        }
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let mut left = granted_bytes;
        let mut count = 0;
        for buf in bufs.iter().filter(|buf| !buf.is_empty()).take(SLICES_MAX) {
            if left == 0 {
                break;
            }
            let taken = buf.len().min(left);
            slices[count] = IoSlice::new(&buf[..taken]);
            count += 1;
            left -= taken;
        }
        let slices = &slices[..count];
        if let Some(in_file) = InFile::find(slices)
            && let Some(result) = in_file.poll_send(&self.io, cx)
        {
            return result;
        }
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    /// Writes the pieces as one, which costs a small response less than to have the kernel gather them.
    fn write_gathered(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
        granted_bytes: usize,
    ) -> Poll<io::Result<usize>> {
        GATHERED.with_borrow_mut(|gathered| {
            gathered.clear();
            for buf in bufs {
                let left = granted_bytes - gathered.len();
                gathered.extend_from_slice(&buf[..buf.len().min(left)]);
            }
            Pin::new(&mut self.io).poll_write(cx, gathered)
        })
    }

    /// Compares what was charged with what the kernel counted for this connection.
    fn account(&mut self) {
        self.unaccounted_bytes = 0;
        // What has left the socket since the last look is in the kernel's count as well.
        self.settle_sent();
        if let Ok(info) = sooner_kernel::socket::tcp_info(&self.io) {
            let wire_bytes = info.bytes_sent + HEADER_BYTES * u64::from(info.segments_sent);
            self.shared
                .lock()
                .link
                .account(self.flow, wire_bytes, self.shared.now());
        }
    }

    fn settle(&mut self, written_bytes: u64) {
        if !self.shared.is_paced {
            self.unsettled_bytes += written_bytes;
            if self.shared.marks_bands || self.signals.has_streams() {
                self.settle_unpaced();
            }
            return;
        }
        let before_bytes = self.unsent_bytes + written_bytes;
        self.unsent_bytes = if before_bytes > 0 {
            self.unsent_of(before_bytes)
        } else {
            0
        };
        let sent_bytes = before_bytes - self.unsent_bytes;
        let now = self.shared.now();
        self.shared
            .lock()
            .link
            .settle(self.flow, written_bytes, sent_bytes, now);
        self.moved(written_bytes);
    }

    /// So many bytes were written or read: now and then the kernel is asked what it sent.
    fn moved(&mut self, bytes: u64) {
        self.unaccounted_bytes += bytes;
        if self.unaccounted_bytes >= ACCOUNT_BYTES {
            self.account();
        }
    }

    /// Without pacing nothing is charged, but the account of the response, its band and its streams follow what was written.
    fn settle_unpaced(&mut self) {
        let written_bytes = std::mem::take(&mut self.unsettled_bytes);
        let now = self.shared.now();
        self.shared
            .lock()
            .link
            .settle(self.flow, written_bytes, written_bytes, now);
    }

    /// What of `written_bytes` still lies in the socket; nothing where the kernel does not say.
    fn unsent_of(&self, written_bytes: u64) -> u64 {
        let unsent_bytes = sooner_kernel::socket::unsent_bytes(&self.io).unwrap_or(0);
        u64::from(unsent_bytes).min(written_bytes)
    }

    /// Charges what a window that has opened let out since the last write.
    fn settle_sent(&mut self) {
        if self.unsent_bytes == 0 {
            return;
        }
        self.note_unsent(self.unsent_of(self.unsent_bytes));
    }

    /// Only `unsent_bytes` of what was written are still in the socket.
    fn note_unsent(&mut self, unsent_bytes: u64) {
        let sent_bytes = std::mem::replace(&mut self.unsent_bytes, unsent_bytes) - unsent_bytes;
        if sent_bytes > 0 {
            let now = self.shared.now();
            self.shared.lock().link.sent(self.flow, sent_bytes, now);
        }
    }

    /// While its socket sends nothing, a connection's streams get no grants, so it has nothing to write and would not hear when the socket
    /// sends again: it is polled then, and flushes.
    fn watch_unsent(&mut self, cx: &mut Context<'_>) {
        self.settle_sent();
        while self.unsent_bytes > 0 {
            let is_writable = || match sooner_kernel::socket::is_writable(&self.io) {
                Ok(false) => Err(io::ErrorKind::WouldBlock.into()),
                Ok(true) => Ok(()),
                Err(error) => Err(error),
            };
            match self.io.try_io(Interest::WRITABLE, is_writable) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let Poll::Ready(Ok(())) = self.io.poll_write_ready(cx) else {
                        return;
                    };
                }
                // It takes more, or is broken and keeps nothing for us.
                _ => self.note_unsent(0),
            }
        }
    }

    /// Streams that share a socket are out of order in it.
    fn hold_little(&mut self) {
        if !self.holds_little && self.signals.has_streams() {
            self.holds_little = true;
            // Where the kernel lacks the option more lies in it; what is handed over later is still in order.
            let _ = sooner_kernel::socket::set_notsent_lowat(&self.io, STREAMS_UNSENT_BYTES_MAX);
        }
    }

    /// Everything that was buffered is written; returns the responses that are over.
    fn flushed(&mut self) -> Effects {
        let nothing_new = !self.signals.is_body_done()
            && self.unsettled_bytes == 0
            && !self.signals.has_streams();
        if !self.shared.is_paced && nothing_new {
            return Effects::default();
        }
        let now = self.shared.now();
        let mut state = self.shared.lock();
        if self.unsettled_bytes > 0 {
            state
                .link
                .settle(self.flow, self.unsettled_bytes, self.unsettled_bytes, now);
            self.unsettled_bytes = 0;
        }
        if self.signals.take_body_done() {
            state.link.body_done(self.flow);
        }
        state.link.flushed(self.flow, now)
    }

    /// Wakes the flow that may go next, where there are turns.
    fn wake_next(&self) {
        if self.shared.is_paced || self.signals.has_streams() {
            self.shared.wake_next();
        }
    }

    /// Marks the socket for the band its next bytes belong in.
    ///
    /// Not upwards while packets of it wait in the lower band: the new ones would overtake them, and TCP take those for lost.
    fn remark(&self) {
        if !self.shared.marks_bands {
            return;
        }
        let Some((band, old)) = self.shared.lock().link.new_band(self.flow) else {
            return;
        };
        let would_overtake = old.is_some_and(|old| band < old) && self.has_packets_in_host();
        if let (Some(priority), false) = (self.shared.priority_of(band), would_overtake) {
            self.shared.lock().link.set_band(self.flow, band);
            // A socket that cannot be marked keeps the band it has: slower, not wrong.
            let _ = sooner_kernel::socket::set_priority(&self.io, priority);
        }
    }

    fn has_packets_in_host(&self) -> bool {
        sooner_kernel::socket::in_host_bytes(&self.io).is_ok_and(|bytes| bytes > 0)
    }
}

impl AsyncRead for GatedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.io).poll_read(cx, buf);
        if self.shared.is_paced {
            self.moved((buf.filled().len() - before) as u64);
        }
        result
    }
}

impl AsyncWrite for GatedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let want = bufs.iter().map(|buf| buf.len()).sum::<usize>();
        if want == 0 {
            return Poll::Ready(Ok(0));
        }
        self.settle_sent();
        self.look_again();
        let Answer::Go(granted) = self.shared.ask(self.flow, want as u64, cx.waker()) else {
            return Poll::Pending;
        };
        self.remark();
        self.hold_little();
        let result = self.write_granted(cx, bufs, granted as usize);
        let written = if let Poll::Ready(Ok(written)) = result {
            written as u64
        } else {
            0
        };
        self.settle(written);
        self.unlooked_bytes += written;
        if result.is_pending() {
            // Its socket is full: the turn goes to another.
            self.wake_next();
        }
        result
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        if self.shared.is_paced && self.signals.has_streams() {
            self.watch_unsent(cx);
        }
        let effects = self.flushed();
        if !effects.ended.is_empty() && self.shared.is_paced {
            self.account();
        }
        self.shared.conclude(effects);
        self.wake_next();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl Drop for GatedStream {
    fn drop(&mut self) {
        let now = self.shared.now();
        let effects = {
            let mut state = self.shared.lock();
            state
                .link
                .settle(self.flow, self.unsettled_bytes, self.unsettled_bytes, now);
            // What the kernel still holds of it goes out after us.
            state.link.sent(self.flow, self.unsent_bytes, now);
            state.link.close(self.flow, now)
        };
        self.shared.conclude(effects);
        self.wake_next();
    }
}
