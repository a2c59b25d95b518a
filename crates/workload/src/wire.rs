//! Work of one response on the wire: the one formula behind load, ideal and simulation.
//!
//! What a protocol adds is counted here and nowhere else, so that load, ideal and slowdown agree
//! whatever is spoken. Records and frames are counted as large as they may be: a server that cuts
//! them smaller pays for it in its own response times.

/// Payload of a full TCP segment on Ethernet with timestamps, in bytes (1500 - 20 IP - 20 TCP - 12
/// options).
pub const SEGMENT_BYTES: u64 = 1448;

/// What TCP timestamps take of every segment, in bytes (RFC 7323, padded).
const TIMESTAMP_BYTES: u64 = 12;

/// Payload of a full TCP segment, in bytes, where the receiver announces the maximum segment size
/// `mss_bytes`, which is at least [`MSS_BYTES_MIN`]: the timestamps come out of it (RFC 6691).
pub fn segment_bytes(mss_bytes: u64) -> u64 {
    mss_bytes - TIMESTAMP_BYTES
}

/// Smallest maximum segment size that Linux lets a socket announce, in bytes.
pub const MSS_BYTES_MIN: u64 = 88;

/// The one that Ethernet gives, in bytes (1500 - 20 IP - 20 TCP).
pub const MSS_BYTES_MAX: u64 = 1460;

/// Ethernet, IP and TCP headers of one packet, in bytes (14 + 20 + 32).
pub const PACKET_HEADER_BYTES: u64 = 66;

/// Packets without payload the server sends for a new connection: SYN-ACK, ACK of the request, FIN,
/// ACK of the client's FIN.
pub const CONNECTION_PACKETS: u64 = 4;

/// More of them with TLS: ACKs of the ClientHello and of the client's Finished, which leave before
/// the server has computed its answers, and close_notify; counted on a link beside nginx, where
/// they leave less than 0.1 % unexplained.
pub const TLS_CONNECTION_PACKETS: u64 = 3;

/// Most payload of one TLS record (RFC 8446, section 5.1) and of one HTTP/2 frame by default (RFC
/// 9113, section 4.2), in bytes.
pub const RECORD_PAYLOAD_BYTES: u64 = 16 * 1024;

/// Header, content type and authentication tag of one TLS 1.3 record, in bytes (5 + 1 + 16).
pub const RECORD_OVERHEAD_BYTES: u64 = 22;

/// Header of one HTTP/2 frame, in bytes (RFC 9113, section 4.1).
pub const FRAME_HEADER_BYTES: u64 = 9;

/// What is spoken between client and server; the default is HTTP/1.1 in clear text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireModel {
    /// Payload of a full TCP segment in bytes, above 0; [`SEGMENT_BYTES`] unless a smaller one was
    /// agreed.
    pub segment_bytes: u64,
    /// With TLS.
    pub tls: bool,
    /// HTTP/2 instead of HTTP/1.1.
    pub http2: bool,
    /// What the server sends for a new connection beside its responses, in bytes: its part of the
    /// TLS handshake with the certificates, session tickets, HTTP/2 settings. 0 for HTTP/1.1 in
    /// clear text; otherwise it has to be measured.
    pub opening_bytes: u64,
}

impl Default for WireModel {
    fn default() -> WireModel {
        WireModel {
            segment_bytes: SEGMENT_BYTES,
            tls: false,
            http2: false,
            opening_bytes: 0,
        }
    }
}

impl WireModel {
    /// Bytes on the wire of one response: body, head, headers of its frames, records and segments,
    /// and the connection's own packets when it is new. `head_bytes` is the HTTP/1.1 head, or the
    /// HTTP/2 HEADERS frame with its header.
    pub fn work_bytes(&self, body_bytes: u64, head_bytes: u64, new_connection: bool) -> u64 {
        let payload_bytes = self.payload_bytes(body_bytes, head_bytes);
        let work_bytes = on_the_wire(payload_bytes, payload_bytes.div_ceil(self.segment_bytes));
        if new_connection {
            work_bytes + self.connection_bytes()
        } else {
            work_bytes
        }
    }

    /// Bytes on the wire of a new connection beside its responses.
    pub fn connection_bytes(&self) -> u64 {
        let hello = if self.tls { TLS_CONNECTION_PACKETS } else { 0 };
        let packets = CONNECTION_PACKETS + hello + self.opening_bytes.div_ceil(self.segment_bytes);
        on_the_wire(self.opening_bytes, packets)
    }

    /// Bytes of one response as TCP carries them: body and head with the headers of frames and
    /// records.
    pub fn payload_bytes(&self, body_bytes: u64, head_bytes: u64) -> u64 {
        let mut bytes = head_bytes + body_bytes;
        if self.http2 {
            bytes += FRAME_HEADER_BYTES * body_bytes.div_ceil(RECORD_PAYLOAD_BYTES);
        }
        if self.tls {
            bytes += RECORD_OVERHEAD_BYTES * bytes.div_ceil(RECORD_PAYLOAD_BYTES);
        }
        bytes
    }
}

fn on_the_wire(payload_bytes: u64, packets: u64) -> u64 {
    payload_bytes + PACKET_HEADER_BYTES * packets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_segments_and_the_connection() {
        let plain = WireModel::default();
        assert_eq!(plain.work_bytes(1000, 200, false), 1200 + 66);
        assert_eq!(plain.work_bytes(1248, 200, false), 1448 + 66);
        assert_eq!(plain.work_bytes(1249, 200, false), 1449 + 2 * 66);
        assert_eq!(plain.work_bytes(1000, 200, true), 1200 + 5 * 66);
        assert_eq!(plain.work_bytes(0, 0, true), 4 * 66);
    }

    #[test]
    fn smaller_segments_cost_more_headers() {
        let small = WireModel {
            segment_bytes: segment_bytes(536),
            opening_bytes: 1048,
            ..WireModel::default()
        };
        assert_eq!(segment_bytes(MSS_BYTES_MAX), SEGMENT_BYTES);
        assert_eq!(small.work_bytes(848, 200, false), 1048 + 2 * 66);
        assert_eq!(small.work_bytes(849, 200, false), 1049 + 3 * 66);
        assert_eq!(small.connection_bytes(), 1048 + (4 + 2) * 66);
    }

    #[test]
    fn tls_adds_records_and_the_handshake() {
        let tls = WireModel {
            tls: true,
            opening_bytes: 2000,
            ..WireModel::default()
        };
        assert_eq!(tls.work_bytes(1000, 200, false), 1200 + 22 + 66);
        assert_eq!(tls.payload_bytes(16_384, 1), 16_385 + 2 * 22);
        assert_eq!(tls.connection_bytes(), 2000 + (4 + 3 + 2) * 66);
        assert_eq!(
            tls.work_bytes(1000, 200, true),
            tls.work_bytes(1000, 200, false) + tls.connection_bytes()
        );
    }

    #[test]
    fn http_2_adds_a_header_for_every_data_frame() {
        let http2 = WireModel {
            http2: true,
            opening_bytes: 40,
            ..WireModel::default()
        };
        assert_eq!(http2.work_bytes(1000, 60, false), 1069 + 66);
        assert_eq!(http2.payload_bytes(16_385, 60), 16_445 + 2 * 9);
        assert_eq!(http2.payload_bytes(0, 60), 60);
        assert_eq!(http2.connection_bytes(), 40 + (4 + 1) * 66);
    }
}
