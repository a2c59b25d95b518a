//! What bounds one HTTP/2 connection.

use super::tap::Tap;
use crate::limits::Limits;
use bytes::Bytes;
use h2::server::{Builder, Handshake};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// Body bytes a client may send on one stream before they are taken. 256 KiB: 40 Mbit/s at 50 ms; a
/// request to a busy upstream holds as much memory.
pub const STREAM_WINDOW_BYTES: u32 = 256 << 10;
/// The same on all streams of a connection together, without what [`Uploads`](super::uploads) lends.
pub const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
/// What is read of a client, and thrown away, after the last byte to it. As much again as a client
/// that keeps the rules may have had on its way when it heard of the end.
pub const LINGER_BYTES_MAX: u64 = 2 * CONNECTION_WINDOW_BYTES as u64;
/// Streams that were reset and may still get frames that were on the way.
const RESET_STREAMS_MAX: usize = 50;
/// Requests that may be reset before the driver has accepted them;
/// [`ResetBudget`](sooner_http::frames::ResetBudget) counts those that come after.
const UNSEEN_RESETS_MAX: usize = 20;
/// Malformed requests, and requests beyond the number of streams, that one connection may send in
/// its life.
const ERRORS_MAX: usize = 1024;
/// What small DATA frames that wait to be read may cost beside their bytes, about 250 bytes each, on
/// one connection. 4 MiB: a whole window in frames of 64 bytes, or three uploads that wait for a
/// backend in frames of 50 bytes.
const FRAMES_BYTES_MAX: usize = 4 << 20;
/// The library's own bound of body bytes waiting in one stream; the uplink keeps below it.
const SEND_BUFFER_BYTES: usize = 256 << 10;

/// The bounds that an operator may choose.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Requests at once.
    pub streams_max: u32,
    /// Longest request head as RFC 9113 (6.5.2) counts it, which adds 32 bytes for every field.
    /// Longer ones get status 431, and the connection ends where the head is many times as long.
    pub head_bytes_max: u32,
    /// How long the client may take for its first bytes.
    pub preface_time: Duration,
    /// How long a client's window may stay shut before its response is given up.
    pub stall_time: Duration,
}

impl Bounds {
    /// The bounds in the table `[limits]`.
    pub fn new(limits: &Limits) -> Self {
        Self {
            streams_max: *limits.streams_per_connection.get_ref(),
            head_bytes_max: *limits.head_bytes.get_ref(),
            preface_time: limits.head_time(),
            stall_time: limits.stall_time(),
        }
    }

    /// The longest request head that the library hands out. It answers longer ones by itself, in a
    /// way that loses the response: with 431 and a reset behind it. So its limit is four times as
    /// much, and those in between are refused as all others are.
    pub fn decoded_bytes_max(&self) -> u32 {
        self.head_bytes_max.saturating_mul(4)
    }

    /// Begins HTTP/2 on `io` within the bounds.
    pub fn handshake<Io>(&self, io: Tap<Io>) -> Handshake<Tap<Io>, Bytes>
    where
        Io: AsyncRead + AsyncWrite + Unpin,
    {
        Builder::new()
            .max_concurrent_streams(self.streams_max)
            .max_header_list_size(self.decoded_bytes_max())
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_concurrent_reset_streams(RESET_STREAMS_MAX)
            .max_pending_accept_reset_streams(UNSEEN_RESETS_MAX)
            .max_local_error_reset_streams(Some(ERRORS_MAX))
            .data_frame_budget(FRAMES_BYTES_MAX)
            .max_send_buffer_size(SEND_BUFFER_BYTES)
            .handshake(io)
    }
}
