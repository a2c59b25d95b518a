//! A socket that writes only when it is granted a turn.
//!
//! hyper calls `poll_write_vectored` again after every short write, so a grant shorter than what it
//! offered is where others get in. A flush with nothing left to write marks the end of the
//! responses that have their bodies done.
//!
//! TLS fits in between: rustls flushes its socket only when all its records are written, and what
//! it writes on its own (handshake, tickets, alerts) belongs to no response. A connection with
//! streams writes without waiting; its streams waited before.

mod accounting;
mod measuring;
mod sending;
mod socket_options;

use crate::flow::{Flow, Signals};
use crate::shared_link::SharedLink;
use sooner_link::{Answer, FlowId};
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// An accepted connection that waits for its turns.
pub struct GatedStream {
    io: TcpStream,
    shared: Arc<SharedLink>,
    flow: FlowId,
    signals: Signals,
    /// Written and read since the kernel was last asked what it sent: what is read is acknowledged,
    /// and the link carries that too.
    unaccounted_bytes: u64,
    /// Written, but still in the socket when last asked: a window is shut.
    unsent_bytes: u64,
    /// Written and not yet settled; only without pacing, where before the flush nothing but figures
    /// depends on it.
    unsettled_bytes: u64,
    /// How many unsent bytes the socket was told to hold at most; none: it was not.
    unsent_bytes_max: Option<u32>,
    /// Written since the kernel was last asked about the network to the client; only under a policy
    /// that wants to know.
    unsampled_bytes: u64,
    /// Its client, where the link's rate is to be found.
    measured_client: Option<IpAddr>,
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
            unsent_bytes_max: None,
            unsampled_bytes: 0,
            measured_client: None,
        }
    }

    /// The socket itself.
    pub fn get_ref(&self) -> &TcpStream {
        &self.io
    }

    /// Wakes the flow that may go next, where there are turns.
    fn wake_next(&self) {
        if self.shared.is_paced || self.signals.has_streams() {
            self.shared.wake_next();
        }
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
            self.count_moved((buf.filled().len() - before) as u64);
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
        self.sample_path_again();
        self.measure_on();
        let Answer::Go(granted) = self.shared.ask(self.flow, want as u64, cx.waker()) else {
            return Poll::Pending;
        };
        self.update_band();
        self.limit_unsent();
        let result = self.write_granted(cx, bufs, granted as usize);
        let written = if let Poll::Ready(Ok(written)) = result {
            written as u64
        } else {
            0
        };
        self.settle(written);
        self.unsampled_bytes += written;
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
        self.measure_last();
        let effects = {
            let (mut state, now) = self.shared.lock_at();
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
