//! The datagrams of a check: which client they belong to, their number, when they were sent.

/// Bytes of a probe without padding.
pub const PROBE_BYTES: usize = 20;

/// What a datagram says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// The client's number.
    pub client: u32,
    /// Counts up for each client.
    pub number: u64,
    /// When it was sent, of the clock all of a machine's namespaces share.
    pub sent_ns: u64,
}

impl Probe {
    /// Writes it to the beginning of a datagram of at least [`PROBE_BYTES`].
    pub fn write(self, datagram: &mut [u8]) {
        datagram[..4].copy_from_slice(&self.client.to_be_bytes());
        datagram[4..12].copy_from_slice(&self.number.to_be_bytes());
        datagram[12..20].copy_from_slice(&self.sent_ns.to_be_bytes());
    }

    /// Reads it back; `None` where the datagram is too short for one.
    pub fn read(datagram: &[u8]) -> Option<Probe> {
        let (client, rest) = datagram.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        Some(Probe {
            client: u32::from_be_bytes(*client),
            number: u64::from_be_bytes(*number),
            sent_ns: u64::from_be_bytes(*rest.first_chunk()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_reads_back_and_a_short_one_does_not() {
        let probe = Probe {
            client: 3,
            number: 1 << 40,
            sent_ns: u64::MAX - 1,
        };
        let mut datagram = [0xff; 64];
        probe.write(&mut datagram);
        assert_eq!(Probe::read(&datagram), Some(probe));
        assert_eq!(Probe::read(&datagram[..PROBE_BYTES]), Some(probe));
        assert_eq!(Probe::read(&datagram[..PROBE_BYTES - 1]), None);
    }
}
