//! Work of one response on the wire: the one formula behind load, ideal and simulation.

/// Payload of a full TCP segment on Ethernet with timestamps, in bytes (1500 - 20 IP - 20 TCP - 12
/// options).
pub const SEGMENT_BYTES: u64 = 1448;

/// Ethernet, IP and TCP headers of one packet, in bytes (14 + 20 + 32).
pub const PACKET_HEADER_BYTES: u64 = 66;

/// Packets without payload the server sends for a new connection: SYN-ACK, ACK of the request, FIN,
/// ACK of the client's FIN.
pub const CONNECTION_PACKETS: u64 = 4;

/// Bytes on the wire of one response: body, head, headers of its segments, and the connection's own
/// packets when it is new.
pub fn work_bytes(body_bytes: u64, head_bytes: u64, new_connection: bool) -> u64 {
    let payload_bytes = body_bytes + head_bytes;
    let packets = payload_bytes.div_ceil(SEGMENT_BYTES)
        + if new_connection {
            CONNECTION_PACKETS
        } else {
            0
        };
    payload_bytes + PACKET_HEADER_BYTES * packets
}

#[cfg(test)]
mod tests {
    use super::work_bytes;

    #[test]
    fn counts_segments_and_the_connection() {
        assert_eq!(work_bytes(1000, 200, false), 1200 + 66);
        assert_eq!(work_bytes(1248, 200, false), 1448 + 66);
        assert_eq!(work_bytes(1249, 200, false), 1449 + 2 * 66);
        assert_eq!(work_bytes(1000, 200, true), 1200 + 5 * 66);
        assert_eq!(work_bytes(0, 0, true), 4 * 66);
    }
}
