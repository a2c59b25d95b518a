//! What TLS adds to what is written.

use sooner_link::wire::{HEADER_BYTES, TLS_RECORD_BYTES};

/// What TLS 1.2 adds to a record with AES-GCM: header, explicit nonce, tag (RFC 5288, 3), bytes.
const RECORD_BYTES_OF_1_2: u64 = 5 + 8 + 16;

/// How one connection cuts what is written into records. The default is that of clear text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Framing {
    /// The most that is encrypted at once, bytes: a whole number of records and a rest.
    pub at_once_bytes: u64,
    /// The most that a record carries, bytes.
    pub record_bytes: u64,
    /// What each record adds, bytes.
    pub per_record_bytes: u64,
}

impl Framing {
    /// Of a connection that speaks `version`, `TLSv1.2` or `TLSv1.3`.
    pub fn new(version: &str, at_once_bytes: usize, record_bytes: u64) -> Self {
        Self {
            at_once_bytes: at_once_bytes as u64,
            record_bytes,
            per_record_bytes: match version {
                "TLSv1.2" => RECORD_BYTES_OF_1_2,
                _ => TLS_RECORD_BYTES,
            },
        }
    }

    /// What is added to `bytes`: their records, and a packet for each time that something was
    /// encrypted and ended within one.
    pub fn overhead_bytes(&self, bytes: u64) -> u64 {
        if self.record_bytes == 0 {
            return 0;
        }
        let records = |bytes: u64| bytes.div_ceil(self.record_bytes);
        let (times, rest) = match bytes.checked_div(self.at_once_bytes) {
            Some(times) => (times, bytes % self.at_once_bytes),
            None => (0, bytes),
        };
        let count = times.saturating_mul(records(self.at_once_bytes)) + records(rest);
        let packets_bytes = times.saturating_mul(HEADER_BYTES);
        (count.saturating_mul(self.per_record_bytes)).saturating_add(packets_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted_as_they_are_cut() {
        let framing = Framing::new("TLSv1.3", 16 << 10, 4096);
        for (bytes, records, times) in [
            (0, 0, 0),
            (1, 1, 0),
            (4097, 2, 0),
            (16_384, 4, 1),
            (100_000, 25, 6),
        ] {
            let expected = 22 * records + 66 * times;
            assert_eq!(framing.overhead_bytes(bytes), expected, "{bytes}");
        }
        // What does not fit into whole records at once ends in a short one each time.
        let framing = Framing::new("TLSv1.2", 17_376, 7500);
        assert_eq!(framing.overhead_bytes(2 * 17_376 + 1), 29 * 7 + 66 * 2);
        assert_eq!(Framing::default().overhead_bytes(1000), 0);
    }
}
