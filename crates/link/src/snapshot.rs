//! What is there now: for a page that is looked at, and for metrics.

/// The upper ends of all size classes but the last, bytes.
pub const SIZE_CLASS_BYTES: [u64; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];
/// Size classes: up to 1 kB, 10 kB, 100 kB, 1 MB, 10 MB, and larger.
pub const SIZE_CLASSES: usize = SIZE_CLASS_BYTES.len() + 1;

/// Responses of one size class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// How many.
    pub jobs: u64,
    /// What they still have to write, bytes; a response of unknown size counts as 0.
    pub remaining_bytes: u64,
}

/// An uplink at one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The policy in force, `none` where nothing is ordered.
    pub policy: &'static str,
    /// The rate of the link; `None` where none was given.
    pub rate_bits_per_sec: Option<u64>,
    /// Open connections.
    pub connections: u64,
    /// Open streams on them.
    pub streams: u64,
    /// Responses that could be written and wait for others, by size class. A response of unknown
    /// size counts by what it has had.
    pub waiting: [Load; SIZE_CLASSES],
    /// The other responses that have begun: being written, or waiting for their own client or for
    /// their data.
    pub sending: [Load; SIZE_CLASSES],
    /// Written to sockets since the start, bytes.
    pub socket_bytes: u64,
    /// Charged to the link since the start, packet headers included, bytes; `None` where nothing is
    /// metered.
    pub wire_bytes: Option<u64>,
    /// The share of the link that was charged since the snapshot before this one, 1 when it was
    /// full; `None` where nothing is metered.
    pub busy_share: Option<f64>,
}

impl Load {
    /// Counts `other` in.
    pub fn add(&mut self, other: Self) {
        self.jobs += other.jobs;
        self.remaining_bytes = self.remaining_bytes.saturating_add(other.remaining_bytes);
    }
}

impl Snapshot {
    /// `wire_bytes` were charged in `elapsed_ns`.
    pub(crate) fn note_busy(&mut self, wire_bytes: u64, elapsed_ns: u64) {
        let Some(rate_bits_per_sec) = self.rate_bits_per_sec.filter(|_| elapsed_ns > 0) else {
            return;
        };
        let possible_bytes = rate_bits_per_sec as f64 / 8e9 * elapsed_ns as f64;
        self.busy_share = Some(wire_bytes as f64 / possible_bytes);
    }
}

/// The size class of a response of `size_bytes`.
pub fn size_class(size_bytes: u64) -> usize {
    SIZE_CLASS_BYTES.partition_point(|&most| most < size_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_class_ends_at_its_upper_end() {
        let classes = [0, 1_000, 1_001, 10_000_000, 10_000_001].map(size_class);
        assert_eq!(classes, [0, 0, 1, 4, 5]);
    }

    #[test]
    fn a_full_link_is_busy() {
        let mut snapshot = Snapshot {
            rate_bits_per_sec: Some(8_000),
            ..Snapshot::default()
        };
        snapshot.note_busy(500, 1_000_000_000);
        assert_eq!(snapshot.busy_share, Some(0.5));
    }
}
