//! What bytes cost on the wire.
//!
//! Ethernet, IPv4 and TCP with timestamps: 66 bytes of headers around at most 1448 bytes of
//! payload. A connection costs four packets without payload of its own: SYN-ACK, the ACK of the
//! request, FIN, the ACK of the client's FIN.

/// Payload of a full segment, bytes.
pub const SEGMENT_BYTES: u64 = 1448;
/// Headers of a segment, bytes.
pub const HEADER_BYTES: u64 = 66;
/// A full segment with its headers, bytes.
pub const PACKET_BYTES: u64 = SEGMENT_BYTES + HEADER_BYTES;
/// The packets without payload of one connection, bytes.
pub const CONNECTION_BYTES: u64 = 4 * HEADER_BYTES;
/// Those of them that the kernel's count of an open connection lacks: the SYN-ACK, which no
/// connection sent yet, and what its end will take.
pub const UNCOUNTED_BYTES: u64 = 3 * HEADER_BYTES;

/// Most payload of a TLS record (RFC 8446, 5.1) and, by default, of an HTTP/2 frame (RFC 9113,
/// 4.2), bytes.
pub const RECORD_BYTES: u64 = 16_384;
/// What a TLS 1.3 record adds: header, content type, tag (RFC 8446, 5.2), bytes.
pub const TLS_RECORD_BYTES: u64 = 22;
/// The header of an HTTP/2 frame (RFC 9113, 4.1), bytes.
pub const FRAME_HEADER_BYTES: u64 = 9;

/// What TLS adds to `payload_bytes` in full records, bytes.
pub const fn tls_overhead_bytes(payload_bytes: u64) -> u64 {
    TLS_RECORD_BYTES * payload_bytes.div_ceil(RECORD_BYTES)
}

/// What HTTP/2 over TLS adds to `payload_bytes` in frames of a record each, bytes.
pub const fn framing_bytes(payload_bytes: u64) -> u64 {
    (FRAME_HEADER_BYTES + TLS_RECORD_BYTES) * payload_bytes.div_ceil(RECORD_BYTES)
}

/// The most payload that `wire_bytes` carry, at least a byte.
pub const fn payload_within_bytes(wire_bytes: u64) -> u64 {
    let rest = (wire_bytes % PACKET_BYTES).saturating_sub(HEADER_BYTES);
    let payload = wire_bytes / PACKET_BYTES * SEGMENT_BYTES + rest;
    if payload == 0 { 1 } else { payload }
}

/// The bytes on the wire of `payload_bytes` sent as full segments and a rest.
pub const fn payload_cost_bytes(payload_bytes: u64) -> u64 {
    let packets = payload_bytes.div_ceil(SEGMENT_BYTES);
    payload_bytes.saturating_add(HEADER_BYTES.saturating_mul(packets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_and_its_cost_are_inverse_at_whole_packets_and_never_exceed() {
        for segments in 0..50 {
            let payload = segments * SEGMENT_BYTES;
            assert_eq!(payload_cost_bytes(payload), segments * PACKET_BYTES);
        }
        for wire in HEADER_BYTES + 1..10 * PACKET_BYTES {
            assert!(payload_cost_bytes(payload_within_bytes(wire)) <= wire.max(HEADER_BYTES + 1));
        }
    }
}
