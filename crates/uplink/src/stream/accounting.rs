//! What was written, what of it has left the socket, and what the kernel counted: told to the
//! scheduler.

use super::GatedStream;
use sooner_kernel::socket::{self, TcpInfo};
use sooner_link::Effects;
use sooner_link::wire::HEADER_BYTES;
use std::io;
use std::task::{Context, Poll};
use tokio::io::Interest;

/// Bytes between two looks at what the kernel really sent, and the most that is not counted yet
/// where nothing depends on it.
const ACCOUNT_BYTES: u64 = 65_536;

impl GatedStream {
    /// Compares what was charged with what the kernel counted for this connection.
    pub(super) fn account(&mut self) {
        self.unaccounted_bytes = 0;
        // What has left the socket since the last look is in the kernel's count as well.
        self.settle_sent();
        if let Ok(info) = socket::tcp_info(&self.io) {
            let wire_bytes = info.bytes_sent + HEADER_BYTES * u64::from(info.segments_sent);
            let (mut state, now) = self.shared.lock_at();
            state.link.account(self.flow, wire_bytes, now);
        }
    }

    pub(super) fn settle(&mut self, written_bytes: u64) {
        if !self.shared.is_paced {
            self.unsettled_bytes += written_bytes;
            let is_due = self.unsettled_bytes >= ACCOUNT_BYTES;
            if is_due || self.shared.marks_bands || self.signals.has_streams() {
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
        {
            let (mut state, now) = self.shared.lock_at();
            state.link.settle(self.flow, written_bytes, sent_bytes, now);
        }
        self.count_moved(written_bytes);
    }

    /// So many bytes were written or read: now and then the kernel is asked what it sent.
    pub(super) fn count_moved(&mut self, bytes: u64) {
        self.unaccounted_bytes += bytes;
        if self.unaccounted_bytes >= ACCOUNT_BYTES {
            self.account();
        }
    }

    /// Without pacing nothing is charged, but the account of the response, its band and its streams
    /// follow what was written, and so do the figures of those who watch.
    fn settle_unpaced(&mut self) {
        let written_bytes = std::mem::take(&mut self.unsettled_bytes);
        let (mut state, now) = self.shared.lock_at();
        state
            .link
            .settle(self.flow, written_bytes, written_bytes, now);
    }

    /// What of `written_bytes` still lies in the socket; nothing where the kernel does not say.
    ///
    /// Above bands what its windows let go counts as sent: TCP keeps two packets of a connection in
    /// the device and the others in the socket, and sends them without a word as those leave.
    fn unsent_of(&self, written_bytes: u64) -> u64 {
        let unsent_bytes = u64::from(socket::unsent_bytes(&self.io).unwrap_or(0));
        if unsent_bytes == 0 || !self.shared.marks_bands || self.signals.has_streams() {
            return unsent_bytes.min(written_bytes);
        }
        let window_bytes = socket::tcp_info(&self.io).map_or(0, |info| window_bytes(&info));
        // All that lies in the socket goes through the same window.
        unsent_bytes.saturating_sub(window_bytes).min(written_bytes)
    }

    /// Charges what a window that has opened let out since the last write.
    pub(super) fn settle_sent(&mut self) {
        if self.unsent_bytes == 0 {
            return;
        }
        self.note_unsent(self.unsent_of(self.unsent_bytes));
    }

    /// Only `unsent_bytes` of what was written are still in the socket.
    fn note_unsent(&mut self, unsent_bytes: u64) {
        let sent_bytes = std::mem::replace(&mut self.unsent_bytes, unsent_bytes) - unsent_bytes;
        if sent_bytes > 0 {
            let (mut state, now) = self.shared.lock_at();
            state.link.sent(self.flow, sent_bytes, now);
        }
    }

    /// While its socket sends nothing, a connection's streams get no grants, so it has nothing to
    /// write and would not hear when the socket sends again: it is polled then, and flushes.
    pub(super) fn watch_unsent(&mut self, cx: &mut Context<'_>) {
        self.settle_sent();
        while self.unsent_bytes > 0 {
            let is_writable = || match socket::is_writable(&self.io) {
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

    /// Everything that was buffered is written; returns the responses that are over.
    pub(super) fn flushed(&mut self) -> Effects {
        let nothing_new = !self.signals.is_body_done()
            && self.unsettled_bytes == 0
            && !self.signals.has_streams();
        if !self.shared.is_paced && nothing_new {
            return Effects::default();
        }
        let (mut state, now) = self.shared.lock_at();
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
}

/// What both windows still let go, bytes.
fn window_bytes(info: &TcpInfo) -> u64 {
    let segment_bytes = u64::from(info.mss_bytes);
    let in_flight_bytes = u64::from(info.unacked_segments) * segment_bytes;
    let congestion_bytes = u64::from(info.cwnd_segments) * segment_bytes;
    congestion_bytes
        .min(info.send_window_bytes.into())
        .saturating_sub(in_flight_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_window_counts() {
        let info = |cwnd_segments, send_window_bytes| TcpInfo {
            mss_bytes: 1_000,
            unacked_segments: 4,
            cwnd_segments,
            send_window_bytes,
            ..TcpInfo::default()
        };
        assert_eq!(window_bytes(&info(10, 65_536)), 6_000);
        assert_eq!(window_bytes(&info(10, 4_500)), 500);
        assert_eq!(window_bytes(&info(3, 65_536)), 0);
    }
}
