//! `TCP_INFO` by offset: libc's structure ends before the fields Sooner needs, and kernels append
//! to it over time.

/// Requested bytes: up to `tcpi_snd_wnd`; older kernels fill fewer, and the rest stays 0.
pub const LENGTH_BYTES: usize = 232;

/// The first bit-field of a byte, where C puts it.
const FIRST_BIT: u8 = if cfg!(target_endian = "little") {
    1
} else {
    0x80
};

/// The kernel's counters and estimates of one connection (linux/tcp.h, `struct tcp_info`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Payload sent, retransmissions included.
    pub bytes_sent: u64,
    /// Payload sent again.
    pub bytes_retransmitted: u64,
    /// Payload the peer has acknowledged.
    pub bytes_acked: u64,
    /// Segments that have arrived, also behind one that was lost, the SYN among them.
    pub delivered_segments: u32,
    /// Payload received.
    pub bytes_received: u64,
    /// Segments sent, also those without payload (SYN-ACK, ACK, FIN).
    pub segments_sent: u32,
    /// Segments received.
    pub segments_received: u32,
    /// Segments sent that carried payload.
    pub data_segments_sent: u32,
    /// Payload written and not sent yet.
    pub unsent_bytes: u32,
    /// Smallest round trip seen; u32::MAX before the first.
    pub min_rtt_us: u32,
    /// Smoothed round trip; includes the wait in our own queues, so a starved connection's is
    /// large.
    pub rtt_us: u32,
    /// Retransmission timeout.
    pub retransmit_timeout_us: u32,
    /// Payload of a full segment sent.
    pub mss_bytes: u32,
    /// Congestion window.
    pub cwnd_segments: u32,
    /// Segments sent and not acknowledged; on a listener the connections waiting for accept.
    pub unacked_segments: u32,
    /// Retransmitted segments in total.
    pub retransmits: u32,
    /// Most recent rate at which data reached the peer.
    pub delivery_rate_bytes_per_sec: u64,
    /// Whether that rate was measured while there was too little to send: it could have been
    /// higher.
    pub delivery_rate_is_app_limited: bool,
    /// Rate TCP paces at; u64::MAX is unlimited.
    pub pacing_rate_bytes_per_sec: u64,
    /// Time with data to send.
    pub busy_us: u64,
    /// Time held back by the peer's receive window.
    pub receive_window_limited_us: u64,
    /// The peer's receive window.
    pub send_window_bytes: u32,
}

impl TcpInfo {
    /// Reads the structure as the kernel wrote it.
    pub(super) fn from_bytes(bytes: &[u8; LENGTH_BYTES]) -> TcpInfo {
        let u32_at =
            |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let u64_at =
            |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        TcpInfo {
            retransmit_timeout_us: u32_at(8),
            mss_bytes: u32_at(16),
            unacked_segments: u32_at(24),
            rtt_us: u32_at(68),
            cwnd_segments: u32_at(80),
            retransmits: u32_at(100),
            pacing_rate_bytes_per_sec: u64_at(104),
            bytes_acked: u64_at(120),
            bytes_received: u64_at(128),
            segments_sent: u32_at(136),
            segments_received: u32_at(140),
            unsent_bytes: u32_at(144),
            min_rtt_us: u32_at(148),
            data_segments_sent: u32_at(156),
            delivery_rate_bytes_per_sec: u64_at(160),
            delivery_rate_is_app_limited: bytes[7] & FIRST_BIT != 0,
            busy_us: u64_at(168),
            receive_window_limited_us: u64_at(176),
            delivered_segments: u32_at(192),
            bytes_sent: u64_at(200),
            bytes_retransmitted: u64_at(208),
            send_window_bytes: u32_at(228),
        }
    }
}
