//! The few bytes of an IPv4 header that say which client a packet belongs to.
//!
//! Packets come from programs under test, so nothing in them is taken for granted; what cannot be
//! read is no packet for the emulator. IPv6 is not emulated: an experiment's hosts have IPv4
//! addresses only, and what the kernel sends by itself over IPv6 (router solicitations) is dropped
//! and counted.

use std::net::Ipv4Addr;

/// Shortest header (RFC 791, section 3.1).
const HEADER_BYTES_MIN: usize = 20;

/// Who sends an IPv4 packet to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// Its sender.
    pub source: Ipv4Addr,
    /// Its receiver.
    pub destination: Ipv4Addr,
}

/// Reads the addresses; `None` where this is not one whole IPv4 packet.
pub fn ends(packet: &[u8]) -> Option<Ends> {
    let header: &[u8; HEADER_BYTES_MIN] = packet.first_chunk()?;
    let header_bytes = usize::from(header[0] & 0x0f) * 4;
    let total_bytes = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let is_whole = header[0] >> 4 == 4
        && header_bytes >= HEADER_BYTES_MIN
        && total_bytes >= header_bytes
        && total_bytes == packet.len();
    let address =
        |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    is_whole.then(|| Ends {
        source: address(12),
        destination: address(16),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An IPv4 packet of that length.
    pub fn packet(source: Ipv4Addr, destination: Ipv4Addr, length: u16) -> Vec<u8> {
        let mut packet = vec![0; usize::from(length)];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet[12..16].copy_from_slice(&source.octets());
        packet[16..20].copy_from_slice(&destination.octets());
        packet
    }

    #[test]
    fn only_whole_ipv4_packets_have_ends() {
        let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let whole = packet(source, destination, 40);
        assert_eq!(
            ends(&whole),
            Some(Ends {
                source,
                destination
            })
        );
        assert_eq!(ends(&whole[..39]), None, "cut");
        assert_eq!(ends(&whole[..19]), None, "no header");
        assert_eq!(ends(&[]), None);
        for (first, why) in [
            (0x65, "IPv6"),
            (0x44, "a header of 16 bytes"),
            (0x4f, "a header longer than the packet"),
        ] {
            let mut changed = whole.clone();
            changed[0] = first;
            assert_eq!(ends(&changed), None, "{why}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            ends(&bytes);
        }

        #[test]
        fn every_whole_packet_is_read(source: u32, destination: u32, length in 20..2_000_u16) {
            let found = ends(&packet(source.into(), destination.into(), length));
            let found = found.map(|ends| (u32::from(ends.source), u32::from(ends.destination)));
            prop_assert_eq!(found, Some((source, destination)));
        }
    }
}
